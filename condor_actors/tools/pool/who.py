"""condor_who: whose jobs run on this machine.

**Source**: the manual, condor_who.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd, is_true, parse_expression, quote, unparse
from condor_actors.messages.admin import Ping
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.tools.lib.command import ToolError, Words, run, values_of
from condor_actors.tools.lib.contact import ADMIN, dial, load, local_address, local_node, query
from condor_actors.tools.lib.daemon_watch import DaemonWatch
from condor_actors.tools.lib.flags import LIST, NO_DEBUG, Flag, Given
from condor_actors.tools.lib.machine_commands import ask
from condor_actors.tools.lib.running_programs import add_programs
from condor_actors.tools.printing import ad_output
from condor_actors.tools.printing.formats import elapsed

if TYPE_CHECKING:
    from condor_actors.config import Config

BY_CONFIGURATION = "CONDOR_CONFIG names the pool whose startd is asked, or -address its address"
OWN_VIEW = "it belongs to another pool's formats; -af and -print-format show what is wanted"
FLAGS = (
    Flag("help", 1), Flag("version", 4), Flag("daemons", 3), Flag("owner", 2), Flag("quickdaemons", 1),
    Flag("wait-for-ready", 4, 1, colon=True), Flag("diagnostic", 4, idle=NO_DEBUG), Flag("verbose", 4),
    Flag("debug", 2, idle=NO_DEBUG), Flag("address", 2, 1),
    Flag("allpids", 2, idle=f"no processes are searched: {BY_CONFIGURATION}"),
    Flag("logdir", 3, 1, refused=f"no log is searched for addresses: {BY_CONFIGURATION}"),
    Flag("pid", 3, 1, refused=f"no process is searched for addresses: {BY_CONFIGURATION}"),
    *ad_output.flags(limit=2, constraint=2), Flag("aaf", 3, LIST, colon=True),
    Flag("jobs", 1, refused="a startd keeps no ads of jobs; condor_q shows them where they were submitted"),
    Flag("startd", 4), Flag("snapshot", 2, colon=True),
    Flag("statistics", 5, 1, idle="what a daemon says of itself is always complete"),
    Flag("wide", 1, colon=True, idle="lines are never cut"),
    Flag("banner-format", 3, 1, refused=OWN_VIEW), Flag("ospool", 3, refused=OWN_VIEW),
)
DAEMONS = ("master", "collector", "negotiator", "schedd", "startd")


def main() -> int:
    """Entry of ``condor_who``."""
    wrong = "Error: unrecognized or incomplete argument {word}\n{usage}"
    return run(FLAGS, "condor_who", _answer, words=Words(unknown=wrong, missing=wrong))


def _answer(given: Sequence[Given]) -> int:
    values = values_of(given)
    config = load()
    if "daemons" in values:
        return _daemons(config)
    if "quickdaemons" in values:
        return ad_output.write([_readiness(config).to_text()])
    waits = next((item for item in given if item.name == "wait-for-ready"), None)
    if waits is not None:
        return _wait(config, waits)
    if "owner" in values:
        return _owner(config)
    question = ad_output.AdQuestion()
    for item in given:
        question.take(item)
    if "verbose" in values:
        _daemons(config)
    machine = f"Machine == {quote(config.full_hostname)}"
    is_whole = bool(question.constraints) or "snapshot" in values
    mine = question.conjunction(machine) if is_whole or "startd" in values else question.conjunction(
        machine, 'State == "Claimed"', "JobId isnt undefined")
    ads = _ads(config, AdKind.STARTD if "startd" in values else AdKind.SLOT, mine, values.get("address", ""))
    add_programs(config, ads)
    ads = ads[: question.limit] if question.limit else ads
    if question.form == "table":
        from condor_actors.tools.printing.tables import PrintTable

        return ad_output.write(ad_output.understood(lambda: list(PrintTable.read(question.table_file).rows(ads))))
    rows = question.rows(ads)
    more = [(item.qualifier, item.values) for item in given if item.name == "aaf"]
    return ad_output.write([_table(ads, more)] if rows is None else rows)


def _ads(config: Config, kind: AdKind, constraint: str, address: str) -> list[ClassAd]:
    """This machine's ads: of the collector, or of the startd at an address."""
    if not address:
        return query(config, kind, constraint)
    with dial(config, address, f"startd at {address}") as client:
        page = ask(client, "advertiser", QueryAds(ad_kind=kind, constraint=constraint))
        return [ClassAd.from_bytes(text) for text in page.ads]


