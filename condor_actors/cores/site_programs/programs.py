"""What is known of the programs of the site: the values of the configuration, and the ads that come of them.

**Source**: HTCondor's manual, "Daemon ClassAd Hooks", for the parameters and their meaning.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from condor_actors.classads import Expr

__all__ = ["Mode", "Publish", "SiteAd", "SiteAdsTold", "SiteProgram", "SiteSettings"]


class Mode(enum.Enum):
    """When a program runs; the value is the word of the configuration."""

    PERIODIC = "Periodic"
    WAIT_FOR_EXIT = "WaitForExit"
    ONE_SHOT = "OneShot"
    ON_DEMAND = "OnDemand"


class Publish(enum.Enum):
    """When new output is told to the collector at once (STARTD_CRON_AUTOPUBLISH)."""

    NEVER = "Never"
    ALWAYS = "Always"
    IF_CHANGED = "If_Changed"


@attrs.frozen(kw_only=True)
class SiteProgram:
    """One entry of STARTD_CRON_JOBLIST, SCHEDD_CRON_JOBLIST or BENCHMARKS_JOBLIST.

    Attributes:
        name: of the entry, in its letter case.
        executable, arguments, environment, directory: how it is started; the environment is all of it.
        mode: when it runs.
        period_s: from start to start; in WaitForExit from end to start; 0: OneShot and OnDemand need none.
        prefix: stands before each attribute that it prints.
        slots: the numbers of the slots that may have its output; empty: all.
        kill: whether a run that has lasted a period is ended for the next one.
        load: what it counts as in MAX_JOB_LOAD.
        benchmark: whether it is one of BENCHMARKS_JOBLIST, which have a limit of their own.
        hang_up: whether it gets SIGHUP on condor_reconfig; run_again: whether it is run again then.
        stdin: what it reads from its standard input.
        condition: it is started only where this holds for the machine; None: always.
    """

    name: str
    executable: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = "/"
    mode: Mode = Mode.PERIODIC
    period_s: float = 0.0
    prefix: str = ""
    slots: frozenset[int] = frozenset()
    kill: bool = False
    load: float = 0.01
    benchmark: bool = False
    hang_up: bool = False
    run_again: bool = False
    stdin: bytes = b""
    condition: Expr | None = None


@attrs.frozen(kw_only=True)
class SiteSettings:
    """All of them, and what they share.

    Attributes:
        programs: in the order of the list, no name twice.
        most_load: the sum of the loads of those that run at once; most_benchmark_load: of the benchmarks among them.
        publish: when their output is told.
        logs_failures: whether the output of one that ends with another status than 0 is logged.
    """

    programs: tuple[SiteProgram, ...] = ()
    most_load: float = 0.1
    most_benchmark_load: float = 1.0
    publish: Publish = Publish.NEVER
    logs_failures: bool = False


@attrs.frozen(kw_only=True)
class SiteAd:
    """One ad of a program's output.

    Attributes:
        program: the name of its program.
        tag: the name behind its separator; the next ad of the same program and tag takes its place.
        attributes: by name as they go into ads, with the prefix.
        slots: as of the program.
        constraint, slot_name, slot_type, slot_id: which slots it is for; None, empty: it does not say.
        size: of its text in bytes.
    """

    program: str
    tag: str = ""
    attributes: Mapping[str, Expr]
    slots: frozenset[int] = frozenset()
    constraint: Expr | None = None
    slot_name: str = ""
    slot_type: int | None = None
    slot_id: int | None = None
    size: int = 0

    @property
    def is_for_all(self) -> bool:
        """Whether it is for every slot."""
        return (self.constraint is None and not self.slots and not self.slot_name and self.slot_type is None
                and self.slot_id is None)


@attrs.frozen(kw_only=True)
class SiteAdsTold:
    """Local event of a daemon: all ads that hold now, and whether the collector is to hear of them at once."""

    ads: tuple[SiteAd, ...]
    now: bool
