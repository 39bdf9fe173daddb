#!/usr/bin/env python3
"""The members of a gang meet: values that one puts and others wait for, and channels between them.

Needs nothing but Python's own library: send this one file along with a job whose machines or image have nothing else of
the pool, or take it from where ``$_CONDOR_GANG_LIB`` says::

    import os, sys
    sys.path.append(os.environ["_CONDOR_GANG_LIB"])
    from condor_gang import Gang

    gang = Gang()
    if gang.number == 0:
        gang.put("address", b"10.0.0.1:5000")
    address = gang.wait("address", timeout=60)
    gang.barrier("ready")
    work = gang.channel("work")             # work.send(b"...") in one member, work.receive() in another

Only members of the same gang, in the same run of it, meet.  A value has one owner, who may replace it; a message goes
from one sender to one receiver at the moment when both are there.

As a program: ``condor_gang put KEY VALUE``, ``get KEY``, ``wait KEY``, ``send NAME VALUE``, ``receive NAME...``,
``barrier NAME``, with ``-timeout SECONDS`` before the word; ``-`` for a value is standard input.
"""

from __future__ import annotations

import os
import socket
import sys

MOST_BYTES = 128 * 1024
"""Of one value, and of one message."""
_EXISTS, _ABSENT = -4, -3
_ERRORS = {
    -1: "the cookie is not this job's", -2: "not allowed: the job is no member of a gang, or its run is over",
    -3: "there is no such value", -4: "another member has put it", -5: "too big: 128 KiB are the most",
    -6: "too many values: a member has at most 1000, of 256 KiB together",
    -8: "not understood: names have 1 to 200 letters, without blanks", -10: "too many wishes at once",
    -17: "the submit machine does not answer",
}


class GangError(Exception):
    """Something was not done; says why."""


class GangTimeout(GangError):
    """It did not happen in time; nothing was received, and what was to be sent may have been."""


class Channel:
    """A named channel of a gang; see :meth:`Gang.channel`."""

    def __init__(self, gang: Gang, name: str) -> None:
        self._gang = gang
        self.name = name

    def send(self, data: bytes, timeout: float | None = None) -> None:
        """Return when another member has received the message.

        Raises:
            GangTimeout: nobody did in time.
        """
        self._gang._ask(["gang_send", self.name, str(len(data))], data, timeout)

    def receive(self, timeout: float | None = None) -> bytes:
        """The next message sent to this node.

        Raises:
            GangTimeout: nobody did in time.
        """
        return self._gang.select([self.name], timeout)[2]


