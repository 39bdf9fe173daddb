"""condor_summary: what the jobs that have left the queue came to, by user.

The command of 1989 read the history file of its machine; this one asks the schedd for its history, or reads a file.

**Source**: T89, condor_summary(1); the leverage is that of H88: capacity that a job got for each second that supporting
it cost at home.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import attrs

from condor_actors.classads import ClassAd, is_true, parse_expression, quote
from condor_actors.messages.job_codes import JobStatus
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.command import ToolError, run, values_of
from condor_actors.tools.lib.contact import load, refused, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.printing import ad_output
from condor_actors.tools.printing.formats import elapsed
from condor_actors.wire.blocking import WireError

FLAGS = (
    Flag("help", 1), Flag("version", 1), Flag("debug", 1, idle=NO_DEBUG), Flag("file", 1, 1), Flag("since", 1, 1),
    Flag("constraint", 1, 1), Flag("name", 1, 1), Flag("pool", 1, 1),
)
NAMES = ("Owner", "JobStatus", "RemoteUserCpu", "RemoteSysCpu", "LocalUserCpu", "LocalSysCpu", "RemoteWallClockTime",
         "NumShadowStarts", "NumCkpts", "Leverage")
HEAD = (f"{'USER':<16} {'DONE':>7} {'REMOVED':>7} {'MOVES':>6} {'CKPTS':>6} {'WALL':>13} {'REMOTE CPU':>13} "
        f"{'LEVERAGE':>8}")


@attrs.define
class Sums:
    """Of one user; seconds of remote processor time, at home, and on machines."""

    done: int = 0
    removed: int = 0
    moves: int = 0
    checkpoints: int = 0
    wall_s: float = 0.0
    remote_s: float = 0.0
    led_s: float = 0.0
    support_s: float = 0.0

    def take(self, ad: ClassAd) -> None:
        """A job."""
        self.done += ad.get_int("JobStatus") == JobStatus.COMPLETED
        self.removed += ad.get_int("JobStatus") == JobStatus.REMOVED
        self.moves += max(0, ad.get_int("NumShadowStarts") - 1)
        self.checkpoints += max(0, ad.get_int("NumCkpts"))
        remote_s = _seconds(ad, "RemoteUserCpu") + _seconds(ad, "RemoteSysCpu")
        self.wall_s += _seconds(ad, "RemoteWallClockTime")
        self.remote_s += remote_s
        leverage = _seconds(ad, "Leverage")
        if leverage:
            self.led_s += _seconds(ad, "RemoteUserCpu")
            self.support_s += _seconds(ad, "RemoteUserCpu") / leverage

    def add(self, other: Sums) -> None:
        """Those of another user too."""
        for field in attrs.fields(Sums):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def line(self, name: str) -> str:
        """As it is printed."""
        leverage = f"{self.led_s / self.support_s:.0f}" if self.support_s else "-"
        return (f"{name:<16} {self.done:>7} {self.removed:>7} {self.moves:>6} {self.checkpoints:>6} "
                f"{elapsed(self.wall_s):>13} {elapsed(self.remote_s):>13} {leverage:>8}")


def _seconds(ad: ClassAd, name: str) -> float:
    value = ad.get_float(name)
    return value if 0.0 < value < 1e15 else 0.0


def main() -> int:
    """Entry of ``condor_summary``."""
    return run(FLAGS, "condor_summary", _summary)


def _summary(given: Sequence[Given]) -> int:
    values = values_of(given)
    users = [item.values[0] for item in given if not item.name]
    terms = [f"({ad_output.checked(item.values[0])})" for item in given if item.name == "constraint"]
    if users:
        terms.append("(" + " || ".join(f"Owner == {quote(user)}" for user in users) + ")")
    constraint = " && ".join(terms)
    if "file" in values:
        if "since" in values or "name" in values or "pool" in values:
            raise ToolError("Error: -file asks nobody, so that -since, -name and -pool make no sense with it")
        wanted = parse_expression(constraint) if constraint else None
        ads: Iterable[ClassAd] = (ad for ad in ad_output.ads_of_file(values["file"])
                                  if wanted is None or is_true(wanted.evaluate(ad)))
    else:
        ads = _asked(values, constraint)
    by_user: dict[str, Sums] = {}
    for ad in ads:
        by_user.setdefault(ad.get_str("Owner") or "?", Sums()).take(ad)
    print(HEAD)
    total = Sums()
    for name, sums in sorted(by_user.items(), key=lambda each: (-each[1].remote_s, each[0])):
        print(sums.line(name))
        total.add(sums)
    print(total.line("TOTAL"))
    return 0


def _asked(values: dict[str, str], constraint: str) -> Iterator[ClassAd]:
    since = ad_output.checked(values["since"]) if "since" in values and not _is_job(values["since"]) else (
        values.get("since", ""))
    cursor = ""
    with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
        while True:
            try:
                page = there.ask(QueryJobs(source="history", constraint=constraint, projection=NAMES, since=since,
                                           cursor=cursor))
            except WireError as error:
                raise ToolError(refused(error)) from None
            for text in page.ads:
                yield ClassAd.from_bytes(text)
            cursor = page.cursor
            if not cursor:
                return


def _is_job(text: str) -> bool:
    return all(part.isdecimal() for part in text.split(".")) and text.count(".") <= 1


if __name__ == "__main__":
    sys.exit(main())
