"""Talks to the schedd for a DAG, on a thread of its own: submits nodes, removes jobs, says how far the DAG is.

Theory: a submission is two steps.  First descriptions are read and numbers reserved; the run hears of the numbers and
writes them to its journal.  Then the jobs are sent under these numbers.  A number that was reserved over a line means
nothing when that line has ended.  So after a crash, or when a line breaks, the schedd need only be asked whether it has
a cluster of that number that is that node's: nothing is submitted twice, and nothing is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from condor_actors.classads import ClassAd, quote
from condor_actors.config import Config
from condor_actors.dag.definitions import Kind, Node
from condor_actors.dag.rescue import rescue_name
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction, QueryJobs
from condor_actors.messages.submission import ReserveCluster
from condor_actors.submit import Cluster, SubmitError
from condor_actors.tools.dag.node_description import describe, folder_of
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import Schedd, schedd
from condor_actors.tools.lib.submission import environment, pages_to_send
from condor_actors.wire.blocking import RequestRefused, WireError

__all__ = ["Prepared", "SCHEDD_AWAY", "Submitter", "Wanted"]

SCHEDD_AWAY = (WireError, ToolError)
"""What is raised when there is no schedd to talk to: it is tried again later."""


@attrs.frozen
class Wanted:
    """A node that is to be submitted.

    Attributes:
        number: its index.
        node: what it is.
        macros: what its description is given.
        cluster: a number that was reserved for it before; 0: none.
    """

    number: int
    node: Node
    macros: Mapping[str, str]
    cluster: int = 0


@attrs.frozen
class Prepared:
    """What became of a node before it is sent.

    Attributes:
        number: of the node.
        cluster: its number; ``jobs``: how many it has.
        is_late: whether the schedd makes its jobs as they are needed.
        there: whether the schedd had it already.
        problem: why it cannot be submitted; empty: it can.
        warnings: what its description has without effect.
        told: what else there is to say of it.
    """

    number: int
    cluster: int = 0
    jobs: int = 0
    is_late: bool = False
    there: bool = False
    problem: str = ""
    warnings: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


class Submitter:
    """One line to the schedd; every method blocks and is called on one thread.

    Args:
        config: the pool's.
        cwd: where the DAG runs.
        dag_id: the cluster of its own job; 0: it has none.
        appends: whether VARS stand behind the description's commands.
        commands: what does so of every node.
        subdag_words: the flags that a SUBDAG's condor_submit_dag gets.
        rescue: the number of the rescue file from which the DAG goes on, when it was named: a SUBDAG that has one of
            this number goes on from that, the first time; 0: from its newest.
    """

    def __init__(self, config: Config, cwd: str, dag_id: int, *, appends: bool,
                 commands: Mapping[str, str], subdag_words: Sequence[str], rescue: int = 0) -> None:
        self._config = config
        self._cwd = cwd
        self._id = dag_id
        self._appends = appends
        self._commands = commands
        self._subdag_words = subdag_words
        self._rescue = rescue
        self._there: Schedd | None = None
        self._numbers: list[int] = []
        self._prepared: dict[int, Cluster] = {}
        self._world: Any = None

    def close(self) -> None:
        """Hang up."""
        if self._there is not None:
            self._there.client.close()
            self._there = None
            self._numbers = []

    def _ask(self, message: Any) -> Any:
        """The schedd's answer.

        Raises:
            RequestRefused: it does not want to.
            WireError, ToolError: there is no answer; the line is given up.
        """
        if self._there is None:
            self._there = schedd(self._config)
        try:
            return self._there.ask(message)
        except RequestRefused:
            raise
        except WireError:
            self.close()
            raise

    # -- nodes

    def prepare(self, wanted: Sequence[Wanted]) -> list[Prepared]:
        """Read descriptions and reserve numbers.

        Raises:
            WireError, ToolError: the schedd does not answer; nothing has happened.
        """
        self._prepared = {}
        missing = sum(not each.cluster for each in wanted) - len(self._numbers)
        if missing > 0:
            self._reserve(missing)
        return [self._prepare_one(each) for each in wanted]

    def _reserve(self, count: int) -> None:
        answer = self._ask(ReserveCluster(count=count))
        self._numbers += range(answer.cluster_id, answer.cluster_id + count)

    def _number(self) -> int:
        """A number that was reserved over this line."""
        if not self._numbers:
            self._reserve(1)
        return self._numbers.pop(0)

    def _prepare_one(self, wanted: Wanted) -> Prepared:
        node = wanted.node
        if wanted.cluster:
            jobs = self.jobs_of(wanted.cluster, node.name)
            if jobs:
                return Prepared(wanted.number, wanted.cluster, jobs, there=True)
        folder = folder_of(node, self._cwd)
        warnings, told = list[str](), list[str]()
        try:
            if node.kind is Kind.SUBDAG:
                node = self._subdag(node, folder, wanted.macros, told.append)
            if self._world is None:
                self._world = environment(self._config, submit_method=1)
            world = attrs.evolve(self._world, cwd=folder)
            cluster = describe(node, world, self._number, wanted.macros, self._commands,
                               appends=self._appends, warn=warnings.append)
            if len(cluster.procs) > 1 and self._config.boolean("DAGMAN_PROHIBIT_MULTI_JOBS"):
                raise SubmitError("Submit generated multiple job procs; disallowed by DAGMAN_PROHIBIT_MULTI_JOBS"
                                  " setting")
        except SubmitError as error:
            return Prepared(wanted.number, problem=str(error), told=tuple(told))
        except OSError as error:
            return Prepared(wanted.number, problem=f"{error.filename or node.description}: {error.strerror or error}",
                            told=tuple(told))
        self._prepared[cluster.cluster_id] = cluster
        return Prepared(wanted.number, cluster.cluster_id, len(cluster.procs), cluster.is_factory,
                        warnings=tuple(warnings), told=tuple(told))

    def _subdag(self, node: Node, folder: str, macros: Mapping[str, str], tell: Callable[[str], None]) -> Node:
        """The node that submits a DAG of its own: its submit file is made; its nodes have this priority and their own.

        Raises:
            SubmitError: it cannot be made.
        """
        made, priority = f"{node.description}.condor.sub", macros.get("priority", "")
        rescue = []
        if self._rescue and macros.get("RETRY") == "0" and os.path.exists(os.path.join(
                folder, rescue_name(node.description, self._rescue, several=False))):
            rescue = ["-DoRescueFrom", str(self._rescue)]
        if self._config.boolean("DAGMAN_GENERATE_SUBDAG_SUBMITS") or not os.path.exists(os.path.join(folder, made)):
            words = ["-no_submit", "-update_submit", *self._subdag_words, *rescue,
                     *(["-Priority", priority] if priority else []), node.description]
            tell(f"Recursive submit command: <condor_submit_dag {' '.join(words)}>")
            command = [sys.executable, "-m", "condor_actors.tools.dag.submit_dag", *words]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SubmitError(f"condor_submit_dag {node.description}: {done.stderr.strip()}")
        return attrs.evolve(node, description=made)

    def send(self, prepared: Sequence[Prepared]) -> list[str]:
        """Send what was prepared: for each an empty text, or why it was refused.

        Raises:
            WireError, ToolError: the schedd went away; what came of it, `jobs_of` tells.
        """
        if self._there is None:
            raise ToolError("the line to the schedd was lost")
        pages = [(each.cluster, page) for each in prepared for page in pages_to_send(self._prepared[each.cluster])]
        problems: dict[int, str] = {}
        try:
            answers = self._there.ask_all(page for _, page in pages)
            for (cluster, _), answer in zip(pages, answers, strict=True):
                if isinstance(answer, RequestRefused):
                    problems.setdefault(cluster, str(answer))
        except WireError:
            self.close()
            raise
        finally:
            self._prepared = {}
        return [problems.get(each.cluster, "") for each in prepared]

    def jobs_of(self, cluster: int, node: str) -> int:
        """How many jobs the schedd has, had, or is to make of this cluster, if it is this node's."""
        for source in ("queue", "factories", "history"):
            jobs, cursor = 0, ""
            while True:
                page = self._ask(QueryJobs(
                    source=source, ids=((cluster, -1),), cursor=cursor, projection=("TotalSubmitProcs",),
                    constraint=f"DAGNodeName =?= {quote(node)}"))
                for text in page.ads:
                    jobs = max(jobs + 1, ClassAd.from_bytes(text).get_int("TotalSubmitProcs"))
                cursor = page.cursor
                if not cursor:
                    break
            if jobs:
                return jobs
        return 0

    # -- other things

    def remove(self, clusters: Sequence[int], reason: str) -> None:
        """Remove the jobs of clusters; those that have ended are no mistake."""
        for first in range(0, len(clusters), 500):
            self._ask(ActOnJobs(action=JobAction.REMOVE, reason=reason,
                                ids=tuple((cluster, -1) for cluster in clusters[first : first + 500])))

    def own_ad(self, names: tuple[str, ...] = ()) -> ClassAd:
        """The ad of the DAG's own job, or these attributes of it; empty when it has none."""
        if not self._id:
            return ClassAd()
        page = self._ask(QueryJobs(ids=((self._id, 0),), projection=names))
        return ClassAd.from_bytes(page.ads[0]) if page.ads else ClassAd()

    def tell_ad(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the DAG's own job."""
        if self._id:
            ad = ClassAd()
            ad.update(attributes)
            self._ask(EditJobs(attributes=ad.to_bytes(), ids=((self._id, 0),)))

    def provisioner_state(self, cluster: int) -> int:
        """What the provisioner's job says: 2 is ready."""
        page = self._ask(QueryJobs(ids=((cluster, -1),), projection=("ProvisionerState",), limit=1))
        return ClassAd.from_bytes(page.ads[0]).get_int("ProvisionerState") if page.ads else 0


