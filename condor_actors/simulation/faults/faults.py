"""What goes wrong in a simulated pool: a language for schedules, and schedules made by chance.

One fault a line; ``#`` begins a comment; spans are ``90s``, ``5m``, ``1.5h``::

    at 120s crash m3/startd                    kill -9
    at 130s power m2 for 60s                   the machine is off; what was not synced is gone
    at 140s freeze m1/schedd for 45s           SIGSTOP
    at 150s cut m0 m3 for 90s                  nothing passes, either way
    at 160s cut m0 > m3 for 90s                nothing passes from m0 to m3
    at 170s slow m1 m2 for 60s delay 0.5s jitter 2s loss 0.3 rate 20000
    at 180s reset m0 m2                        connections break; what was under way is lost
    at 190s disk-full m1 for 30s               writes fail with ENOSPC
    at 200s disk-sick m1 for 10s               writes fail with EIO
    at 210s die m1/schedd before commit        killed right before (``after``) its next commit is durable
    at 220s clock m2 jump 3600s                someone sets the wall clock
    at 230s owner m2 for 10m                   the owner is at the machine
    at 240s kill-job m2                        someone kills the job there
    at 250s stop m3/startd                     SIGTERM
    at 255s bad m3 for 5m                      no program starts there
    at 256s mute m3 for 5m                     no startd of its pool answers those of other pools that ask for claims
    at 257s greedy m0 for 5m                   its schedds ask each startd elsewhere for four claims, not for one
    at 258s flood g1 g2 for 1m                 the gateway there asks the other one for forty ways each second
    at 260s ambush m0/schedd on shadow_host.RunEnded kill     killed by the next such message, before it looks at it
    at 260s ambush m0/schedd on shadow_host.RunEnded reset    the connection breaks right behind that message
    at 260s ambush m0/schedd on shadow_host.RunEnded raise    the turn of the next such message raises when all is done
    at 270s raise m3/starter-host before 7     the seventh turn from now raises before it has done anything
    at 270s raise m3/starter-host after 7      … or when it has done everything; what it sent is dropped
    at 270s raise m0/schedd edge 1             what waits for the next commit raises

Every fault that lasts ends by itself, so that after the last one the pool is whole again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.messages.codec import message_class
from condor_actors.simulation.faults.floods import flood

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool
    from condor_actors.simulation.world.process import Process

__all__ = ["BadSchedule", "Fault", "Faults", "parse_schedule"]

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
DAEMONS = ("master", "collector", "negotiator", "schedd", "startd", "kbdd", "shadow-host", "starter-host",
           "web", "gateway", "rooster", "dagman")
TOUCH_S = 15.0


class BadSchedule(ValueError):
    """A line that is no fault: names it and what was expected."""


@attrs.frozen(kw_only=True)
class Fault:
    """One fault; which fields mean something depends on ``kind``.

    Attributes:
        when_s, span_s: simulated seconds.
        target, other: machines; daemon: on ``target``.
        one_way: a cut from ``target`` to ``other`` only.
        values: ``delay jitter loss rate`` of a slow path, ``jump`` of a clock.
        moment: of ``die``: before or after; of ``ambush``: kill, reset or raise; of ``raise``: before, after or edge.
        message: that an ambush waits for; turn: which one raises, counted from now.
    """

    kind: str
    when_s: float
    target: str
    other: str = ""
    daemon: str = ""
    span_s: float = 0.0
    one_way: bool = False
    values: tuple[tuple[str, float], ...] = ()
    moment: str = ""
    message: str = ""
    turn: int = 0

    def __str__(self) -> str:
        words = [f"at {self.when_s:.10g}s", self.kind, self.target + (f"/{self.daemon}" if self.daemon else "")]
        if self.other:
            words += [">", self.other] if self.one_way else [self.other]
        if self.span_s:
            words += ["for", f"{self.span_s:.10g}s"]
        for name, value in self.values:
            words += [name, f"{value:.10g}" + ("s" if name in ("delay", "jitter", "jump") else "")]
        if self.message:
            words += ["on", self.message, self.moment]
        elif self.turn:
            words += [self.moment, str(self.turn)]
        elif self.moment:
            words += [self.moment, "commit"]
        return " ".join(words)

    @property
    def end_s(self) -> float:
        """When all is well again."""
        return self.when_s + self.span_s


# ---- the language


_FORMS = {
    "crash": {"daemon"}, "stop": {"daemon"}, "freeze": {"daemon", "span"}, "power": {"span"},
    "cut": {"pair", "span"}, "slow": {"pair", "span", "values"}, "reset": {"pair"}, "disk-full": {"span"},
    "disk-sick": {"span"}, "die": {"daemon", "moment"}, "clock": {"jump"}, "owner": {"span"}, "kill-job": set(),
    "bad": {"span"}, "mute": {"span"}, "greedy": {"span"}, "flood": {"pair", "span"},
    "ambush": {"daemon", "message"}, "raise": {"daemon", "turn"},
}
MOMENTS = ("before", "after", "edge")
AMBUSHED = ("kill", "reset", "raise")
_VALUES = ("delay", "jitter", "loss", "rate")


def parse_schedule(text: str, machines: Sequence[str] | None = None) -> tuple[Fault, ...]:
    """The faults of a schedule, in the order of time.

    Args:
        machines: the names that there are; None: any.

    Raises:
        BadSchedule: a line is no fault.
    """
    faults = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            try:
                faults.append(_Line(words, machines).fault())
            except BadSchedule as error:
                raise BadSchedule(f"line {number}: {error}\n    {line.strip()}") from None
    return tuple(sorted(faults, key=lambda fault: fault.when_s))


class _Line:
    """The words of one line, taken one by one."""

    def __init__(self, words: list[str], machines: Sequence[str] | None) -> None:
        self._words = words
        self._machines = machines

    def _take(self, what: str) -> str:
        if not self._words:
            raise BadSchedule(f"{what} is missing at the end")
        return self._words.pop(0)

    def _keyword(self, word: str) -> None:
        found = self._take(f"{word!r}")
        if found != word:
            raise BadSchedule(f"expected {word!r}, found {found!r}")

    def _span(self, what: str) -> float:
        word = self._take(f"{what} (90s, 5m, 1.5h)")
        try:
            return float(word[:-1]) * UNITS[word[-1]]
        except (KeyError, ValueError):
            raise BadSchedule(f"{what} must look like 90s, 5m or 1.5h, not {word!r}") from None

    def _machine(self) -> str:
        name = self._take("a machine")
        if self._machines is not None and name not in self._machines:
            raise BadSchedule(f"there is no machine {name!r}; there are {', '.join(self._machines)}")
        return name

    def _place(self) -> tuple[str, str]:
        machine, slash, daemon = self._take("machine/daemon").partition("/")
        if not slash or daemon not in DAEMONS:
            raise BadSchedule(f"expected machine/daemon with a daemon of {', '.join(DAEMONS)}, found "
                              f"{machine + slash + daemon!r}")
        self._words.insert(0, machine)
        return self._machine(), daemon

    def fault(self) -> Fault:
        """All of the line."""
        self._keyword("at")
        fields: dict[str, Any] = {"when_s": self._span("the time")}
        kind = fields["kind"] = self._take("a fault")
        needs = _FORMS.get(kind)
        if needs is None:
            raise BadSchedule(f"no fault is called {kind!r}; expected one of {', '.join(_FORMS)}")
        if "daemon" in needs:
            fields["target"], fields["daemon"] = self._place()
        else:
            fields["target"] = self._machine()
        if "pair" in needs:
            fields["one_way"] = bool(self._words) and self._words[0] == ">"
            if fields["one_way"]:
                self._words.pop(0)
            fields["other"] = self._machine()
        if "moment" in needs:
            moment = fields["moment"] = self._take("before or after")
            if moment not in ("before", "after"):
                raise BadSchedule(f"expected before or after, found {moment!r}")
            self._keyword("commit")
        if "message" in needs:
            self._keyword("on")
            message = fields["message"] = self._take("a message (shadow_host.RunEnded)")
            if message_class(f"condor.{message}", 1) is None:
                raise BadSchedule(f"there is no message condor.{message}")
            fields["moment"] = self._one_of(AMBUSHED)
        if "turn" in needs:
            fields["moment"] = self._one_of(MOMENTS)
            number = self._take("the number of a turn")
            if not number.isdecimal() or not int(number):
                raise BadSchedule(f"the number of a turn is 1 or more, not {number!r}")
            fields["turn"] = int(number)
        if "jump" in needs:
            self._keyword("jump")
            fields["values"] = (("jump", self._span("the jump")),)
        if "span" in needs:
            self._keyword("for")
            fields["span_s"] = self._span("the span")
        if "values" in needs:
            fields["values"] = tuple(self._values())
        if self._words:
            raise BadSchedule(f"{' '.join(self._words)!r} is too much")
        return Fault(**fields)

    def _one_of(self, words: Sequence[str]) -> str:
        found, expected = self._take(" or ".join(words)), ", ".join(words)
        if found not in words:
            raise BadSchedule(f"expected one of {expected}, found {found!r}")
        return found

    def _values(self) -> list[tuple[str, float]]:
        found = []
        while self._words:
            name = self._take("a value")
            if name not in _VALUES:
                raise BadSchedule(f"expected one of {', '.join(_VALUES)}, found {name!r}")
            if name in ("delay", "jitter"):
                found.append((name, self._span(name)))
            else:
                word = self._take(name)
                try:
                    found.append((name, float(word)))
                except ValueError:
                    raise BadSchedule(f"{name} must be a number, not {word!r}") from None
        return found


# ---- doing it


class Faults:
    """Carries a schedule out.

    Attributes:
        last_s: when the last one is over.
    """

    def __init__(self, pool: Pool, faults: Sequence[Fault]) -> None:
        self._pool = pool
        self.faults = tuple(faults)
        self.last_s = max((fault.end_s for fault in faults), default=0.0)
        self._active: dict[tuple[str, str], int] = {}

    def start(self) -> None:
        """Plan them all."""
        clock = self._pool.clock
        for fault in self.faults:
            clock.callLater(max(0.0, fault.when_s - clock.now_s), self._begin, fault)

    def _begin(self, fault: Fault) -> None:
        pool = self._pool
        pool.note("fault", str(fault))
        machine = pool.machines[fault.target]
        pool.disturbed(machine, fault.kind)
        getattr(self, "_" + fault.kind.replace("-", "_"))(fault, machine)

    def _later(self, fault: Fault, function: Callable[..., Any], *arguments: Any) -> None:
        self._pool.clock.callLater(fault.span_s, function, *arguments)

    def _process(self, fault: Fault, machine: SimulatedMachine) -> Any:
        found = [each for each in machine.processes.values() if each.kind == fault.daemon]
        return found[-1] if found else None

    def _crash(self, fault: Fault, machine: SimulatedMachine) -> None:
        for process in [each for each in machine.processes.values() if each.kind == fault.daemon]:
            machine.kill(process)

    def _stop(self, fault: Fault, machine: SimulatedMachine) -> None:
        process = self._process(fault, machine)
        if process is not None:
            self._pool.signal(process, 15)

    def _freeze(self, fault: Fault, machine: SimulatedMachine) -> None:
        process = self._process(fault, machine)
        if process is not None:
            process.freeze()
            self._later(fault, self._thaw, machine, process)

    def _thaw(self, machine: SimulatedMachine, process: Process) -> None:
        process.thaw()
        self._pool.disturbed(machine, "freeze")

    def _power(self, fault: Fault, machine: SimulatedMachine) -> None:
        if machine.powered:
            machine.lose_power()
            self._later(fault, machine.boot)

    def _hold(self, what: str, fault: Fault, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Faults of one kind may overlap: the last one to end ends them."""
        key = (what, f"{fault.target} {fault.other}")
        self._active[key] = self._active.get(key, 0) + 1
        begin()

        def over() -> None:
            self._active[key] -= 1
            if not self._active[key]:
                end()

        self._later(fault, over)

    def _ways(self, fault: Fault) -> list[tuple[str, str]]:
        ways = [(fault.target, fault.other)]
        return ways if fault.one_way else [*ways, (fault.other, fault.target)]

    def _cut(self, fault: Fault, machine: SimulatedMachine) -> None:
        network = self._pool.network

        def begin() -> None:
            for way in self._ways(fault):
                network.change(*way).cut = True

        self._hold("path", fault, begin, lambda: self._mend(fault))

    def _mend(self, fault: Fault) -> None:
        for way in ((fault.target, fault.other), (fault.other, fault.target)):
            self._pool.network.mend(*way)

    def _slow(self, fault: Fault, machine: SimulatedMachine) -> None:
        network, values = self._pool.network, dict(fault.values)

        def begin() -> None:
            for way in self._ways(fault):
                path = network.change(*way)
                path.delay_s = max(path.delay_s, values.get("delay", 0.0))
                path.jitter_s = values.get("jitter", 0.0)
                path.loss = values.get("loss", 0.0)
                path.bytes_per_s = values.get("rate", 0.0)

        self._hold("path", fault, begin, lambda: self._mend(fault))

    def _reset(self, fault: Fault, machine: SimulatedMachine) -> None:
        pair = {fault.target, fault.other}
        self._pool.network.reset(lambda one, other: {one, other} == pair)

    def _disk_full(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._hold("full", fault, lambda: setattr(machine.disk, "full", True),
                   lambda: setattr(machine.disk, "full", False))

    def _disk_sick(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._hold("sick", fault, lambda: setattr(machine.disk, "sick", True),
                   lambda: setattr(machine.disk, "sick", False))

    def _bad(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._hold("bad", fault, lambda: setattr(machine, "bad", True), lambda: setattr(machine, "bad", False))

    def _wrong(self, fault: Fault, machine: SimulatedMachine) -> None:
        pool, wrongdoers = machine.spec.pool, self._pool.network.wrongdoers[fault.kind]
        key = attrs.evolve(fault, target=pool)
        self._hold(fault.kind, key, lambda: wrongdoers.add(pool), lambda: wrongdoers.discard(pool))

    _mute = _greedy = _wrong

    def _floods(self, fault: Fault, machine: SimulatedMachine) -> None:
        flood(self._pool, machine, self._pool.machines[fault.other], self._pool.clock.now_s + fault.span_s)

    _flood = _floods

    def _die(self, fault: Fault, machine: SimulatedMachine) -> None:
        machine.disk.deadly[fault.daemon] = fault.moment

    def _ambush(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._pool.network.ambushes[machine.name, fault.daemon, f"condor.{fault.message}"] = fault.moment

    def _raise(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._pool.trips.arm(machine.name, fault.daemon, fault.moment, fault.turn)

    def _clock(self, fault: Fault, machine: SimulatedMachine) -> None:
        machine.offset_s += dict(fault.values)["jump"]

    def _owner(self, fault: Fault, machine: SimulatedMachine) -> None:
        self._pool.owner_comes(machine, fault.span_s)

    def _kill_job(self, fault: Fault, machine: SimulatedMachine) -> None:
        for job in tuple(machine.jobs.values()):
            job.signal(9)
