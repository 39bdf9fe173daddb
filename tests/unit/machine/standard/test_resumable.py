"""A stream whose connections break anywhere carries every frame once, and in order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from condor_actors.machine.standard.execute_endpoint import ExecuteEndpoint
from condor_actors.machine.standard.resuming import FarLine, HomeLine, Redialling
from condor_actors.machine.standard.submit_endpoint import SubmitEndpoint
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList
from condor_actors.transfer.numbered_frames import WINDOW_BYTES
from condor_actors.wire.relays.hop import NoCircuit
from condor_actors.wire.relays.lines import NOBODY_THERE

RUN, KEY, LEASE_S, NOBODY_S = "1.0#1", "a-transfer-key", 600.0, 100.0
LOST = Failure(ConnectionLost())


class Home(SubmitEndpoint):
    """The end at home; keeps what comes."""

    def __init__(self, clock: Clock, interrupted: Callable[[], None] | None) -> None:
        self.came_here: list[bytes] = []
        self.why: list[str] = []
        self.ready: list[str] = []
        super().__init__(clock, local=True, run_id=RUN, key=KEY, ready=self.ready.append, lost=self.why.append,
                         image_kept=self.image, old_image=self.old, image="", vacating=lambda: None,
                         interrupted=interrupted)

    def image(self, pieces: ImageList, done: Callable[[int, str], None]) -> None:
        raise AssertionError

    def old(self, increment: bool) -> tuple[str, ImageList | None]:
        raise AssertionError

    def channel_data(self, member: int, data: bytes) -> None:
        self.came_here.append(data)


class Far(ExecuteEndpoint):
    """The end beside the runtime; keeps what comes."""

    def __init__(self, clock: Clock, accept: Callable[[str, str], Any]) -> None:
        self.came_here: list[bytes] = []
        super().__init__(clock, local=True, accept=accept)

    def channel_data(self, member: int, data: bytes) -> None:
        self.came_here.append(data)


class Run:
    """What the starter has of the run."""

    lease_s = LEASE_S

    def __init__(self) -> None:
        self.stream: Far | None = None
        self.over = ""

    def attached(self, stream: Far, answer: Callable[[str], None]) -> None:
        self.stream = stream
        answer("")

    def lasting_stream(self) -> Far | None:
        return self.stream if self.stream is not None and self.stream.lasts and not self.stream.over else None

    def detached(self, stream: Far, reason: str) -> None:
        self.over = reason


class Wire:
    """One connection between two protocols, whose bytes are passed on in pieces, until it breaks."""

    def __init__(self, home: Any, far: Any) -> None:
        self.ends = (home, far)
        self.transports = (StringTransport(), StringTransport())
        self.broken = False
        home.makeConnection(self.transports[0])
        line, _, rest = self.transports[0].value().partition(b"\n")
        self.transports[0].clear()
        assert line + b"\n" in (ss.STANDARD_LINE, ss.RESUMED_LINE)
        far.makeConnection(self.transports[1])
        far.dataReceived(rest)

    def pass_on(self, chance: random.Random | None = None) -> None:
        """What was written, or a part of it."""
        for index, transport in enumerate(self.transports):
            data = transport.value()
            part = chance.randint(0, len(data)) if chance is not None else len(data)
            transport.clear()
            if data[part:]:
                transport.write(data[part:])
            if data[:part]:
                self.ends[1 - index].dataReceived(data[:part])

    def cut(self, *order: int) -> None:
        """It breaks, and each end hears of it (in this order)."""
        for index in order or (0, 1):
            self.ends[index].connectionLost(LOST)


def a_stream(clock: Clock, *, lasts: bool = True) -> tuple[Home, Run, Wire]:
    """A stream that has begun."""
    run = Run()
    home = Home(clock, (lambda: None) if lasts else None)
    wire = Wire(home, Far(clock, lambda run_id, key: run if (run_id, key) == (RUN, KEY) else None))
    for _ in range(3):
        wire.pass_on()
    assert home.ready == [""]
    return home, run, wire


def again(clock: Clock, home: Home, run: Run, failed: Callable[[str, bool], None] | None = None) -> Wire:
    """Another connection for it, which may break before it has answered, too."""
    def not_refused(why: str, said: bool) -> None:
        assert not said, why

    return Wire(HomeLine(clock, (RUN, KEY), home, failed or not_refused), FarLine(clock, lambda *shown: run))


@pytest.mark.parametrize("seed", range(30))
def test_every_frame_comes_once_and_in_order_wherever_connections_break(seed: int) -> None:
    chance, clock = random.Random(seed), Clock()
    home, run, wire = a_stream(clock)
    far = run.stream
    assert far is not None
    said: dict[Any, list[bytes]] = {home: [], far: []}
    for number in range(300):
        one = chance.choice((home, far))
        said[one].append(b"%d " % number * chance.randint(1, 400))
        one.forward(0, said[one][-1])
        what = chance.random()
        if what < 0.15:
            wire.cut(*chance.choice(((0, 1), (1, 0), (0,))))  # or one end knows nothing of it yet
            home.forward(0, b"meanwhile")
            said[home].append(b"meanwhile")
            wire = again(clock, home, run)
        elif what < 0.7:
            wire.pass_on(chance)
        else:
            clock.advance(chance.random())
    for _ in range(4):
        wire.pass_on()
        clock.advance(2.0)
    assert far.came_here == said[home]
    assert home.came_here == said[far]
    for end in (home, far):
        assert end._numbers is not None  # nothing is kept that has arrived
        assert end._numbers.unacknowledged == ()


def test_what_comes_late_over_the_connection_before_comes_once() -> None:
    """The starter has not heard yet that it broke, and what was under way arrives after it was sent again."""
    clock = Clock()
    home, run, before = a_stream(clock)
    assert run.stream is not None
    home.forward(0, b"once")
    before.cut(0)
    wire = again(clock, home, run)
    for _ in range(3):
        wire.pass_on()
    assert run.stream.came_here == [b"once"]
    assert before.transports[0].value(), "it is under way"
    before.pass_on()
    for _ in range(3):
        wire.pass_on()
    assert run.stream.came_here == [b"once"]


def test_what_waits_for_a_connection_is_bounded() -> None:
    clock = Clock()
    home, run, wire = a_stream(clock)
    assert run.stream is not None
    wire.cut()
    assert home._paused
    wire = again(clock, home, run)
    wire.pass_on()
    assert not home._paused
    while not home._paused:
        home.forward(0, bytes(256 << 10))
    assert sum(map(len, run.stream.came_here)) == 0
    for _ in range(3):
        wire.pass_on()
    assert WINDOW_BYTES - (1 << 20) < sum(map(len, run.stream.came_here)) < WINDOW_BYTES + (1 << 20)
    assert not home._paused


def test_one_that_is_ended_does_not_wait_at_the_other_end() -> None:
    for ends in ("home", "far"):
        clock = Clock()
        home, run, wire = a_stream(clock)
        assert run.stream is not None
        (home if ends == "home" else run.stream).cut("enough")
        wire.pass_on()
        assert home.over
        assert run.stream.over
        refused: list[tuple[str, bool]] = []
        again(clock, home, run, lambda why, said, into=refused: into.append((why, said))).pass_on()
        assert [said for _, said in refused] == [True]


def test_the_starter_waits_for_its_lease_and_no_longer() -> None:
    clock = Clock()
    home, run, wire = a_stream(clock)
    wire.cut(1)
    clock.advance(LEASE_S - 1)
    assert run.over == ""
    wire = again(clock, home, run)
    wire.cut(1)
    clock.advance(LEASE_S - 1)
    assert run.over == ""
    clock.advance(2)
    assert "no other came in time" in run.over


def test_home_dials_for_its_lease_and_no_longer() -> None:
    clock, dialled = Clock(), []

    class Nowhere:
        def connect(self, factory: Any) -> Any:
            dialled.append(clock.seconds())
            return Failing()

    class Failing:
        def addErrback(self, function: Callable[[Failure], None]) -> None:  # noqa: N802
            function(LOST)

    home, _, wire = a_stream(clock)
    redialling = Redialling(clock, (RUN, KEY), Nowhere, LEASE_S, NOBODY_S)  # type: ignore[arg-type]
    wire.cut(0)
    redialling.begin(home)
    clock.pump([1.0] * int(LEASE_S + 10))
    assert home.over
    assert "within the job's lease" in home.why[0]
    assert LEASE_S <= dialled[-1] <= LEASE_S + 6
    assert 100 < len(dialled) < 140


@pytest.mark.parametrize(("gateway_away_s", "ends"), [(None, NOBODY_S), (50.0, 50.0 + NOBODY_S)])
def test_home_dials_less_long_for_a_machine_that_does_not_answer_its_own_gateway(
        gateway_away_s: float | None, ends: float) -> None:
    """A gateway that is away in between says nothing about the machine: the time begins again."""
    clock = Clock()

    class Gateways:
        def connect(self, factory: Any) -> Any:
            away = gateway_away_s is not None and clock.seconds() < gateway_away_s
            return Answering("through the gateway <g:1>: <p:2>: " + ("refused" if away else NOBODY_THERE))

    class Answering:
        def __init__(self, why: str) -> None:
            self.why = why

        def addErrback(self, function: Callable[[Failure], None]) -> None:  # noqa: N802
            function(Failure(NoCircuit(self.why)))

    home, _, wire = a_stream(clock)
    redialling = Redialling(clock, (RUN, KEY), Gateways, LEASE_S, NOBODY_S)  # type: ignore[arg-type]
    wire.cut(0)
    redialling.begin(home)
    clock.pump([0.5] * int(2 * (ends - 5)))
    assert not home.over
    clock.pump([0.5] * 30)
    assert home.over
    assert "does not answer its own pool's gateway" in home.why[0]


def test_a_home_that_does_not_want_it_and_a_starter_that_does_not_offer_it() -> None:
    clock = Clock()
    home, run, wire = a_stream(clock, lasts=False)
    assert run.stream is not None
    assert not home.lasts
    assert not run.stream.lasts
    wire.cut()
    assert home.over
    assert run.stream.over
    home = Home(clock, lambda: None)
    home.makeConnection(StringTransport())
    home.dataReceived(ss.frame(ss.READY))  # of a host that knows nothing of it
    assert home.ready == [""]
    assert not home.lasts


@pytest.mark.parametrize("frame", [
    ss.arrived_frame(1), ss.frame(ss.ARRIVED, b"seven b"), ss.frame(ss.RESUMED), ss.frame(ss.KEY)])
def test_an_end_that_says_what_cannot_be_is_cut(frame: bytes) -> None:
    _, run, wire = a_stream(Clock())
    assert run.stream is not None
    run.stream.dataReceived(frame)
    wire.pass_on()
    assert run.stream.over


@pytest.mark.parametrize("first", [
    ss.message_frame(ss.RESUMED, RUN, KEY, -1), ss.message_frame(ss.RESUMED, RUN, KEY, 1 << 62),
    ss.message_frame(ss.KEY, RUN, KEY), ss.frame(ss.RESUMED, bytes(9000)), ss.frame(ss.RESUMED, b"\xc1")])
def test_a_stranger_on_another_connection_does_not_touch_the_stream(first: bytes) -> None:
    clock = Clock()
    home, run, wire = a_stream(clock)
    assert run.stream is not None
    line, transport = FarLine(clock, lambda run_id, key: run if key == KEY else None), StringTransport()
    line.makeConnection(transport)
    line.dataReceived(first)
    assert transport.disconnected
    home.forward(0, b"still here")
    wire.pass_on()
    assert run.stream.came_here == [b"still here"]
