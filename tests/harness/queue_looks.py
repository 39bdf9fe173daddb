"""Looks at the queue of a pool on this machine without a process for each: tests take thousands of them.

What the tool prints has tests of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.queue import JobsPage, QueryJobs
from condor_actors.tools.printing.formats import json_rows
from condor_actors.wire.blocking import WireError, connect

__all__ = ["ads_of"]

PATIENCE_S = 20.0
ID = re.compile(r"(\d+)(?:\.(\d+))?")


def ads_of(run: Path, source: str, arguments: Sequence[str]) -> list[dict[str, Any]] | None:
    """What ``condor_q -all -json`` prints (or ``condor_history -json``).

    Args:
        run: the folder of the schedd's socket.
        source: ``queue`` or ``history``.
        arguments: ids, ``-attributes LIST``, ``-constraint EXPRESSION``.

    Returns:
        The ads; None when there are other arguments, or the schedd does not answer.
    """
    words, ids, wanted, constraint = list(arguments), list[tuple[int, int]](), tuple[str, ...](), ""
    while words:
        word = words.pop(0)
        if match := ID.fullmatch(word):
            ids.append((int(match[1]), -1 if match[2] is None else int(match[2])))
        elif word == "-attributes" and words:
            wanted = tuple(words.pop(0).split(","))
        elif word == "-constraint" and words:
            constraint = words.pop(0)
        else:
            return None
    ads: list[ClassAd] = []
    cursor = ""
    try:
        with connect(f"unix:{run}/schedd.sock", timeout_s=PATIENCE_S) as client:
            while True:
                page = client.ask("schedd", QueryJobs(source=source, ids=tuple(ids), constraint=constraint,
                                                      projection=wanted, cursor=cursor), PATIENCE_S)
                if not isinstance(page, JobsPage):
                    return None
                ads += map(ClassAd.from_bytes, page.ads)
                cursor = page.cursor
                if not cursor:
                    break
    except WireError:
        return None
    found: list[dict[str, Any]] = json.loads("".join(json_rows(ads, wanted, when_empty="[]")))
    return found
