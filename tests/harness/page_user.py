"""Users who are logged in to a pool's page, over HTTP and in a browser."""

from __future__ import annotations

import json
from typing import Any

import attrs

from tests.harness.web_page import Page, see

JSON = "application/json"


@attrs.frozen
class User:
    """Who is logged in: the cookie and the page's secret.

    Attributes:
        page: of the pool.
        token: the user's.
        cookie: ``name=value``.
        secret: for the header.
        said: what the log-in answered.
    """

    page: Page
    token: str
    cookie: str
    secret: str
    said: dict[str, Any]

    def headers(self, **changed: str | None) -> dict[str, str]:
        """Those of the page's own questions, but for what is changed or, with None, left out."""
        own: dict[str, str | None] = {
            "Content_Type": JSON, "X_Condor_Session": self.secret, "Cookie": self.cookie,
            "Origin": self.page.url.rstrip("/"), "Sec_Fetch_Site": "same-origin"}
        return {name: value for name, value in {**own, **changed}.items() if value is not None}

    def post(self, path: str, fields: Any, **changed: str | None) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        status, _, body = self.page.ask(path, "POST", json.dumps(fields).encode(), **self.headers(**changed))
        return status, json.loads(body)

    def act(self, action: str, *jobs: str, **more: str) -> tuple[int, dict[str, Any]]:
        """Do something to jobs."""
        return self.post("/api/act", {"action": action, "jobs": list(jobs), **more})

    def who(self, **changed: str | None) -> str:
        """Whose session the page says it is."""
        status, _, body = self.page.ask("/api/session", **self.headers(**changed))
        assert status == 200
        return str(json.loads(body)["user"])


def token_of(page: Page, user: str, *options: str) -> str:
    """A token that the pool has signed."""
    domain = page.pool.run("condor_config_val", "UID_DOMAIN").strip()
    return page.pool.run("condor_token_create", "-identity", f"{user}@{domain}", *options).strip()


def try_token(page: Page, token: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Log in."""
    sent = {"Content_Type": JSON, "X_Condor_Session": "none", **headers}
    return page.ask("/api/login", "POST", json.dumps({"token": token}).encode(), **sent)


def logged_in(page: Page, token: str) -> User:
    status, headers, body = try_token(page, token)
    assert status == 200, body
    said = json.loads(body)
    secret = said.pop("secret")
    return User(page, token, headers["set-cookie"].partition(";")[0], secret, said)


def log_in(window: Any, page: Page, token: str) -> None:
    """As a user does it, by keyboard."""
    window.goto(page.url)
    window.wait_for_selector("#log-in:not([hidden])")  # nothing that is hidden takes the focus
    window.focus("#log-in")
    window.keyboard.press("Enter")
    window.wait_for_selector("#login[open]")
    assert window.evaluate("document.activeElement.id") == "token"
    window.keyboard.insert_text(token)
    window.keyboard.press("Enter")
    window.wait_for_selector("#log-out:not([hidden])")


def choose(window: Any, job: str) -> Any:
    """The box of a job in the queue."""
    return window.locator(f"#jobs input[data-id='{job}']")


def chosen(window: Any, text: str) -> None:
    """Until the page says how many are chosen."""
    see(window, f"document.getElementById('chosen').textContent === '{text}'")


def open_queue(window: Any, page: Page, cluster: int) -> None:
    """Only the jobs of a cluster."""
    window.goto(f"{page.url}#queue")
    window.fill("#search", f"{cluster}.")
    window.wait_for_selector(f"#jobs a:text-is('{cluster}.0')")


def results(window: Any) -> list[str]:
    """What the page says that became of each job, once it says it."""
    window.wait_for_selector("#selection-results:not([hidden]) li")
    found: list[str] = window.locator("#selection-list li").all_text_contents()
    return found
