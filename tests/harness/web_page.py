"""A pool's page as tests use it: over HTTP, and in a browser."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.pool_fixture import PersonalPool, until


class Page:
    """The pool's page as any client of HTTP sees it."""

    def __init__(self, pool: PersonalPool) -> None:
        self.pool = pool
        self.url = (pool.dir / "run" / "web.url").read_text().strip()
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.is_secure = parts.scheme == "https"

    def ask(self, path: str, method: str = "GET", body: bytes | None = None,
            **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in small letters, and body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        if self.is_secure:
            context = ssl.create_default_context(cafile=self.pool.run("condor_config_val", "POOL_CA").strip())
            context.check_hostname = False
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=60, context=context)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def data(self, path: str) -> Any:
        """The JSON of a question that is answered."""
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def raw(self, sent: bytes, *, end: bool = False) -> bytes:
        """What the server says to these bytes before it closes or has said a first piece."""
        with socket.create_connection((self.host, self.port), timeout=60) as connection:
            connection.sendall(sent)
            if end:
                connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)


@contextmanager
def a_browser() -> Iterator[Any]:
    """A Chromium; without one the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium here; etc/install-system-packages test installs it")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def strict_window(browser: Any) -> Iterator[Any]:
    """A window of its own that fails the test when a script fails, speaks, or is refused."""
    context = browser.new_context()
    made = context.new_page()
    said: list[str] = []
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    made.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    yield made
    context.close()
    assert said == []


def see(window: Any, expression: str) -> None:
    """Until it is true in the window (whose policy lets no script wait for a text that it would have to evaluate)."""
    until(lambda: window.evaluate(expression), lambda: f"{expression}: {window.inner_text('body')}")
