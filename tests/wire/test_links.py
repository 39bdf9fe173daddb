"""Links between post offices over real UNIX sockets and real TLS."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from condor_actors.messages.admin import Ping
from condor_actors.messages.envelope import Address, AskFailed, Done, PeerDown, PeerUp, Refused
from condor_actors.wire.broker import RESENT_WITHIN_MS, TCP_RTO_MAX_MS
from condor_actors.wire.certificates.authority import Authority, PoolFiles, create_pool, lend_proxy
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.membership import cut_the_revoked
from tests.wire.conftest import DEADLINE_S, Process

Make = Callable[..., Process]


@pytest_twisted.ensureDeferred
async def test_ask_over_a_unix_socket(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    server.office.listen_unix(str(short_dir / "s"))
    answer = await client.box.ask(f"unix:{short_dir}/s", "echo", Done(text="hello"))
    import pwd

    assert answer.message == Done(text=f"{pwd.getpwuid(os.getuid()).pw_name}@test.domain hello")
    assert answer.identity.method == "local"
    assert answer.identity.uid == os.getuid()


@pytest_twisted.ensureDeferred
async def test_a_socket_deep_in_the_tree(processes: Make, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    server, client = processes("server"), processes("client")
    server.office.listen_unix(str(deep / "s"))
    answer = await client.box.ask(f"unix:{deep}/s", "echo", Done())
    assert isinstance(answer.message, Done)


@pytest_twisted.ensureDeferred
async def test_a_stale_socket_is_replaced_and_a_living_one_respected(processes: Make, short_dir: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(short_dir / "s"))
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))
    with pytest.raises(OSError, match="another process listens"):
        processes("other").office.listen_unix(str(short_dir / "s"))
    answer = await processes("client").box.ask(f"unix:{short_dir}/s", "echo", Done())
    assert isinstance(answer.message, Done)


@pytest_twisted.ensureDeferred
async def test_ask_over_mutual_tls(processes: Make, credentials: Credentials) -> None:
    server, client = processes("server", credentials), processes("client", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    answer = await client.box.ask(node, "echo", Done())
    assert answer.message == Done(text="condor@test ")
    assert answer.identity.name == "condor@test"
    assert "schedd" in answer.identity.roles
    by_name = node.replace("127.0.0.1", "localhost")
    answer = await client.box.ask(by_name, "echo", Done())
    assert isinstance(answer.message, Done)


@pytest_twisted.ensureDeferred
async def test_a_shadow_host_comes_with_a_proxy(processes: Make, credentials: Credentials) -> None:
    server = processes("server", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    proxy = lend_proxy(credentials, "shadow:alice@localhost")
    shadow = processes("shadow", Credentials.from_bundle(proxy.bundle()))
    answer = await shadow.box.ask(node, "echo", Done())
    assert answer.message == Done(text="shadow:alice@localhost ")


@pytest_twisted.ensureDeferred
async def test_a_user_comes_with_a_proxy(processes: Make, credentials: Credentials) -> None:
    server = processes("server", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    user = processes("user", lend_proxy(credentials, "user:alice@localhost"))
    answer = await user.box.ask(node, "echo", Done())
    assert answer.message == Done(text="alice@test.domain "), "the machine speaks for its own users"


@pytest_twisted.ensureDeferred
async def test_strangers_stay_out(processes: Make, credentials: Credentials, tmp_path: Path) -> None:
    other_files = PoolFiles.below(tmp_path)
    create_pool(other_files, "other", ["localhost", "127.0.0.1"])
    server = processes("server", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    stranger = processes("stranger", other_files.credentials())
    answer = await stranger.box.ask(node, "echo", Done())
    assert isinstance(answer.message, AskFailed)
    assert answer.message.reason == "unreachable"
    assert server.office.links() == []


@pytest_twisted.ensureDeferred
async def test_a_server_with_another_name_is_not_believed(processes: Make, tmp_path: Path,
                                                          credentials: Credentials) -> None:
    files = PoolFiles.below(tmp_path)
    create_pool(files, "test", ["elsewhere.example"])
    wrong = files.credentials()
    assert wrong is not None
    server, client = processes("server", wrong), processes("client", wrong)
    node = server.office.listen_tls("127.0.0.1", 0)
    answer = await client.box.ask(node, "echo", Done())
    assert isinstance(answer.message, AskFailed)
    assert answer.message.reason == "unreachable"


@pytest_twisted.ensureDeferred
async def test_a_revoked_machine_stays_out(processes: Make, tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "test", ["localhost", "127.0.0.1"])
    before = files.credentials()
    assert before is not None
    server = processes("server", before)
    node = server.office.listen_tls("127.0.0.1", 0)
    assert isinstance((await processes("one", before).box.ask(node, "echo", Done())).message, Done)
    Authority.load(files).revoke([next(iter(authority.issued()))])
    after = files.credentials()
    assert after is not None
    server.office.renew(after)
    answer = await processes("two", before).box.ask(node, "echo", Done())
    assert isinstance(answer.message, AskFailed)


class Greeter(Protocol):
    """What is no link: it says a word, and stays."""

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        assert self.transport is not None
        self.transport.write(b"hello")


class Stream(Protocol):
    """The other end of it, which hears the word and of its end."""

    def __init__(self) -> None:
        self.heard: Deferred[bytes] = Deferred()
        self.ended: Deferred[None] = Deferred()
        for each in (self.heard, self.ended):
            each.addTimeout(DEADLINE_S, reactor)

    def connectionMade(self) -> None:  # noqa: N802
        assert self.transport is not None
        self.transport.write(b"condor stream 1\n")

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if not self.heard.called:
            self.heard.callback(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        self.ended.callback(None)


@pytest_twisted.ensureDeferred
async def test_what_was_dialled_to_a_revoked_machine_ends_whatever_it_is(processes: Make, tmp_path: Path) -> None:
    """The other end keeps it open: it is this end's to cut."""
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "test", ["localhost", "127.0.0.1"])
    before = files.credentials()
    assert before is not None
    server, client = processes("server", before), processes("client", before)
    node = server.office.listen_tls("127.0.0.1", 0)
    server.office.services[b"condor stream 1\n"] = lambda identity: Greeter()
    stream = Stream()
    await client.office.endpoint(node).connect(Factory.forProtocol(lambda: stream))
    await stream.heard
    cut_the_revoked(client.office, client.office.log)
    assert stream.transport is not None
    assert stream.transport.connected  # type: ignore[attr-defined]  # every transport of ours has it
    Authority.load(files).revoke([next(iter(authority.issued()))])
    after = files.credentials()
    assert after is not None
    client.office.renew(after)
    cut_the_revoked(client.office, client.office.log)
    await stream.ended


