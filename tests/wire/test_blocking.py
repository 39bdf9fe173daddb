"""The tools' client against a real post office."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.threads import deferToThread

from condor_actors.messages.envelope import Done
from condor_actors.wire.blocking import (
    LinkLost,
    NotTrusted,
    ProtocolError,
    RequestRefused,
    TimedOut,
    Unreachable,
    connect,
)
from condor_actors.wire.certificates.authority import PoolFiles, lend_proxy
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from tests.wire.conftest import Process

Make = Callable[..., Process]


def tool_credentials(pool: PoolFiles) -> ToolCredentials:
    return ToolCredentials(certificate=str(pool.host), key=str(pool.host_key), ca=str(pool.ca))


@pytest_twisted.ensureDeferred
async def test_questions_over_a_unix_socket(processes: Make, short_dir: Path) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))

    def tool() -> list[str]:
        with connect(f"unix:{short_dir}/s") as client:
            assert client.peer.process == "server"
            texts = [client.ask("echo", Done(text=str(number))).text for number in range(3)]
            texts.append(client.ask("echo", Done(text="x" * 300_000)).text[-1])
            client.tell("box", Done(text="told"))
            with pytest.raises(RequestRefused) as caught:
                client.ask("nobody", Done())
            assert caught.value.code == "unknown-actor"
            with pytest.raises(TimedOut):
                client.ask("box", Done(), timeout_s=0.05)
            return texts

    texts = await deferToThread(tool)
    assert [text.split()[-1] for text in texts] == ["0", "1", "2", "x"]
    assert (await server.box.first(Done)).message.text == "told"


@pytest_twisted.ensureDeferred
async def test_many_questions_stay_within_the_window(processes: Make, short_dir: Path) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))

    def tool() -> int:
        with connect(f"unix:{short_dir}/s") as client:
            return sum(client.ask("echo", Done()).text != "" for _ in range(5000))

    assert await deferToThread(tool) == 5000


@pytest_twisted.ensureDeferred
async def test_a_question_that_follows_is_on_its_way_while_its_answer_is_read(
        processes: Make, short_dir: Path) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))

    def tool() -> tuple[list[str], str]:
        with connect(f"unix:{short_dir}/s") as client:
            texts = []
            following = iter(("b", "c", None))
            for answer in client.ask_on("echo", Done(text="a"), lambda _: _question(next(following))):
                texts += [answer.text, client.ask("echo", Done(text="between")).text]
            with pytest.raises(RequestRefused) as caught:
                list(client.ask_on("nobody", Done(), lambda _: None))
            return texts, caught.value.code

    texts, code = await deferToThread(tool)
    assert [text.split()[-1] for text in texts] == ["a", "between", "b", "between", "c", "between"]
    assert code == "unknown-actor"


def _question(text: str | None) -> Done | None:
    return None if text is None else Done(text=text)


@pytest_twisted.ensureDeferred
async def test_what_a_daemon_says_unasked(processes: Make, short_dir: Path) -> None:
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))

    def tool() -> str:
        with connect(f"unix:{short_dir}/s") as client:
            client.tell("box", Done())
            return str(client.receive(20.0).text)

    running = deferToThread(tool)
    sender = (await server.box.first(Done)).sender
    server.box.context.tell(sender, Done(text="unasked"))
    assert await running == "unasked"


@pytest_twisted.ensureDeferred
async def test_questions_over_tls(processes: Make, credentials: Credentials, pool: PoolFiles, tmp_path: Path) -> None:
    server = processes("server", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)

    def ask(shown: ToolCredentials | None) -> str:
        with connect(node, shown) as client:
            return str(client.ask("echo", Done()).text)

    assert await deferToThread(ask, tool_credentials(pool)) == "condor@test "
    lent = lend_proxy(credentials, "user:bob@localhost")
    (tmp_path / "c").write_bytes(lent.chain)
    (tmp_path / "k").write_bytes(lent.key)
    own = ToolCredentials(certificate=str(tmp_path / "c"), key=str(tmp_path / "k"), ca=str(pool.ca))
    assert await deferToThread(ask, own) == "bob@test.domain "
    with pytest.raises(NotTrusted):
        await deferToThread(ask, None)


@pytest_twisted.ensureDeferred
async def test_a_server_of_another_pool(processes: Make, credentials: Credentials, tmp_path: Path) -> None:
    from condor_actors.wire.certificates.authority import create_pool

    other = PoolFiles.below(tmp_path)
    create_pool(other, "other", ["localhost", "127.0.0.1"])
    server = processes("server", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    with pytest.raises(NotTrusted, match="not a machine of this pool"):
        await deferToThread(connect, node, tool_credentials(other))


def test_nobody_there(short_dir: Path) -> None:
    for node in (f"unix:{short_dir}/none", "nonsense"):
        with pytest.raises(Unreachable):
            connect(node)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(short_dir / "s"))
    with pytest.raises(Unreachable, match="Connection refused"):
        connect(f"unix:{short_dir}/s")


@pytest_twisted.ensureDeferred
async def test_somebody_else_there(short_dir: Path) -> None:
    def serve(answer: bytes) -> None:
        path = str(short_dir / "s")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(1)
            listening.settimeout(20)
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer)
                connection.recv(100)
        os.unlink(path)

    for answer, error in ((b"HTTP/1.1 400 Bad Request\r\n" * 20, ProtocolError), (b"", LinkLost)):
        serving = deferToThread(serve, answer)
        while not (short_dir / "s").exists():
            await deferToThread(lambda: None)

        def dial() -> None:
            while True:
                try:
                    connect(f"unix:{short_dir}/s", timeout_s=20)
                except Unreachable:
                    continue
                return

        with pytest.raises(error):
            await deferToThread(dial)
        await serving


def test_a_tool_imports_neither_twisted_nor_openssl() -> None:
    code = (
        "import sys, condor_actors.wire.blocking, condor_actors.messages.queue;"
        "print([name for name in ('twisted', 'OpenSSL', 'cryptography', 'ssl', 'asyncio', 'ipaddress')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("home", ["is written", "cannot be written"])
@pytest_twisted.ensureDeferred
async def test_a_user_borrows_a_certificate_from_the_machine(
        processes: Make, credentials: Credentials, pool: PoolFiles, short_dir: Path, tmp_path: Path,
        home: str) -> None:
    from condor_actors.wire.membership import CertificateKeeper

    server = processes("schedd", credentials)
    server.system.spawn("certificates", lambda: CertificateKeeper(pool, server.office.renew))
    server.office.listen_unix(str(short_dir / "schedd.sock"))
    node = server.office.listen_tls("127.0.0.1", 0)
    own = ToolCredentials(certificate=str(tmp_path / "u/pem"), key=str(tmp_path / "u/pem"), ca=str(pool.ca))

    def tool() -> str:
        if home == "cannot be written":
            (tmp_path / "u").touch()
        assert not own.is_fresh()
        borrowed = own.borrow(str(short_dir))
        assert borrowed.is_usable()
        if home == "is written":
            assert own.is_fresh()
            assert (tmp_path / "u/pem").stat().st_mode & 0o777 == 0o600
        with connect(node, borrowed) as client:
            return str(client.ask("echo", Done()).text)

    import pwd

    assert await deferToThread(tool) == f"{pwd.getpwuid(os.getuid()).pw_name}@test.domain "


@pytest_twisted.ensureDeferred
async def test_who_waits_for_long_gives_signs_of_life(
        processes: Make, short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condor_actors.wire.link.SIGN_OF_LIFE_S", 0.2)
    monkeypatch.setattr("condor_actors.wire.link.SILENCE_S", 0.6)
    monkeypatch.setattr("condor_actors.wire.blocking.SIGN_OF_LIFE_S", 0.2)
    server = processes("server")
    server.office.listen_unix(str(short_dir / "s"))

    def tool() -> str:
        with connect(f"unix:{short_dir}/s") as client:
            with pytest.raises(TimedOut):  # not LinkLost
                client.ask("box", Done(), timeout_s=2.0)
            return str(client.ask("echo", Done(text="still there")).text)

    assert (await deferToThread(tool)).endswith("still there")