class Gang:
    """This member and the others.  One object is one connection, for one thread.

    Attributes:
        number: of this member, from 0.
        size: how many there are.
        hosts: their machines, by number.

    Raises:
        GangError: this is no member of a gang, or its machine has no chirp.
    """

    def __init__(self) -> None:
        try:
            self.number = int(os.environ["_CONDOR_PROCNO"])
            self.size = int(os.environ["_CONDOR_NPROCS"])
        except (KeyError, ValueError):
            raise GangError("this is no member of a gang: _CONDOR_PROCNO and _CONDOR_NPROCS are not set "
                            "(universe = parallel)") from None
        self.hosts = os.environ.get("_CONDOR_GANG_HOSTS", "").split(",")
        self._socket: socket.socket | None = None
        self._unread = b""
        self._connected()

    def put(self, key: str, value: bytes) -> None:
        """Let all members see a value; only who has put it may put another in its place."""
        self._ask(["gang_put", key, str(len(value))], value, None)

    def get(self, key: str) -> bytes | None:
        """A value; None: nobody has put it yet."""
        answer = self._ask(["gang_get", key], b"", None, absent=True)
        return None if answer is None else answer[2]

    def wait(self, key: str, timeout: float | None = None) -> bytes:
        """A value, as soon as a node has put it.

        Raises:
            GangTimeout: nobody has in time.
        """
        answer = self._ask(["gang_wait", key], b"", timeout)
        assert answer is not None
        return answer[2]

    def channel(self, name: str) -> Channel:
        """The channel of that name."""
        return Channel(self, name)

    def select(self, names: list[str], timeout: float | None = None) -> tuple[str, int, bytes]:
        """The next message on any of some channels: the channel, who sent it, the message.

        Raises:
            GangTimeout: there was none in time.
        """
        answer = self._ask(["gang_recv", " ".join(names)], b"", timeout)
        assert answer is not None
        return answer

    def barrier(self, name: str, timeout: float | None = None) -> None:
        """Return when all members have come here; each name serves once.

        Raises:
            GangTimeout: not all have in time, which is counted for each of them.
        """
        self.put(f"barrier/{name}/{self.number}", b"")
        for number in range(self.size):
            self.wait(f"barrier/{name}/{number}", timeout)

    def close(self) -> None:
        """End the connection; what is under way is given up."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._unread = None, b""

    # ---- the connection

    def _connected(self) -> socket.socket:
        if self._socket is None:
            path = os.environ.get("_CONDOR_CHIRP_CONFIG", "")
            try:
                with open(path, encoding="ascii") as stream:
                    host, port, cookie = stream.read().split()
                self._socket = socket.create_connection((host, int(port)), 60)
            except (OSError, ValueError) as error:
                raise GangError(f"cannot reach the starter by {path or '_CONDOR_CHIRP_CONFIG'}: {error}") from None
            self._say(["cookie", cookie], b"")
            self._number()
        return self._socket

    def _ask(self, words: list[str], data: bytes, timeout: float | None,
             absent: bool = False) -> tuple[str, int, bytes] | None:
        if len(data) > MOST_BYTES:
            raise GangError(f"{words[1]}: {len(data)} bytes; {MOST_BYTES} are the most")
        connection = self._connected()
        connection.settimeout(timeout)
        try:
            self._say(words, data)
            size = self._number(absent)
            if words[0] in ("gang_put", "gang_send") or size < 0:
                return None
            member, _, name = self._line().partition(" ")
            while len(self._unread) < size:
                self._read()
            found, self._unread = self._unread[:size], self._unread[size:]
            return name, int(member), found
        except TimeoutError:
            self.close()
            raise GangTimeout(f"{' '.join(words[:2])}: nothing within {timeout} s") from None
        except OSError as error:
            self.close()
            raise GangError(f"{' '.join(words[:2])}: the starter is gone: {error}") from None

    def _say(self, words: list[str], data: bytes) -> None:
        line = " ".join(word.replace("\\", "\\\\").replace(" ", "\\ ").replace("\n", "\\\n") for word in words)
        assert self._socket is not None
        self._socket.sendall(line.encode() + b"\n" + data)

    def _number(self, absent: bool = False) -> int:
        value = int(self._line())
        if value < 0 and not (absent and value == _ABSENT):
            raise GangError(_ERRORS.get(value, f"error {value}"))
        return value

    def _line(self) -> str:
        while b"\n" not in self._unread:
            self._read()
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _read(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(65536)
        if not data:
            self.close()
            raise GangError("the starter has closed the connection: the run is over")
        self._unread += data


def _value(word: str) -> bytes:
    return sys.stdin.buffer.read() if word == "-" else os.fsencode(word)


def main(words: list[str]) -> int:
    """The program; returns its exit status: 0 done, 1 not, 2 not understood, 3 not in time, 4 no such value."""
    timeout = None
    if len(words) > 1 and words[0] == "-timeout":
        try:
            timeout = float(words[1])
        except ValueError:
            words = ["-help"]
        else:
            words = words[2:]
    least = {"put": 2, "send": 2, "get": 1, "wait": 1, "receive": 1, "barrier": 1}
    if not words or words[0] not in least or len(words) - 1 < least[words[0]] or (
            words[0] != "receive" and len(words) - 1 > least[words[0]]):
        sys.stderr.write((__doc__ or "").rpartition("\n\n")[2])
        return 0 if words[:1] in (["-h"], ["-help"], ["--help"]) else 2
    verb, *rest = words
    try:
        gang = Gang()
        if verb == "put":
            gang.put(rest[0], _value(rest[1]))
        elif verb == "send":
            gang.channel(rest[0]).send(_value(rest[1]), timeout)
        elif verb == "barrier":
            gang.barrier(rest[0], timeout)
        else:
            found = gang.get(rest[0]) if verb == "get" else gang.wait(rest[0], timeout) if verb == "wait" \
                else gang.select(rest, timeout)[2]
            if found is None:
                sys.stderr.write(f"condor_gang get {rest[0]}: nobody has put it yet\n")
                return 4
            sys.stdout.buffer.write(found)
            sys.stdout.buffer.flush()
    except GangError as error:
        sys.stderr.write(f"condor_gang {' '.join(words)[:200]}: {error}\n")
        return 3 if isinstance(error, GangTimeout) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
