"""condor_qedit: change attributes of queued jobs.

**Source**: the manual, condor_qedit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from condor_actors import records
from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, quote
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.messages.queue import ActionResult, ActionResults, EditJobs
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run
from condor_actors.tools.lib.contact import ACTION_TIMEOUT_S, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import ALL_PROCS, id_text, parse_id
from condor_actors.wire.blocking import RequestRefused
from condor_actors.written_text import read_written

FLAGS = (
    Flag("help"),
    Flag("version"),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
    Flag("debug", 1, colon=True, idle=NO_DEBUG),
    Flag("diagnostic", 2, idle=NO_DEBUG),
    Flag("dry-run", 2),
    Flag("constraint", 1, 1),
    Flag("owner", 1, 1),
    Flag("jobids", 1, 1),
    Flag("edits", 1, 1, colon=True),
    Flag("forward", 1, idle="a job that runs is not told; the edit is in force from its next start"),
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_FIXED = frozenset({"owner", "user", "clusterid", "procid", "mytype", "targettype", "jobstatus", "globaljobid"})


@records.define
class Call:
    """The command line, understood."""

    ids: list[tuple[int, int]] = records.Factory(list)
    constraints: list[str] = records.Factory(list)
    edits: dict[str, str] = records.Factory(dict)
    name: str = ""
    pool: str = ""
    is_dry: bool = False


class _Abort(Exception):
    """Nothing may be changed; says why."""


def main() -> int:
    """Entry of ``condor_qedit``."""
    return run(FLAGS, "condor_qedit", _answer, words=Words(
        unknown="condor_qedit: {word} is not a valid option\n{usage}",
        missing="condor_qedit: {word} requires an argument"))  # fmt: skip


def _answer(given: Sequence[Given]) -> int:
    call = _understand(given)
    try:
        return _edit(call, _checked(call))
    except _Abort as error:
        raise ToolError(f"{error}\nTransaction failed.  No attributes were set.") from None


def _understand(given: Sequence[Given]) -> Call:
    call = Call()
    words: list[str] = []
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            words.append(value)
        elif item.name == "constraint":
            try:
                parse_expression(old_to_new(value))
            except ClassAdSyntaxError:
                raise ToolError(f"condor_qedit: invalid constraint: {value}") from None
            call.constraints.append(old_to_new(value))
        elif item.name == "owner":
            call.constraints.append(f"Owner == {quote(value)}")
        elif item.name == "jobids":
            named = [(word, parse_id(word)) for word in value.replace(",", " ").split()]
            call.ids += [found for _, found in named if found is not None]
            wrong = next((word for word, found in named if found is None), "")
            if wrong:
                raise ToolError(f"condor_qedit: -jobids: {wrong} is no job")
        elif item.name == "edits":
            _read_edits(call, value)
        elif item.name in ("name", "pool"):
            setattr(call, item.name, value)
        elif item.name == "dry-run":
            call.is_dry = True
    _operands(call, words)
    if not call.ids and not call.constraints:
        if call.edits:
            raise ToolError(
                "condor_qedit : Error - there were no jobs specified.\n"
                "\tuse -constraint, jobid or owner argument to indicate which jobs to edit"
            )
        raise ToolError(reminder_of("condor_qedit"))
    if not call.edits:
        raise ToolError("condor_qedit : Error - no attributes specifed.")
    return call


def _operands(call: Call, words: list[str]) -> None:
    of_file = len(call.edits)
    while words:
        word = words.pop(0)
        found = parse_id(word)
        if found is not None and len(call.edits) == of_file:
            call.ids.append(found)
            continue
        name, equals, value = word.partition("=")
        if equals:
            call.edits[name.strip()] = value.strip()
        elif not call.ids and not call.constraints and not call.edits and _NAME.match(word) and len(words) != 1:
            call.constraints.append(f"Owner == {quote(word)}")
        elif words:
            value = words.pop(0)
            call.edits[word] = value[1:].strip() if value.startswith("=") and len(value) > 1 else (
                words.pop(0) if value == "=" and words else value
            )  # fmt: skip
        else:
            raise ToolError(f"condor_qedit : expression required after attribute {word}")


def _read_edits(call: Call, path: str) -> None:
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            text = read_written(path)
    except OSError as error:
        raise ToolError(f"Can't open file of edits: {path}: {error.strerror}") from None
    try:
        start = text.lstrip()[:1]
        ad = (
            ClassAd.from_json(text) if start == "{" else ClassAd.from_new(text) if start == "["
            else ClassAd.from_xml(text) if start == "<" else ClassAd.from_text(text)
        )  # fmt: skip
    except ClassAdSyntaxError:
        raise ToolError(f"Unable to read file of edits: {path}") from None
    call.edits.update({name: str(ad.expression(name)) for name in ad})


def _checked(call: Call) -> ClassAd:
    """The new values as an ad."""
    ad = ClassAd()
    for name, text in call.edits.items():
        if not _NAME.match(name):
            raise _Abort(f'Update aborted, illegal attribute-name specified for attribute "{name}".')
        if name.lower() in _FIXED:
            raise _Abort(f'Update of immutable attribute "{name}" is not allowed.')
        try:
            ad.insert_text(name, old_to_new(text or "undefined"))
        except ClassAdSyntaxError:
            raise _Abort(f"Update aborted, illegal value for : {name}") from None
    return ad


def _edit(call: Call, ad: ClassAd) -> int:
    terms = [
        f"(ClusterId == {cluster}" + (f" && ProcId == {proc})" if proc != ALL_PROCS else ")")
        for cluster, proc in call.ids
    ]
    ids = tuple(call.ids) if not call.constraints else ()
    parts = [*call.constraints, " || ".join(terms)] if terms and call.constraints else call.constraints
    constraint = "" if ids else " && ".join(f"({part})" for part in parts)
    with schedd(load(), name=call.name, pool=call.pool) as there:
        if call.is_dry:
            return 0
        try:
            answer = there.ask(EditJobs(attributes=ad.to_bytes(), ids=ids, constraint=constraint), ACTION_TIMEOUT_S)
        except RequestRefused as error:
            raise ToolError(f"{error}\nQueue transaction failed.  No attributes were set.") from None
    assert isinstance(answer, ActionResults)
    bad = [row for row in answer.results if row[2] is not ActionResult.SUCCESS]
    if bad or not answer.count:
        for name in ad:
            if constraint:
                print(f'Failed to set attribute "{name}" by constraint: {constraint}', file=sys.stderr)
            for cluster, proc, _ in bad if not constraint else []:
                print(f'Failed to set attribute "{name}" for job {id_text(cluster, proc)}.', file=sys.stderr)
        print("Queue transaction failed.  No attributes were set.", file=sys.stderr)
        return 1
    for name in ad:
        print(f'Set attribute "{name}" for {answer.count} matching jobs.')
    return 0



if __name__ == "__main__":
    sys.exit(main())
