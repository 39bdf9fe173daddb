"""Leaves something on its way through every kind of socket, rests, and takes it out: moved meanwhile, or not."""

import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable

REST_S = float(sys.argv[1])
RIGHTS = socket.SCM_RIGHTS
PLACES = (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)), (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "named"), (socket.AF_UNIX, socket.SOCK_STREAM, "\0abstract"),
    (socket.AF_UNIX, socket.SOCK_SEQPACKET, "packets"),
)  # fmt: skip
Ending = Callable[[], object]


def listening(place: int) -> socket.socket:
    family, kind, name = PLACES[place]
    listener = socket.socket(family, kind)
    listener.bind(name)
    listener.listen(5)
    return listener


def dial(listener: socket.socket) -> socket.socket:
    one = socket.socket(listener.family, listener.type)
    one.connect(listener.getsockname())
    return one


def everything(one: socket.socket, times: int) -> bytes:
    return b"|".join(one.recv(1000) for _ in range(times))


def connection(place: int, watch: select.epoll) -> Ending:
    """Bytes both ways, two that wait to be accepted, a shut direction, a watched listener."""
    listener = listening(place)
    near = dial(listener)
    far, _ = listener.accept()
    near.send(b"one")
    far.send(b"back")
    waiting = [dial(listener) for _ in range(2)]
    for number, each in enumerate(waiting):
        each.send(b"waits %d" % number)
    waiting[1].shutdown(socket.SHUT_WR)
    watch.register(listener, select.EPOLLIN)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 2, 500000))
    far.setblocking(False)
    names = [near.getsockname(), near.getpeername(), far.getsockname(), far.getpeername()]

    def end() -> object:
        limit = near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
        told: list[object] = [everything(far, 1), everything(near, 1), far.getblocking(), struct.unpack("ll", limit)]
        told.append(near.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        assert names == [near.getsockname(), near.getpeername(), far.getsockname(), far.getpeername()]
        near.close()
        told.append(everything(far, 1))
        for each in waiting:
            got, _ = listener.accept()
            told.append(everything(got, 1))
            got.send(b"answer")
            told.append(everything(each, 1))
        told.append(everything(got, 1))  # it was shut
        late = dial(listener)
        late.send(b"late")
        told.append(everything(listener.accept()[0], 1))
        if isinstance(listener.getsockname(), str):
            try:
                listening(place)
            except OSError as error:
                told.append(error.errno)
        return told

    return end


def files_on_their_way() -> Ending:
    """A pipe, a socket with something in it, and a socket beside itself."""
    near, far = socket.socketpair()
    reader, writer = os.pipe()
    os.write(writer, b"in a pipe")
    inner, other = socket.socketpair()
    other.send(b"in a socket")
    near.send(b"first")
    near.sendmsg([b"files"], [(socket.SOL_SOCKET, RIGHTS, struct.pack("2i", reader, inner.fileno()))])
    near.sendmsg([b"more"], [(socket.SOL_SOCKET, RIGHTS, struct.pack("i", writer))])
    near.send(b"last")
    os.close(reader)
    os.close(writer)
    inner.close()
    other.close()
    circle, back = socket.socketpair()
    circle.sendmsg([b"round"], [(socket.SOL_SOCKET, RIGHTS, struct.pack("2i", circle.fileno(), back.fileno()))])
    circle.close()

    def end() -> object:
        told: list[object] = []
        found: list[int] = []
        while len(found) < 3:
            data, files, _, _ = socket.recv_fds(far, 5, 10)
            told.append((data, len(files)))
            found += files
        told += [far.recv(10), os.read(found[0], 100), socket.socket(fileno=found[1]).recv(100)]
        os.write(found[2], b"again")
        told.append(os.read(found[0], 100))
        data, files, _, _ = socket.recv_fds(back, 100, 10)
        again = socket.socket(fileno=files[0])
        again.send(b"through itself")
        return [*told, data, len(files), back.recv(100)]

    return end


def datagrams() -> Ending:
    """Packets with and without a sender's name, also of no bytes."""
    one, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for each in (one, other):
        each.bind(("127.0.0.1", 0))
    for text in (b"a datagram", b"", b"another"):
        other.sendto(text, one.getsockname())
    local, nameless = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
    local.bind("datagrams")
    nameless.connect("datagrams")
    nameless.send(b"from nobody")
    near, far = socket.socketpair(type=socket.SOCK_DGRAM)
    near.send(b"packet")
    near.send(b"")
    near.send(b"the next")

    def end() -> object:
        got = [one.recvfrom(100) for _ in range(3)]
        assert all(name == other.getsockname() for _, name in got)
        one.sendto(b"answer", other.getsockname())
        nameless.send(b"again")
        return [[data for data, _ in got], other.recv(100), local.recvfrom(100), local.recv(100), everything(far, 3)]

    return end


def refused(send: Callable[[], object]) -> int | None:
    """Return the number of SEND's error."""
    try:
        send()
    except OSError as error:
        return error.errno
    return None


def names_that_changed() -> Ending:
    """Whom a socket is connected to stays the same when the path is removed or renamed, or there is another one."""
    names = ("removed", "renamed", "other", "ended")
    places = {name: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for name in names}
    talkers = {name: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for name in places}
    for name, place in places.items():
        place.bind(name)
        talkers[name].connect(name)
        talkers[name].send(b"before")
    stream = socket.socket(socket.AF_UNIX)
    stream.bind("stream")
    stream.listen(2)
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for name in ("removed", "other"):
        os.unlink(name)
    taken.bind("other")  # another socket of that name
    places["other"].connect("renamed")
    for name in ("renamed", "stream"):
        os.rename(name, f"{name} again")
    places.pop("ended").close()
    os.mkdir("below")

    def end() -> object:
        told: list[object] = []
        os.chdir("below")
        for name, talker in talkers.items():
            told.append((name, talker.getpeername()))
            told.append(refused(lambda talker=talker, name=name: talker.send(name.encode())))
            told.append([place.recv(20) for _ in range(2 - (name == "other"))] if (place := places.get(name)) else None)
        told.append([refused(lambda: talkers["ended"].send(b"more")), refused(talkers["ended"].getpeername)])
        os.chdir("..")
        late = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        told += [refused(lambda name=name: late.connect(name)) for name in ("removed", "renamed", "renamed again")]
        late.send(b"by its new name")
        told.append(places["renamed"].recv(20))
        late.sendto(b"to another", "other")
        told.append([taken.recv(20), refused(lambda: dial(stream))])
        near = socket.socket(socket.AF_UNIX)
        near.connect("stream again")
        near.send(b"to be accepted")
        there = sorted(name for name in os.listdir() if "again" in name)
        told.append([everything(stream.accept()[0], 1), near.getpeername(), there])
        return told

    return end


def ended() -> Ending:
    """What came before the end of the other side."""
    closed, left = socket.socketpair()
    closed.send(b"the last")
    closed.close()
    shut, hears = socket.socketpair()
    shut.send(b"before")
    shut.shutdown(socket.SHUT_WR)
    listener = listening(0)
    listener.shutdown(socket.SHUT_RDWR)

    def end() -> object:
        hears.send(b"the other way")
        told = [everything(left, 2), everything(hears, 2), everything(shut, 1)]
        try:
            listener.accept()
        except OSError as error:
            told.append(error.errno)
        return told

    return end


def conversation() -> str:
    """A child answers over TCP, number by number."""
    listener = listening(0)
    child = os.fork()
    if child == 0:
        talk = dial(listener)
        total = 0
        while line := talk.recv(4, socket.MSG_WAITALL):
            total = (total * 31 + struct.unpack("<I", line)[0]) & 0xFFFFFFFF
            talk.sendall(struct.pack("<I", total))
        os._exit(total % 251)
    peer, _ = listener.accept()
    end, rounds, mine = time.monotonic() + REST_S, 0, 0
    while time.monotonic() < end or rounds < 300:
        peer.sendall(struct.pack("<I", rounds))
        mine = (mine * 31 + rounds) & 0xFFFFFFFF
        (heard,) = struct.unpack("<I", peer.recv(4, socket.MSG_WAITALL))
        assert heard == mine, (rounds, heard, mine)
        rounds += 1
        time.sleep(0.001)
    peer.shutdown(socket.SHUT_WR)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == mine % 251
    return "talked"


def main() -> None:
    watch = select.epoll()
    endings = [connection(place, watch) for place in range(len(PLACES))]
    endings += [files_on_their_way(), datagrams(), names_that_changed(), ended()]
    print(conversation())
    time.sleep(REST_S)
    print(len(watch.poll(1)))
    for end in endings:
        print(end())


main()
