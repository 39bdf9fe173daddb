"""condor_who: whose jobs run on this machine.

**Source**: the manual, condor_who.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd, quote
from condor_actors.tools.lib.command import Words, run, values_of
from condor_actors.tools.lib.contact import ADMIN, load, local_address
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.lib.machine_commands import slots_of
from condor_actors.tools.lib.running_programs import add_programs
from condor_actors.tools.printing import ad_output
from condor_actors.tools.printing.formats import elapsed

if TYPE_CHECKING:
    from condor_actors.config import Config

FLAGS = (
    Flag("help", 1),
    Flag("version", 4),
    Flag("daemons", 3),
    Flag("owner", 2),
    Flag("quickdaemons", 1, alias="daemons"),
    Flag("diagnostic", 4),
    Flag("verbose", 4),
    Flag("debug", 2),
    Flag("address", 2, 1),
    Flag("allpids", 2),
    Flag("logdir", 3, 1),
    Flag("pid", 3, 1),
    *ad_output.flags(limit=2, constraint=2),
    Flag("jobs", 1),
    Flag("startd", 4),
    Flag("wide", 1, colon=True),
)
DAEMONS = ("master", "collector", "negotiator", "schedd", "startd")
USAGE = (
    """Usage: condor_who [-daemons | -owner] [-long | -json | -xml | -af <attr> ... | -format <fmt> <attr> |
    -print-format <file>] [-constraint <expr>] [-limit <n>]"""
)


def main() -> int:
    """Entry of ``condor_who``."""
    wrong = "Error: unrecognized or incomplete argument {word}\n{usage}"
    return run(FLAGS, USAGE, _answer, words=Words(unknown=wrong, missing=wrong))


def _answer(given: Sequence[Given]) -> int:
    values = values_of(given)
    config = load()
    if "daemons" in values:
        return _daemons(config)
    if "owner" in values:
        return _owner(config)
    question = ad_output.AdQuestion()
    for item in given:
        question.take(item)
    machine = f"Machine == {quote(config.full_hostname)}"
    mine = question.conjunction(machine) if question.constraints else question.conjunction(
        machine, 'State == "Claimed"', "JobId isnt undefined")
    ads = slots_of(config, constraint=mine)
    add_programs(config, ads)
    ads = ads[: question.limit] if question.limit else ads
    if question.form == "table":
        from condor_actors.tools.printing.tables import PrintTable

        return ad_output.write(ad_output.understood(lambda: list(PrintTable.read(question.table_file).rows(ads))))
    rows = question.rows(ads)
    return ad_output.write([_table(ads)] if rows is None else rows)


def _table(ads: list[ClassAd]) -> str:
    """One line a running job."""
    heads = ("OWNER", "CLIENT", "SLOT", "JOB", "RUNTIME", "PID", "PROGRAM")
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


def _owner(config: Config) -> int:
    """What each sensor of this machine says of its owner."""
    from condor_actors.messages.owner import QueryOwner
    from condor_actors.tools.lib.machine_commands import STARTD, ask, local_startd
    from condor_actors.tools.pool.owner import report

    _, _, client = local_startd(config)
    with client:
        print("\n".join(report(ask(client, STARTD, QueryOwner()))))
    return 0


def _daemons(config: Config) -> int:
    """Which daemons of this machine answer."""
    from condor_actors.messages.admin import Ping
    from condor_actors.tools.lib.contact import local_node
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
