"""Chirp's requests, byte by byte: the queries to the shadow, and what the client hears."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.chirp_protocol import Bucket, may_be_delayed, words_of
from condor_actors.cores.starter.chirp_session import ChirpRights, ChirpSession, ChirpSettings
from condor_actors.cores.starter.chirp_verbs import Call, Delay, HangUp, Look, Say, repeatable
from condor_actors.messages.run import ChirpResult

ALL = ChirpRights(files=True, updates=True, delayed=True)


class Home:
    """A shadow with files in memory, and a client that writes down what it hears."""

    def __init__(self, rights: ChirpRights = ALL) -> None:
        self.session = ChirpSession(rights, count(1))
        self.files: dict[str, bytearray] = {}
        self.calls: list[Call] = []
        self.heard = b""
        self.hung_up = False

    def send(self, data: bytes, piece: int = 1 << 20) -> bytes:
        """Send it in pieces; what is heard."""
        before = len(self.heard)
        for at in range(0, len(data), piece):
            self._perform(self.session.received(data[at: at + piece]))
        return self.heard[before:]

    def _perform(self, steps: list[Any]) -> None:
        while steps:
            (step,) = steps[:1]
            steps = steps[1:]
            if isinstance(step, Say):
                self.heard += step.data
                steps = steps or self.session.answered(None)
            elif isinstance(step, Call):
                self.calls.append(step)
                steps = self.session.answered(self.answer(step))
            elif isinstance(step, Delay):
                steps = self.session.answered(0)
            elif isinstance(step, Look):
                steps = self.session.answered("7" if step.name == "Known" else None)
            else:
                assert isinstance(step, HangUp)
                self.hung_up = True

    def answer(self, call: Call) -> ChirpResult:
        """As a shadow does."""
        if call.verb == "open":
            if "c" not in call.other and call.path not in self.files:
                return ChirpResult(value=-3)
            file = self.files.setdefault(call.path, bytearray())
            if "t" in call.other:
                file.clear()
            return ChirpResult(value=0, data=b"1 2 3\n")
        file = self.files.get(call.path, bytearray())
        if call.verb == "read":
            _, offset, length = call.numbers
            return ChirpResult(value=max(0, len(file) - offset), data=bytes(file[offset: offset + length]))
        if call.verb == "write":
            offset = len(file) if call.numbers[1] < 0 else call.numbers[1]
            file[len(file):] = bytes(max(0, offset - len(file)))
            file[offset: offset + len(call.data)] = call.data
            return ChirpResult(value=len(call.data))
        if call.verb == "fstat":
            return ChirpResult(value=len(file), data=b"facts\n")
        return ChirpResult(value=0, data=b"facts\n")


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_a_file_is_written_and_read(piece: int) -> None:
    home = Home()
    assert home.send(b"open a\\ file rwct 420\nwrite 0 10\n0123456789lseek 0 2 0\nread 0 100\nlseek 0 -3 2\n"
                     b"read 0 100\nclose 0\nclose 0\n", piece) == b"0\n1 2 3\n10\n2\n8\n234567897\n3\n7890\n-12\n"
    assert home.files == {"a file": bytearray(b"0123456789")}


def test_a_large_file_travels_in_pieces() -> None:
    home, data = Home(), bytes(range(256)) * 4000
    assert home.send(b"putfile big 420 %d\n" % len(data) + data) == b"0\n%d\n" % len(data)
    assert home.send(b"getfile big\n") == b"%d\n" % len(data) + data
    assert max(len(call.data) for call in home.calls) <= 128 * 1024
    assert [call.verb for call in home.calls].count("close") == 2


def test_strides() -> None:
    home = Home()
    home.files["f"] = bytearray(b"abcdefghij")
    home.send(b"open f rw 0\n")
    assert home.send(b"sread 0 6 1 2 4\n") == b"5\nbcfgj"
    assert home.send(b"swrite 0 4 0 2 5\nWXYZ") == b"4\n"
    assert home.files["f"] == b"WXcdeYZhij"
    assert home.send(b"sread 0 4 0 0 4\nsread 0 9999999 0 1 1\n") == b"-8\n-5\n"


def test_what_cannot_be_written_is_read_all_the_same() -> None:
    home = Home()
    assert home.send(b"write 7 4\nblahversion\n") == b"-12\n2\n"
    assert Home(ChirpRights(updates=True)).send(b"write 0 9\nversion\n\nversion\n") == b"-2\n2\n"


def test_who_appends_says_no_position() -> None:
    home = Home()
    home.files["log"] = bytearray(b"one\n")
    home.send(b"open log wa 0\nwrite 0 4\ntwo\n")
    assert home.files["log"] == b"one\ntwo\n"
    assert not repeatable(home.calls[-1])
    assert repeatable(Call("write", "f", "w", (1, 0), b"x"))
    assert not repeatable(Call("unlink", "f"))
    assert not repeatable(Call("open", "f", "wcx", (1, 0)))


def test_the_job_itself() -> None:
    home = Home()
    assert home.send(b"set_job_attr Mine 6\\ *\\ 7\n") == b"0\n"
    assert home.calls[-1] == Call("set_job_attr", "Mine", "6 * 7")
    assert home.send(b"set_job_attr Two\\ words 1\nset_job_attr_delayed ChirpX 1\n") == b"-8\n0\n"
    assert home.send(b"get_job_attr_delayed Known\nget_job_attr_delayed Other\n") == b"1\n7-3\n"
    assert home.send(b"whoami 100\nwhoareyou x 3\nlookup a\nconstrain TRUE\n") == b"6\nCONDOR-6\n1\na-2\n"
    assert home.send(b"ulog a\\ line\\\nof\\ two\n") == b"0\n"
    assert home.calls[-1].data == b"a line\nof two"


@pytest.mark.parametrize("line", [
    b"", b"nothing", b"open x", b"open x r y", b"read 0", b"read 0 99999999999999999999999", b"stat \xff\xfe",
    b"stat a\0b", b"lseek 0 0 0 0", b"phase begin", b"cookie x",
])  # fmt: skip
def test_nonsense(line: bytes) -> None:
    home = Home()
    assert home.send(line + b"\nversion\n") == b"-8\n2\n"
    assert not home.calls


def test_a_line_that_does_not_end() -> None:
    home = Home()
    assert home.send(b"stat " + b"x" * 6000, 1000) == b"-5\n"
    assert home.hung_up
    assert home.send(b"\nversion\n") == b""


def test_positions_have_their_bounds() -> None:
    home = Home()
    home.send(b"open f wc 0\n")
    assert home.send(b"lseek 0 -1 0\nlseek 0 %d 0\nlseek 9 0 0\nlseek 0 0 7\n" % (1 << 61)) == b"-8\n-8\n-12\n-8\n"
    assert home.send(b"pread 0 -5 0\npread 0 5 -1\npwrite 0 -1 0\n") == b"-8\n-8\n-8\n"


def test_there_may_be_so_many_open_and_all_are_closed() -> None:
    home = Home()
    said = home.send(b"open f wc 0\n" * 65)
    assert said.endswith(b"-9\n")
    assert said.count(b"1 2 3\n") == 64
    closing = home.session.lost()
    assert {call.verb for call in closing} == {"close"}
    assert len({call.numbers for call in closing}) == 64


def test_a_file_that_becomes_shorter_ends_the_connection() -> None:
    home = Home()
    home.files["f"] = bytearray(300_000)
    answers = iter([ChirpResult(value=0), ChirpResult(value=300_000, data=bytes(131072)), ChirpResult(value=0)])
    home.answer = lambda call: next(answers)  # type: ignore[method-assign]
    assert len(home.send(b"getfile f\n")) == len(b"300000\n") + 131072
    assert home.hung_up


def test_what_a_job_may_ask_for() -> None:
    settings = ChirpSettings()
    assert settings.rights_of(ClassAd({"WantIOProxy": True})) == ALL
    assert settings.rights_of(ClassAd()) == ChirpRights(delayed=True)
    assert settings.rights_of(ClassAd({"WantRemoteUpdates": True, "WantDelayedUpdates": False})) == ChirpRights(
        updates=True)
    assert not ChirpSettings(enabled=False).rights_of(ClassAd({"WantIOProxy": True}))
    assert ChirpSettings(files=False).rights_of(ClassAd({"WantIOProxy": True})) == ChirpRights(delayed=True)


def test_words_names_and_rates() -> None:
    assert words_of(b" a\\ b  c\\\\ \\\nd ") == [b"a b", b"c\\", b"\nd"]
    assert may_be_delayed("chirpStep", ("Chirp*",))
    assert not may_be_delayed("Step", ("Chirp*",))
    assert not may_be_delayed("Chirp Step", ("Chirp*",))
    bucket = Bucket(per_s=2.0, burst=3.0)
    assert [bucket.takes(10.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.takes(10.5)
    assert not bucket.takes(10.5)