@pytest_twisted.ensureDeferred
async def test_proxies_say_only_what_their_signer_may(processes: Make, tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    create_pool(files, "test", ["localhost", "127.0.0.1"], roles=["startd"])
    machine = files.credentials()
    assert machine is not None
    server = processes("server", machine)
    node = server.office.listen_tls("127.0.0.1", 0)
    for proxy in (lend_proxy(machine, "shadow:alice@localhost"), lend_proxy(machine, "user:bob@127.0.0.1")):
        answer = await processes("client", proxy).box.ask(node, "echo", Done())
        assert isinstance(answer.message, AskFailed), "a machine without the role schedd signs nobody"


@pytest_twisted.ensureDeferred
async def test_a_long_queue_crosses_in_order(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    server.office.listen_unix(str(short_dir / "s"))
    total = 10_000
    for number in range(total):
        client.box.context.tell(Address(f"unix:{short_dir}/s", "box"), Done(text=str(number)))
    client.box.context.tell(Address(f"unix:{short_dir}/s", "box"), Ping())
    await server.box.first(Ping)
    texts = [delivery.message.text for delivery in server.box.deliveries]
    assert texts == [str(number) for number in range(total)]


@pytest_twisted.ensureDeferred
async def test_large_messages(processes: Make, credentials: Credentials) -> None:
    server, client = processes("server", credentials), processes("client", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    text = "x" * 500_000
    answers = [client.box.ask(node, "echo", Done(text=text)) for _ in range(5)]
    for answer in answers:
        assert (await answer).message.text.endswith(text)
    refused = await client.box.ask(node, "echo", Done(text="x" * 600_000))
    assert isinstance(refused.message, Refused)
    assert refused.message.code == "invalid"


@pytest_twisted.ensureDeferred
async def test_a_peer_that_dies_is_noticed_and_dialled_again(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    node = f"unix:{short_dir}/s"
    server.office.listen_unix(str(short_dir / "s"))
    client.box.context.watch(node)
    await client.box.first(PeerUp)
    await server.stop()
    await client.box.first(PeerDown)
    again = processes("server again")
    again.office.listen_unix(str(short_dir / "s"))
    await client.box.first(PeerUp)
    assert isinstance((await client.box.ask(node, "echo", Done())).message, Done)
    client.box.context.unwatch(node)


@pytest_twisted.ensureDeferred
async def test_nobody_there(processes: Make, credentials: Credentials, short_dir: Path) -> None:
    client = processes("client", credentials)
    for node in (f"unix:{short_dir}/none", "<127.0.0.1:1>", "nonsense", "in:7", "<256.1.1.1:x>"):
        answer = await client.box.ask(node, "echo", Done())
        assert isinstance(answer.message, AskFailed), node
        assert answer.message.reason == "unreachable", node


@pytest_twisted.ensureDeferred
async def test_a_link_lost_with_a_question_on_it(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    server.office.listen_unix(str(short_dir / "s"))
    asked = client.box.ask(f"unix:{short_dir}/s", "box", Done())
    await server.box.first(Done)
    for link in server.office.links():
        link.abort("a test")
    assert (await asked).message.reason == "link-lost"


@pytest_twisted.ensureDeferred
async def test_what_was_told_on_a_lost_link_arrives_once(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    node = f"unix:{short_dir}/s"
    server.office.listen_unix(str(short_dir / "s"))
    await client.box.ask(node, "echo", Done())
    client.box.context.tell(Address(node, "box"), Done(text="once"))
    await server.box.first(Done)
    (link,) = client.office.links()
    assert [envelope.to for envelope in link.under_way] == ["box"], "not acknowledged yet"
    client.box.context.watch(node)
    await client.box.first(PeerUp)
    link.abort("a test")
    await client.box.first(PeerDown)
    await client.box.first(PeerUp)
    await client.box.ask(node, "echo", Done())
    assert server.box.deliveries == [], "sent again, and known by its message id"


@pytest_twisted.ensureDeferred
async def test_levels_are_asked_for(processes: Make, short_dir: Path) -> None:
    levels: list[Any] = []

    def authorize(identity: Any, level: Any) -> bool:
        levels.append(level.value)
        return level.value == "CLIENT"

    server, client = processes("server", authorize=authorize), processes("client")
    server.office.listen_unix(str(short_dir / "s"))
    from condor_actors.messages.admin import Shutdown

    answer = await client.box.ask(f"unix:{short_dir}/s", "echo", Shutdown())
    assert answer.message.code == "denied"
    assert levels == ["ADMINISTRATOR"]


@pytest_twisted.ensureDeferred
async def test_who_became_another_user_has_that_users_rights(processes: Make, short_dir: Path) -> None:
    server, client = processes("server"), processes("client")
    node = f"unix:{short_dir}/s"
    server.office.listen_unix(str(short_dir / "s"))
    client.box.context.tell(Address(node, "box"), Done())
    sender = (await server.box.first(Done)).sender
    server.box.context.watch(sender.node)
    was = (await server.box.first(PeerUp)).message.identity
    server.office.reidentify(sender.node, "alice@test.domain", 12345)
    answer = await client.box.ask(node, "echo", Done())
    assert answer.message.text == "alice@test.domain "
    became = attrs.evolve(was, name="alice@test.domain", uid=12345)
    assert server.office.links()[0].identity == became, "all else that the kernel said of it is known still"
    assert became.pid == os.getpid()
    server.box.deliveries.clear()
    server.box.context.unwatch(sender.node)
    server.box.context.watch(sender.node)  # as an actor does that is made again
    assert (await server.box.first(PeerUp)).message.identity == became


@pytest_twisted.ensureDeferred
async def test_what_a_cut_has_swallowed_is_sent_again_soon_after_it(processes: Make, credentials: Credentials) -> None:
    """The kernel's own time until it tries again grows to two minutes."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS, RESENT_WITHIN_MS)
        except OSError:
            pytest.skip("this kernel has no bound for that (before Linux 6.15)")
    server, client = processes("server", credentials), processes("client", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    await client.box.ask(node, "echo", Done())
    ours = [each for each in reactor.getReaders() if getattr(each, "TLS", False) or hasattr(each, "getPeer")]
    bounds = [each.socket.getsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS) for each in ours
              if isinstance(getattr(each, "socket", None), socket.socket) and each.socket.type == socket.SOCK_STREAM
              and each.socket.family == socket.AF_INET and not each.socket.getsockopt(socket.SOL_SOCKET,
                                                                                       socket.SO_ACCEPTCONN)]
    assert bounds == [RESENT_WITHIN_MS] * 2
