"""``htcondor jobset``: queue a set of jobs, list sets, say how one stands, remove it.

**Source**: the manual, htcondor, "Jobset Verbs", and "Job Sets".
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from condor_actors.accounts import own_name
from condor_actors.classads import ClassAd, quote
from condor_actors.messages.queue import ActionResult, ActOnJobs, JobAction, QueryJobs
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import Schedd, load, schedd
from condor_actors.tools.nouns.job import described_wrong
from condor_actors.tools.nouns.job_set_file import read_set
from condor_actors.tools.nouns.words import plural, tell

JOBSET_SUBMIT = 5
"""How such a job came into the queue (JobSubmitMethod)."""
AT_ONCE = 1000
"""Clusters removed by one request."""

_SAID = tuple((f"Num{prefix}{name}", f"{what}{{s}} {name.lower()}")
              for prefix, what in (("", "job"), ("Scheduler", "DAGMan scheduler job"))
              for name in ("Idle", "Running", "Held", "Completed", "Suspended", "Removed"))
_ALWAYS_SAID = ("NumIdle", "NumRunning", "NumCompleted")


def submit(given: dict[str, Any]) -> int:
    """Queue the jobs of a set: all of them, or none."""
    from condor_actors.submit import Description, Options, SubmitError
    from condor_actors.tools.lib.submission import Submission, environment, make_logs

    path = given["job_set_file"]
    found = read_set(path)
    config = load("SUBMIT")
    with schedd(config) as there:
        submission = Submission(there, lambda: schedd(config), spool=False)
        clusters: list[Any] = []
        for job in found.jobs:
            description = Description(environment(config, submit_method=JOBSET_SUBMIT), submission.reserve, Options())
            try:
                clusters += description.read(found.description(job), os.path.abspath(job.source))
            except SubmitError as error:
                raise described_wrong(error, description) from None
            tell(*(f"WARNING: {sentence}" for sentence in description.warnings))
        try:
            submission.send(clusters)
        except ToolError as error:
            ids = tuple((cluster.cluster_id, -1) for cluster in clusters)
            submission.there.ask(ActOnJobs(action=JobAction.REMOVE_FORCED, ids=ids,
                                           reason=f"the job set {found.name} could not be queued whole"))
            raise ToolError(f"{error.text}\nNothing of the job set {found.name} is left in the queue.") from None
        make_logs(clusters)
    tell(f"Submitted job set {found.name} containing {plural(len(clusters), 'job cluster')}.")
    return 0


def _pages(there: Schedd, question: dict[str, Any]) -> Iterator[ClassAd]:
    cursor = ""
    while True:
        page = there.ask(QueryJobs(**question, cursor=cursor))
        yield from map(ClassAd.from_bytes, page.ads)
        cursor = page.cursor
        if not cursor:
            return


def list_sets(given: dict[str, Any]) -> int:
    """The names of the sets that have jobs in the queue."""
    is_all = given["allusers"]
    owner = "" if is_all else own_name()
    with schedd(load()) as there:
        found = sorted((ad.get_str("Owner"), ad.get_str("JobSetName"))
                       for ad in _pages(there, {"source": "jobsets", "owner": owner}))
    if not found:
        tell("No active job sets found.")
        return 0
    width = max(5, *(len(owner) for owner, _ in found))
    print(f"{'OWNER':<{width}}  JOB_SET_NAME" if is_all else "JOB_SET_NAME")
    for owner, name in found:
        print(f"{owner:<{width}}  {name}" if is_all else name)
    return 0


def _set_of(there: Schedd, given: dict[str, Any]) -> tuple[ClassAd, str]:
    """The ad of the set that is named, and its owner.

    Raises:
        ToolError: there is none.
    """
    name, owner = given["job_set_name"], given["owner"] or own_name()
    # == of strings overlooks case, as names of sets do
    found = list(_pages(there, {"source": "jobsets", "owner": owner, "constraint": f"JobSetName == {quote(name)}"}))
    if not found:
        raise ToolError(f'No active job sets found matching "{name}" for user {owner}.')
    return found[0], owner


def status(given: dict[str, Any]) -> int:
    """How many jobs of a set are in which status, and its clusters."""
    with schedd(load()) as there:
        ad, _ = _set_of(there, given)
        name, number = ad.get_str("JobSetName"), ad.get_int("JobSetId")
        clusters: Counter[int] = Counter()
        question = {"constraint": f"JobSetId == {number}", "projection": ("ClusterId",)}
        clusters.update(job.get_int("ClusterId") for job in _pages(there, question))
        if clusters.total() < ad.get_int("NumJobs") + ad.get_int("NumSchedulerJobs") and not given["skip_history"]:
            tell(f"{name} may contain completed and/or removed jobs, checking history...")
            clusters.update(job.get_int("ClusterId") for job in _pages(there, {**question, "source": "history"}))
    said = [f"{ad.get_int(attribute)} {text.format(s='' if ad.get_int(attribute) == 1 else 's')}"
            for attribute, text in _SAID if attribute in _ALWAYS_SAID or ad.get_int(attribute)]
    tell(f"{name} currently has {', '.join(said[:-1])}, and {said[-1]}.", f"{name} contains:",
         *(f"\tJob cluster {cluster} with {plural(count, 'total job')}" for cluster, count in sorted(clusters.items())))
    return 0


def remove(given: dict[str, Any]) -> int:
    """Remove the jobs of a set, and those that its clusters would still make."""
    reason = f"via htcondor jobset remove (by user {own_name()})"
    done = failed = 0
    with schedd(load()) as there:
        ad, owner = _set_of(there, given)
        question = {"constraint": f"JobSetId == {ad.get_int('JobSetId')}", "projection": ("ClusterId",)}
        clusters = sorted({each.get_int("ClusterId") for source in ("queue", "factories")
                           for each in _pages(there, {**question, "source": source})})
        for first in range(0, len(clusters), AT_ONCE):
            ids = tuple((cluster, -1) for cluster in clusters[first:first + AT_ONCE])
            answer = there.ask(ActOnJobs(action=JobAction.REMOVE, ids=ids, reason=reason))
            done += answer.count
            failed += sum(result is ActionResult.PERMISSION_DENIED for *_, result in answer.results)
    name = ad.get_str("JobSetName")
    if failed:
        raise ToolError(f"{plural(failed, 'cluster')} of the job set {name} of {owner} may not be removed by you; "
                        f"{plural(done, 'job')} removed.")
    tell(f"Removed {plural(done, 'job')} matching job set {name} for user {owner}.")
    return 0