def _table(ads: list[ClassAd], more: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """One line a running job; ``more``: (letters, attributes) to be shown behind it."""
    from condor_actors.tools.printing.formats import AutoFormat

    more_heads = [name for _, names in more for name in names]
    heads = ("OWNER", "CLIENT", "SLOT", "JOB", "RUNTIME", "PID", "PROGRAM", *more_heads)
    added = [AutoFormat.of(letters, (name,)) for letters, names in more for name in names]
    now_s = time.time()
    rows = [
        (
            ad.get_str("RemoteOwner") or ad.get_str("RemoteUser"),
            ad.get_str("ClientMachine"),
            ad.get_str("Name").partition("@")[0].removeprefix("slot"),
            ad.get_str("JobId"),
            elapsed(now_s - ad.get_int("JobStart", int(now_s))),
            str(ad.get_int("JobPid") or "?"),
            ad.get_str("JobProgram") or ad.get_str("Cmd"),
            *(each.texts(ad)[0] for each in added),
        )
        for ad in ads
    ]
    if not rows:
        return ""
    widths = [max(len(head), *(len(row[n]) for row in rows)) for n, head in enumerate(heads)]
    lines = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    ]
    return "\n" + "\n".join(lines) + "\n"


def _readiness(config: Config) -> ClassAd:
    """How this machine's daemons are: ``IsReady`` when the master and all that it is to run answer."""
    from condor_actors.wire.blocking import WireError, connect

    wanted = [name.lower() for name in config.list_of("DAEMON_LIST")]
    ad = ClassAd({"MyType": "Readiness"})
    alive = 0
    for name in wanted:
        word = name.upper()
        try:
            with connect(local_node(config, name), timeout_s=5.0) as client:
                pong = client.ask(ADMIN, Ping(), 5.0)
        except WireError:
            ad[word], ad[f"{word}_State"] = "Dead", "Down"
            continue
        alive += 1
        ad[word], ad[f"{word}_State"] = "Alive", "Ready"
        ad[f"{word}_PID"], ad[f"{word}_Addr"] = pong.pid, local_address(config, name)
    ad["NumDaemons"], ad["NumAlive"], ad["NumDead"] = len(wanted), alive, len(wanted) - alive
    ad["IsReady"] = bool(wanted) and alive == len(wanted)
    return ad


def _wait(config: Config, item: Given) -> int:
    """Say whether the daemons are as wanted, after a while at most; the status is 0 when they are."""
    seconds = item.qualifier or "0"
    if not seconds.isdecimal():
        raise ToolError(f"Error: {item.word}: expected a number of seconds, not {seconds}")
    wanted = parse_expression(ad_output.checked(item.values[0]))
    deadline_s = time.monotonic() + int(seconds)
    with DaemonWatch(config.path("RUN")) as watch:
        while True:
            ready = _readiness(config)
            value = wanted.evaluate(ready)
            if is_true(value) or time.monotonic() >= deadline_s:
                print(unparse(value))
                return 0 if is_true(value) else 1
            alive = [ready.get_int(name) for name in ready if name.upper().endswith("_PID")]
            watch.wait(alive, deadline_s - time.monotonic())


def _owner(config: Config) -> int:
    """What each sensor of this machine says of its owner."""
    from condor_actors.messages.owner import QueryOwner
    from condor_actors.tools.lib.machine_commands import STARTD, local_startd
    from condor_actors.tools.pool.owner import report

    _, _, client = local_startd(config)
    with client:
        print("\n".join(report(ask(client, STARTD, QueryOwner()))))
    return 0


def _daemons(config: Config) -> int:
    """Which daemons of this machine answer."""
    from condor_actors.wire.blocking import WireError, connect

    print(f"{'Daemon':<12} {'Alive':<5}  {'PID':>7}    {'Uptime':<12} Addr")
    print(f"{'------':<12} {'-----':<5}  {'---':>7}    {'------':<12} ----")
    for name in DAEMONS:
        socket_path = f"{config.path('RUN')}/{name}.sock"
        if not os.path.exists(socket_path):
            continue
        try:
            with connect(local_node(config, name), timeout_s=5.0) as client:
                pong = client.ask(ADMIN, Ping(), 5.0)
        except WireError:
            print(f"{name.capitalize():<12} {'no':<5}")
            continue
        up = elapsed(time.time() - pong.started_s)
        print(f"{name.capitalize():<12} {'yes':<5}  {pong.pid:>7}    {up:<12} {local_address(config, name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
