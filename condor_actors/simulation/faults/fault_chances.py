"""Schedules of faults made by chance: which faults, how often, where and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

import attrs

from condor_actors.simulation.faults.faults import Fault

if TYPE_CHECKING:
    from condor_actors.simulation.world.scenario import MachineSpec

__all__ = ["AMBUSHES", "random_schedule"]

RAISES = 15.0
"""How often turns and edges raise where they may: more often than any other fault."""


def random_schedule(random: Random, machines: Sequence[MachineSpec], begin_s: float, end_s: float,
                    count: int, raises: bool = False) -> tuple[Fault, ...]:
    """Draw ``count`` faults between ``begin_s`` and ``end_s``; all are over at ``end_s``.

    Args:
        random: the source of chance.
        machines: of the pool.
        begin_s, end_s: seconds of simulated time.
        count: how many faults.
        raises: whether turns and edges of actors may raise as well.
    """
    faults = []
    chances = {**_CHANCES, "raise": (RAISES, _raise), "ambush": (14.0, _raising_ambush)} if raises else _CHANCES
    for _ in range(count):
        when_s = round(random.uniform(begin_s, end_s * 0.85), 3)
        kind = random.choices(list(chances), [weight for weight, _ in chances.values()])[0]
        fault = chances[kind][1](random, machines, when_s)
        if fault is not None:
            span_s = min(fault.span_s, end_s - when_s)
            faults.append(attrs.evolve(fault, span_s=round(span_s, 3)))
    return tuple(sorted(faults, key=lambda fault: fault.when_s))


def _daemons_of(spec: MachineSpec) -> list[str]:
    found = ["master"]
    if spec.central:
        found += ["collector", "negotiator"]
    if spec.submits:
        found += ["schedd", "schedd", "shadow-host", "shadow-host"]
    if spec.executes:
        found += ["startd", "startd", "starter-host"]
    return found + (["kbdd"] if spec.kbdd else []) + (["web"] if spec.web else []) \
        + (["gateway"] * 3 if spec.gateway else [])


def _some(random: Random, machines: Sequence[MachineSpec]) -> MachineSpec:
    """Machines with more of the pool on them are hit more often."""
    return random.choices(machines, [1.0 + 3.0 * spec.central + 4.0 * spec.submits + 4.0 * spec.gateway
                                     for spec in machines])[0]


def _pair(random: Random, machines: Sequence[MachineSpec]) -> tuple[str, str]:
    one = _some(random, machines)
    other = random.choice([spec for spec in machines if spec is not one])
    return (one.name, other.name) if random.random() < 0.5 else (other.name, one.name)


def _span(random: Random, low_s: float, high_s: float) -> float:
    """Short ones and long ones are equally likely."""
    return round(float(low_s * (high_s / low_s) ** random.random()), 3)


def _crash(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    spec = _some(random, machines)
    return Fault(kind="crash", when_s=when_s, target=spec.name, daemon=random.choice(_daemons_of(spec)))


def _stop(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    return attrs.evolve(_crash(random, machines, when_s), kind="stop")


def _freeze(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    return attrs.evolve(_crash(random, machines, when_s), kind="freeze", span_s=_span(random, 1.0, 300.0))


def _die(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault | None:
    spec = _some(random, machines)
    daemons = [name for name in _daemons_of(spec) if name in ("schedd", "startd", "negotiator")]
    if not daemons:
        return None
    return Fault(kind="die", when_s=when_s, target=spec.name, daemon=random.choice(daemons),
                 moment=random.choice(("before", "after")))


AMBUSHES = {
    "schedd": ("shadow_host.RunEnded", "shadow_host.RunUpdated", "shadow_host.NoticesWritten",
               "shadow_host.ShadowHostHello", "claim.ClaimGranted", "negotiate.MatchesMade",
               "negotiate.NegotiateRequests", "claim.ClaimRevoked", "submission.SubmitPage", "submission.SubmitItems",
               "claim.ClaimsRenewed"),
    "startd": ("claim.RequestClaim", "claim.ReleaseClaim", "claim.RenewClaims", "claim.ClaimActivity",
               "claim.StarterHostHello", "negotiate.MatchNotice", "claim.DeclineMatch"),
    "starter-host": ("run.ActivateClaim", "run.ReattachRun", "run.OutputsReceived", "run.StopRun", "claim.OpenClaim",
                     "claim.CloseClaim", "claim.SuspendClaim"),
    "shadow-host": ("shadow_host.HostOrders", "shadow_host.BecomeOwner", "run.Activated", "run.Reattached",
                    "run.RunBegan", "run.RunExited", "run.RunProgress", "run.StopRun"),
    "negotiator": ("negotiate.ResourceRequests", "advertise.AdsChanged"),
    "collector": ("advertise.UpdateAd", "advertise.SubscribeAds"),
    "gateway": ("flock.AnnounceGateway", "flock.OpenCircuit", "advertise.AdsPage"),
}
"""What each daemon may be ambushed with."""


def _raising_ambush(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault | None:
    return _ambush(random, machines, when_s, ("kill", "reset", "raise"))


def _ambush(random: Random, machines: Sequence[MachineSpec], when_s: float,
            moments: tuple[str, ...] = ("kill", "reset")) -> Fault | None:
    spec = _some(random, machines)
    daemons = [name for name in _daemons_of(spec) if name in AMBUSHES]
    if not daemons:
        return None
    daemon = random.choice(daemons)
    return Fault(kind="ambush", when_s=when_s, target=spec.name, daemon=daemon,
                 message=random.choice(AMBUSHES[daemon]), moment=random.choice(moments))


def _raise(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    moment = random.choice(("before", "after", "after", "edge"))
    return attrs.evolve(_crash(random, machines, when_s), kind="raise", moment=moment,
                        turn=1 if moment == "edge" else random.randrange(1, 30))


def _on_machine(kind: str, low_s: float, high_s: float) -> Callable[[Random, Sequence[MachineSpec], float], Fault]:
    def make(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
        return Fault(kind=kind, when_s=when_s, target=_some(random, machines).name,
                     span_s=_span(random, low_s, high_s) if high_s else 0.0)

    return make


def _cut(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    one, other = _pair(random, machines)
    return Fault(kind="cut", when_s=when_s, target=one, other=other, one_way=random.random() < 0.4,
                 span_s=_span(random, 1.0, 600.0))


def _slow(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    one, other = _pair(random, machines)
    values = (("delay", _span(random, 0.001, 3.0)), ("jitter", _span(random, 0.001, 5.0)),
              ("loss", round(random.choice((0.0, 0.05, 0.3, 0.6)), 3)), ("rate", random.choice((0.0, 2e4, 1e6))))
    return Fault(kind="slow", when_s=when_s, target=one, other=other, one_way=random.random() < 0.3,
                 span_s=_span(random, 5.0, 600.0), values=values)


def _reset(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    one, other = _pair(random, machines)
    return Fault(kind="reset", when_s=when_s, target=one, other=other)


def _clock(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault:
    jump_s = _span(random, 0.5, 86400.0) * random.choice((-1.0, 1.0))
    return Fault(kind="clock", when_s=when_s, target=_some(random, machines).name, values=(("jump", jump_s),))


def _owner(random: Random, machines: Sequence[MachineSpec], when_s: float) -> Fault | None:
    desks = [spec for spec in machines if spec.kbdd]
    if not desks:
        return None
    return Fault(kind="owner", when_s=when_s, target=random.choice(desks).name, span_s=_span(random, 5.0, 1200.0))


_CHANCES: dict[str, tuple[float, Callable[[Random, Sequence[MachineSpec], float], Fault | None]]] = {
    "crash": (8.0, _crash), "stop": (1.5, _stop), "freeze": (2.0, _freeze),
    "power": (2.0, _on_machine("power", 5, 400)), "cut": (4.0, _cut), "slow": (2.0, _slow), "reset": (4.0, _reset),
    "disk-full": (0.7, _on_machine("disk-full", 1, 60)),
    "disk-sick": (0.7, _on_machine("disk-sick", 1, 60)), "die": (3.0, _die), "clock": (1.0, _clock),
    "ambush": (14.0, _ambush), "owner": (3.0, _owner), "kill-job": (1.5, _on_machine("kill-job", 0, 0)),
    "bad": (1.0, _on_machine("bad", 10, 300)),
}
