"""condor_simulate: what a pool would do, or would have done, on a clock of its own.

================  ==================================================================================================
``paper-1988``    the month of 1988 under four policies, as one HTML page
``month``         the same users and owners in a pool of any size, under one policy
``availability``  what the history of stations' availability is worth to long jobs
``scale``         pools of many machines for a day: what breaks first
``--seed N``      the world of whole daemons, with the faults that the seed says (``replay --seed N``)
``seeds``         many such seeds, in several processes
``energy``        what machines save that sleep when nobody needs them
``what-if``       a real pool's last month under another configuration
================  ==================================================================================================

Every command is deterministic: the same arguments give the same numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from condor_actors.config import ConfigError
from condor_actors.tools.manual.described_parser import DescribedParser

__all__ = ["main"]


class Progress:
    """One line on standard error that says how far a long run is; silent where nobody looks.

    Args:
        what: is being done; always: also where standard error is no terminal, one line each time.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._began_s = time.monotonic()
        self._said_s = 0.0

    def __call__(self, done: float, all_of_it: float = 1.0) -> None:
        """So much of it is done."""
        now_s = time.monotonic()
        if done < all_of_it and now_s - self._said_s < (1.0 if sys.stderr.isatty() else 20.0):
            return
        self._said_s = now_s
        spent_s = now_s - self._began_s
        left_s = spent_s * (all_of_it - done) / done if done else 0.0
        counted = f"{done:g}/{all_of_it:g}" if all_of_it != 1.0 else f"{100 * done:.0f} %"
        ending = "\n" if done >= all_of_it or not sys.stderr.isatty() else ""
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{start}{self._what}: {counted}, {spent_s:.0f} s, {left_s:.0f} s left", end=ending, file=sys.stderr,
              flush=True)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _part(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.0 < scale <= 10.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and up to 10")
    return scale


def _watts(text: str) -> list[float]:
    words = text.split(",")
    if len(words) != 3 or not all(word.replace(".", "", 1).isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not three numbers with commas between, such as 120,60,3")
    return [float(word) for word in words]


def _numbers(text: str) -> list[int]:
    return [_positive(word) for word in text.split(",")]


def _policies(text: str) -> list[str]:
    from condor_actors.simulation.cores.month import POLICIES

    chosen = [word.strip().upper() for word in text.split(",")]
    for word in chosen:
        if word not in POLICIES:
            raise argparse.ArgumentTypeError(f"there is no policy {word!r}; expected some of {','.join(POLICIES)}")
    return chosen


def command_parser() -> argparse.ArgumentParser:
    """The reader of its words."""
    parser = DescribedParser(prog="condor_simulate", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    paper = commands.add_parser("paper-1988", help="the month of 1988 under four policies, as one HTML page")
    paper.add_argument("--seeds", type=_positive, default=30, metavar="N", help="months per policy (default 30)")
    paper.add_argument("--policies", type=_policies, default=_policies("UP_DOWN,UPDATE_PRIO,FAIR_SHARE,FIFO"),
                       metavar="P,P", help="which (default: UP_DOWN,UPDATE_PRIO,FAIR_SHARE,FIFO)")
    paper.add_argument("--saturated", type=int, default=5, metavar="N",
                       help="seeds of ten days with a heavy user who wants everything; 0: none (default 5)")
    paper.add_argument("--out", type=Path, default=Path("paper-1988.html"), metavar="FILE",
                       help="the page (default paper-1988.html)")
    paper.add_argument("--keep", type=Path, metavar="FOLDER",
                       help="keep each month there when it is done, and do not compute again what is there")
    paper.add_argument("--only-kept", action="store_true", help="compute nothing: report on what --keep has")
    paper.add_argument("--workers", type=_positive, default=1, metavar="N", help="processes (default 1)")
    paper.set_defaults(run=_paper)
    month = commands.add_parser("month", help="the users and owners of 1988 in a pool of any size, under one policy")
    month.add_argument("--machines", type=_positive, default=23, metavar="N",
                       help="workstations; five users for every 23 (default 23)")
    month.add_argument("--days", type=float, default=30.0, metavar="D", help="how long (default 30)")
    month.add_argument("--policy", type=_policies, default=["UP_DOWN"], metavar="P", help="which (default UP_DOWN)")
    month.add_argument("--seed", type=_positive, default=1, metavar="N", help="of owners and users (default 1)")
    month.set_defaults(run=_month)
    history = commands.add_parser("availability",
                                  help="what the history of stations' availability is worth to long jobs")
    history.add_argument("--seeds", type=_positive, default=5, metavar="N", help="months each (default 5)")
    history.add_argument("--days", type=float, default=30.0, metavar="D", help="length of a month (default 30)")
    history.set_defaults(run=_availability)
    scale = commands.add_parser("scale", help="pools of many machines for a day: what breaks first")
    scale.add_argument("--machines", type=_numbers, default=[1000], metavar="N,N",
                       help="sizes of the pools (default 1000)")
    scale.add_argument("--jobs", type=_positive, default=10, metavar="N", help="jobs per machine (default 10)")
    scale.add_argument("--hours", type=float, default=24.0, metavar="H", help="simulated hours (default 24)")
    scale.add_argument("--kinds", type=_numbers, default=[1], metavar="N,N",
                       help="distinct requirements among the jobs (default 1)")
    scale.add_argument("--budget", type=float, default=600.0, metavar="S",
                       help="give up on a pool after so many seconds of processor time (default 600)")
    scale.add_argument("--out", type=Path, metavar="FILE", help="append each pool's figures there, one JSON line each")
    scale.add_argument("--negotiator-only", action="store_true", help="only its cycles, which goes much further")
    scale.add_argument("--charts", type=Path, metavar="FOLDER",
                       help="measure nothing: draw the curves of what is in --out there")
    scale.set_defaults(run=_scale)
    _add_energy(commands)
    what_if = commands.add_parser("what-if", help="a real pool's last month under another configuration")
    what_if.add_argument("--config", type=Path, required=True, metavar="FILE", help="the condor_config to try")
    what_if.add_argument("--against", type=Path, metavar="FILE", help="the one to compare it with (default: what was)")
    what_if.add_argument("--ads", type=Path, required=True, metavar="FILE", help="slots: condor_status -long > FILE")
    what_if.add_argument("--history", type=Path, required=True, metavar="FILE",
                         help="jobs: condor_history -long > FILE")
    what_if.add_argument("--days", type=float, default=31.0, metavar="D", help="of the history (default 31)")
    what_if.add_argument("--seed", type=int, default=1, metavar="N", help="of the owners' days (default 1)")
    what_if.add_argument("--json", action="store_true", help="print JSON")
    what_if.set_defaults(run=_what_if)
    _add_replay(commands)
    return parser


def _add_energy(commands: Any) -> None:
    energy = commands.add_parser("energy", help="what machines save that sleep when nobody needs them")
    energy.add_argument("--machines", type=_positive, default=4, metavar="N", help="that run jobs (default 4)")
    energy.add_argument("--days", type=_positive, default=7, metavar="D", help="how long (default 7)")
    energy.add_argument("--jobs", type=_positive, default=2, metavar="N",
                        help="of an hour, for each machine a day (default 2)")
    energy.add_argument("--seed", type=_positive, default=1, metavar="N", help="of owners and chance (default 1)")
    energy.add_argument("--watts", type=_watts, default=_watts("120,60,3"), metavar="W,W,W",
                        help="of a machine that computes, stands idle, sleeps (default 120,60,3)")
    energy.set_defaults(run=_energy)


def _add_replay(commands: Any) -> None:
    replay = commands.add_parser("replay", help="the world of whole daemons with the faults of a seed; the word replay "
                                 "may be left out before --seed")
    replay.add_argument("--seed", type=_positive, required=True, metavar="N", help="which")
    replay.add_argument("--count", type=_positive, default=1, metavar="N", help="so many seeds from there on")
    replay.add_argument("--machines", type=_positive, default=20, metavar="N", help="of the pool (default 20)")
    replay.add_argument("--faults", type=int, metavar="N", help="how many (default: chance says)")
    _add_world(replay)
    replay.add_argument("--schedule", type=Path, metavar="FILE", help="these faults instead of chance's")
    replay.add_argument("--smallest", action="store_true", help="look for fewer faults that still fail")
    replay.add_argument("--trace", action="store_true", help="print each event")
    replay.set_defaults(run=_replay)
    seeds = commands.add_parser("seeds", help="many seeds of the world of whole daemons, all faults on; 1 when one "
                                "breaks a rule")
    seeds.add_argument("--first", type=_positive, default=1, metavar="N", help="begin with this one (default 1)")
    seeds.add_argument("--count", type=_positive, metavar="N",
                       help="how many (default 2000; with --seconds as many as there is time for)")
    seeds.add_argument("--machines", type=_numbers, default=[20], metavar="N,N",
                       help="of the pools; of several sizes each seed takes the one at its remainder (default 20)")
    _add_world(seeds)
    seeds.add_argument("--seconds", type=float, metavar="S", help="begin none after that")
    seeds.add_argument("--workers", type=_positive, default=1, metavar="N", help="processes (default 1)")
    seeds.add_argument("--keep", type=Path, metavar="FILE",
                       help="append what came of them to FILE, and do not run again what stands there for this commit")
    seeds.set_defaults(run=_seeds)


def _add_world(command: argparse.ArgumentParser) -> None:
    command.add_argument("--pools", type=_positive, default=1, metavar="N",
                         help="so many pools that lend each other machines, each with so many --machines that run jobs "
                         "(default 1)")
    command.add_argument("--sites", type=_part, default=0.0, metavar="S",
                         help="the six sites of 1994, joined by gateways, each with this part of its machines of then "
                         "(1: Madison 200, the others 3 to 30) instead of --machines")
    command.add_argument("--raises", action="store_true",
                         help="turns and I/O edges of actors raise as well, more often than any other fault")
    command.add_argument("--workflows", action="store_true",
                         help="workflows beside the jobs of a pool, whose condor_dagman is killed again and again")
    command.add_argument("--gangs", action="store_true",
                         help="jobs of 2 to 8 machines beside others, on desktops whose owners come and go (with "
                         "--machines 16 as many desktops, never fewer than 8)")


def _kind(arguments: argparse.Namespace) -> Any:
    from condor_actors.simulation.faults.kinds import WorldKind

    return WorldKind(raises=arguments.raises, pools=arguments.pools, scale=arguments.sites,
                     workflows=arguments.workflows, gangs=arguments.gangs)


def _replay(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.faults.replay import replay

    schedule = arguments.schedule.read_text(encoding="utf-8") if arguments.schedule is not None else None
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    failed = replay(seeds, machines=arguments.machines, faults=arguments.faults, schedule=schedule,
                    kind=_kind(arguments), smallest=arguments.smallest,
                    trace=print if arguments.trace else None, say=print)
    return 1 if failed else 0


def _seeds(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.faults.kept_seeds import KeptSeeds
    from condor_actors.simulation.faults.replay import commit
    from condor_actors.simulation.faults.seeds import Sum, run_seeds

    of = commit()
    kept = None
    if arguments.keep is not None:
        kept = KeptSeeds(arguments.keep, of, arguments.machines, _kind(arguments))
    number = arguments.count or (2000 if arguments.seconds is None else None)
    progress, said = Progress("seeds"), 0

    def show(so_far: Sum) -> None:
        nonlocal said
        for _, text in so_far.failures[said:]:
            print(text, flush=True)
        said = len(so_far.failures)
        if number is not None:
            progress(so_far.seeds, number)
        else:
            progress(min(1.0, (time.monotonic() - began_s) / arguments.seconds))

    began_s = time.monotonic()
    done = run_seeds(arguments.first, number, machines=arguments.machines, workers=arguments.workers,
                     kind=_kind(arguments), seconds=arguments.seconds, kept=kept,
                     progress=show)
    if kept is not None:
        kept.close()
    sizes = ", ".join(map(str, arguments.machines))
    pools = f"{arguments.pools} pools of " if arguments.pools > 1 else ""
    whose = f"the sites of 1994, {arguments.sites:g} of" if arguments.sites else pools + sizes
    of_what = f"{whose} machines{', raising' if arguments.raises else ''}{f', commit {of}' if of else ''}"
    print(f"seeds {arguments.first} to {arguments.first + done.seeds - 1} with {of_what}: {len(done.failures)} failed; "
          f"{done.events:,} events, {done.cpu_s:.0f} s of processor time, {time.monotonic() - began_s:.0f} s")
    if done.failures:
        print("failed:", " ".join(str(seed) for seed, _ in done.failures))
    return 1 if done.failures else 0


def _paper(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.cores.months import Month, load_months, months
    from condor_actors.simulation.report.report import Report, paper_report

    def gather(load: str, count: int) -> list[Month]:
        seeds = range(1, count + 1)
        if arguments.only_kept:
            return load_months(arguments.keep, arguments.policies, load, seeds)
        progress = Progress(f"months, {load} load")
        return list(months(arguments.policies, load, seeds, folder=arguments.keep, workers=arguments.workers,
                           progress=progress))

    if arguments.only_kept and arguments.keep is None:
        return _wrong("--only-kept needs --keep FOLDER")
    saturated = gather("saturated", arguments.saturated) if arguments.saturated > 0 else []
    paper = gather("paper", arguments.seeds)
    if not paper:
        return _wrong(f"{arguments.keep} has no month of the present model; leave --only-kept away to compute some")
    command = f"condor_simulate paper-1988 --seeds {arguments.seeds} --saturated {arguments.saturated}"
    report = Report(paper=paper, saturated=saturated, command=command, seeds_wanted=arguments.seeds)
    arguments.out.write_text(paper_report(report), encoding="utf-8")
    print(f"{arguments.out}: {len(paper)} months, {len(saturated)} saturated ones")
    return 0


def _month(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.cores.month import describe, run_month, users_for
    from condor_actors.simulation.cores.scale import memory_mib

    if arguments.days <= 0.0:
        return _wrong("--days is above 0")
    users = users_for(arguments.machines)
    for policy in arguments.policy:
        began_s = time.process_time()
        result = run_month(policy, arguments.seed, users, stations=arguments.machines,
                           length_s=arguments.days * 86400.0, progress=Progress(f"{policy}, days"))
        print(f"{policy}, seed {arguments.seed}\n{describe(result, users)}")
        print(f"processor time {time.process_time() - began_s:,.0f} s, memory {memory_mib():,.0f} MiB", flush=True)
    return 0


def _availability(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.cores.availability import compare

    print(compare(range(1, arguments.seeds + 1), arguments.days, Progress("months")))
    return 0


def _scale(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.cores.scale import header, line, measure, measure_cycle
    from condor_actors.simulation.report.scale_charts import write_charts

    if arguments.charts is not None:
        if arguments.out is None:
            return _wrong("--charts needs --out FILE with measurements")
        for path in write_charts(arguments.out, arguments.charts):
            print(path)
        return 0
    only = arguments.negotiator_only
    print("JSON lines: one for each measurement" if only else header())
    for machines in arguments.machines:
        for kinds in arguments.kinds:
            if only:
                text = shown = measure_cycle(machines, kinds).to_json()
            else:
                result = measure(machines, jobs_per_machine=arguments.jobs, hours=arguments.hours, kinds=kinds,
                                 budget_s=arguments.budget, progress=Progress(f"{machines:,} machines, {kinds} kinds"))
                text, shown = result.to_json(), line(result)
            print(shown, flush=True)
            if arguments.out is not None:
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")
    return 0


def _energy(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.energy import Plan, Watts, compare

    plan = Plan(machines=arguments.machines, days=arguments.days, jobs=arguments.jobs, seed=arguments.seed)
    print(compare(plan, Watts(*arguments.watts), Progress("energy")))
    return 0


def _what_if(arguments: argparse.Namespace) -> int:
    from condor_actors.simulation.cores.whatif import answer

    print(answer(config=arguments.config, against=arguments.against, ads=arguments.ads, history=arguments.history,
                 days=arguments.days, seed=arguments.seed, as_json=arguments.json, progress=Progress("what if")))
    return 0


def _wrong(text: str) -> int:
    print(f"condor_simulate: {text}", file=sys.stderr)
    return 2


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_simulate``."""
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has left: what is still held back for it is dropped
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        return 1


def _run(words: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if words is None else words)
    if given and given[0].split("=")[0] == "--seed":
        given.insert(0, "replay")
    arguments = command_parser().parse_args(given)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except (ConfigError, ValueError) as error:
        return _wrong(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _wrong(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
    except KeyboardInterrupt:
        print("\ncondor_simulate: interrupted; what --keep has is kept", file=sys.stderr)
        return 130
