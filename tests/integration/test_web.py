"""The page of a real pool, in a real browser and under attack."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from tests.harness.web_page import Page, see, strict_window
from tests.pool_fixture import PersonalPool, fresh_folder, until

SCRIPT = "<img src=x onerror=alert(1)>"
FEW = 3
OF_ONE = 20
CONFIG = f"WEB_UPDATE_INTERVAL = 0.3\nWEB_FIGURES_INTERVAL = 1\nWEB_MAX_WATCHERS = {FEW}\n" \
         f"WEB_MAX_CONNECTIONS_OF_ADDRESS = {OF_ONE}\n"
SLEEPER = ("executable = /bin/sleep\narguments = {seconds}\ntransfer_executable = false\nshould_transfer_files = yes\n"
           "log = job.log\n")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=2, config=CONFIG, web=True)
        yield Page(pool)
        pool.stop()


@pytest.fixture
def window(browser: Any, page: Page) -> Iterator[Any]:
    """A window on the page that fails the test when a script fails, speaks, or is refused."""
    with strict_window(browser) as made:
        made.goto(page.url)
        made.wait_for_selector("#map button")
        yield made


def cleared(page: Page) -> None:
    """The queue is empty, and the page knows it."""
    page.pool.tool("condor_rm", "-all")
    until(lambda: page.data("/api/jobs")["all"] == 0, "an empty queue")


# ---- what the data says


def test_what_the_page_knows_is_what_the_queue_is(page: Page) -> None:
    cluster = page.pool.submit(SLEEPER.format(seconds=1000) + "queue 5\n")
    until(lambda: page.data("/api/jobs")["counts"] == {"running": 2, "idle": 3}, "two run, three wait")
    shown = page.data("/api/jobs?sort=proc&order=down&limit=2&offset=2")
    at = shown["columns"].index
    assert [row[at("proc")] for row in shown["rows"]] == [2, 1]
    assert shown["total"] == 5
    assert page.data(f"/api/jobs?search={cluster}.3")["total"] == 1
    assert page.data("/api/jobs?status=running")["total"] == 2
    looks = until(lambda: found if (found := page.data("/api/summary"))["slots"]["running"] == 2 else None,
                  "both slots at work")
    assert looks["jobs"] == {"running": 2, "idle": 3}
    page.pool.run("condor_rm", f"{cluster}.4")
    until(lambda: page.data("/api/jobs")["total"] == 4, "one is gone")
    cleared(page)


def test_a_schedd_that_is_killed_is_followed_again(page: Page) -> None:
    cluster = page.pool.submit(SLEEPER.format(seconds=1000) + "hold = true\nqueue 3\n")
    until(lambda: page.data("/api/jobs")["counts"] == {"held": 3}, "three held")
    old = page.pool.kill("schedd")
    page.pool.until_restarted("schedd", old)
    until(lambda: page.pool.tool("condor_rm", f"{cluster}.0").returncode == 0, "a new schedd removes a job")
    until(lambda: page.data("/api/jobs")["counts"] == {"held": 2}, "the page follows the new one")
    cleared(page)


def test_the_story_of_a_job_has_its_runs(page: Page) -> None:
    cluster = page.pool.submit(SLEEPER.format(seconds=0) + "queue\n")
    page.pool.wait()
    told = until(lambda: found if (found := page.data(f"/api/job?cluster={cluster}&proc=0"))["left"] else None,
                 "the job is in the history")
    kinds = [line["kind"] for line in told["events"]]
    assert kinds[0] == "submitted"
    assert {"run", "end", "completed"} <= set(kinds)
    assert len(told["runs"]) == 1
    assert told["runs"][0]["host"].startswith("slot")
    assert dict(told["attributes"])["ExitCode"] == "0"
    status, _, body = page.ask("/api/job?cluster=123456789")
    assert (status, json.loads(body)) == (404, {"error": "there is no job 123456789.0"})


def test_figures_grow_and_are_kept(page: Page) -> None:
    before = until(lambda: page.data("/api/figures?span=hour")["points"], "a point")
    assert set(before[-1]) >= {"running", "owner", "idle_jobs", "wait_ratio", "leverage"}
    old = page.pool.kill("web", 15)
    page.pool.until_restarted("web", old)
    until((page.pool.dir / "spool" / "web_figures.json").exists, "the file of the figures")
    after = until(lambda: answered(page, "/api/figures?span=hour"), "the page is there again, at the same port")
    assert after["points"][0]["at"] == before[0]["at"]


def answered(page: Page, path: str) -> Any:
    """The data, None while nobody answers."""
    try:
        return page.data(path)
    except OSError:
        return None


def test_strangers_see_nothing_that_they_may_not(page: Page) -> None:
    page.pool.submit(SLEEPER.format(seconds="1000 word-between-owner-and-job")
                     + 'environment = "SECRET=in-the-environment"\nhold = true\nqueue\n')
    cluster = until(lambda: found["rows"][0][1] if (found := page.data("/api/jobs"))["rows"] else None, "the job")
    for path in ("/api/jobs", f"/api/job?cluster={cluster}", "/api/jobs?search=word-between"):
        text = page.ask(path)[2]
        assert b"word-between-owner" not in text
        assert b"in-the-environment" not in text
    assert page.data("/api/jobs?search=word-between")["total"] == 0
    cleared(page)


# ---- in a browser


def test_a_browser_shows_the_pool_the_queue_and_a_story(page: Page, window: Any) -> None:
    cluster = page.pool.submit(SLEEPER.format(seconds=1000) + "queue 3\n")
    window.wait_for_selector("#map button.running >> nth=1")
    see(window, "document.getElementById('state').textContent.includes('2 jobs running, 1 idle')")
    window.click("#map button >> nth=0")
    assert "Claimed / Busy" in window.inner_text("#slot")
    window.click("nav >> text=Queue")
    window.wait_for_selector(f"#jobs a:text-is('{cluster}.2')")
    page.pool.run("condor_hold", f"{cluster}.2")
    window.wait_for_selector("#jobs .s-held")
    window.click("#jobs th button:text-is('Job')")
    see(window, f"document.querySelector('#jobs tbody a').textContent === '{cluster}.2'")
    window.fill("#search", f"{cluster}.0")
    see(window, "document.querySelectorAll('#jobs tbody tr').length === 1")
    window.click("#jobs tbody a")
    window.wait_for_selector(".story li.run")
    assert f"Job {cluster}.0" in window.inner_text("#job-title")
    cleared(page)


SOME_SLOTS = """async () => {
    const pool = await import(new URL("pool.js", document.querySelector("script[type=module]").src));
    const names = [["slot10@desk2", "desk2"], ["slot2@desk2", "desk2"], ["slot1@desk10", "desk10"],
                   ["slot1@desk2", "desk2"]];
    const slots = names.map(([name, machine]) => ({ name, machine, look: "free", cpus: 1 }));
    for (const slot of slots) pool.change([slot], []);
    const found = [...document.querySelectorAll("#map button")].map((each) => each.dataset.slot);
    pool.change([], slots.map((each) => each.name));
    return found.filter((each) => each.includes("@desk"));
}"""


def test_slots_stand_in_the_order_of_their_numbers(page: Page, window: Any) -> None:
    window.wait_for_selector("#map button")
    assert window.evaluate(SOME_SLOTS) == ["slot1@desk2", "slot2@desk2", "slot10@desk2", "slot1@desk10"]


def test_the_keyboard_is_enough(page: Page, window: Any) -> None:
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.textContent") == "To the content"
    window.focus("#map button[tabindex='0']")
    first = window.evaluate("document.activeElement.dataset.slot")
    window.keyboard.press("ArrowRight")
    second = window.evaluate("document.activeElement.dataset.slot")
    assert first != second
    window.keyboard.press("Enter")
    assert second in window.inner_text("#slot")
    assert window.evaluate("document.querySelectorAll(\"#map button[tabindex='0']\").length") == 1


SMALL_LETTERS = """[...document.querySelectorAll("main svg text")]
    .filter((each) => each.getClientRects().length && each.getBoundingClientRect().height < 10)
    .map((each) => each.textContent)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nobody_is_shut_out(page: Page, window: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    cluster = page.pool.submit(SLEEPER.format(seconds=1000) + "queue 3\n")
    window.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    window.set_viewport_size({"width": width, "height": 800})
    window.wait_for_selector("#map button.running")
    window.click("#map button >> nth=0")
    job = until(lambda: rows[0] if (rows := page.data("/api/jobs?status=running")["rows"]) else None, "a job runs")
    for view, ready in (("pool", "#slot h3"), ("queue", "#jobs tbody a"), ("figures", "#charts svg"),
                        ("machines", "#machine-table tbody th"),
                        (f"job/{quote(job[0])}/{job[1]}.{job[2]}", ".story li")):
        window.evaluate("view => { location.hash = view; }", view)
        window.wait_for_selector(ready)
        found = axe.run(window)
        assert found.violations_count == 0, found.generate_report()
        assert window.evaluate("document.documentElement.scrollWidth") <= width, f"{view} is wider than {width}"
        assert window.evaluate(SMALL_LETTERS) == [], f"{view} has letters that nobody can read"
    assert cluster > 0
    cleared(page)


def test_names_of_jobs_are_no_markup(page: Page, window: Any) -> None:
    cluster = page.pool.submit(SLEEPER.format(seconds=1000).replace("log = job.log\n", "")
                     + f"batch_name = {SCRIPT}\n"
                     + f"description = {SCRIPT}\nhold = true\n+HoldReason = \"{SCRIPT}\"\nqueue\n")
    window.click("nav >> text=Queue")
    window.click(f"#jobs tbody a:text-is('{cluster}.0')")
    see(window, "document.getElementById('story').textContent.includes('<img')")
    assert window.evaluate("document.querySelectorAll('img').length") == 0
    assert "trusted-types" in page.ask("/")[1]["content-security-policy"]
    cleared(page)


# ---- attacks


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1", "x:y",
                                  ""])
def test_a_page_of_another_name_gets_nothing(page: Page, host: str) -> None:
    status, _, body = page.ask("/api/summary", Host=host)
    assert status == 421, body


def test_names_of_this_machine_and_addresses_are_ours(page: Page) -> None:
    for host in ("localhost", "127.0.0.1:1", "[::1]:80", socket.getfqdn(), "LOCALHOST."):
        assert page.ask("/api/summary", Host=host)[0] == 200, host


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/%2e%2e/web.py", "//etc/passwd", "/static/../web.py",
                                  "/page.js/..", "/page.js%00.html", "/PAGE.JS", "/.", "/web_access_key"])
def test_only_our_files_are_served(page: Page, path: str) -> None:
    assert page.ask(path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_is_written(page: Page, method: str) -> None:
    assert page.ask("/api/jobs", method)[0] == 405


@pytest.mark.parametrize("sent", [
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
])
def test_bodies_are_not_read(page: Page, sent: bytes) -> None:
    assert page.raw(sent).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("sent", [
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Y: z\r\n" * 5_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"\0\0\0\0\r\n\r\n",
])
def test_requests_that_are_none_are_refused(page: Page, sent: bytes) -> None:
    try:
        said = page.raw(sent)
    except ConnectionError:
        said = b""
    assert not said.startswith(b"HTTP/1.1 200 ")
    assert page.ask("/api/summary")[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_somebody_elses_takes_no_data_and_no_place_of_a_watcher(page: Page, site: str) -> None:
    for path in ("/api/events", "/api/jobs", "/api/summary"):
        assert page.ask(path, Sec_Fetch_Site=site)[0] == 403, path
    assert page.ask("/", Sec_Fetch_Site=site)[0] == 200  # a link leads to the page
    for own in ("same-origin", "none"):
        assert page.ask("/api/summary", Sec_Fetch_Site=own)[0] == 200


def test_one_source_takes_no_more_connections_than_its_share(page: Page) -> None:
    """Also with all the addresses of loopback: the one that has been silent longest makes room."""
    held = []
    for number in range(3 * OF_ONE):
        connection = socket.create_connection((page.host, page.port), timeout=60,
                                              source_address=(f"127.0.0.{2 + number % 50}", 0))
        connection.sendall(b"GET /api/summary HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        held.append(connection)
    assert answered(page, "/api/summary")
    for connection in held[:2 * OF_ONE]:
        with suppress(ConnectionError):
            while connection.recv(1 << 20):
                pass
    for connection in held:
        connection.close()


def test_one_watcher_too_many_is_asked_to_come_later(page: Page) -> None:
    streams = []
    for _ in range(FEW):
        stream = socket.create_connection((page.host, page.port), timeout=60)
        stream.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert stream.recv(1000).startswith(b"HTTP/1.1 200 ")
        streams.append(stream)
    status, headers, _ = page.ask("/api/events")
    assert (status, headers["retry-after"]) == (503, "60")
    for stream in streams:
        stream.close()
    stream = until(lambda: first_answer(page), "room again")
    stream.close()


def first_answer(page: Page) -> socket.socket | None:
    """An open stream, None when there is no room."""
    stream = socket.create_connection((page.host, page.port), timeout=60)
    stream.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    if stream.recv(1000).startswith(b"HTTP/1.1 200 "):
        return stream
    stream.close()
    return None


def test_the_description_is_what_is_answered(page: Page) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    api = schemathesis.openapi.from_dict(page.data("/api/openapi.json"))
    api.config.update(base_url=page.url.rstrip("/"))
    tried: set[str] = set()
    for result in api.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck),
                  phases=[Phase.explicit, Phase.generate], derandomize=True)
        def answers(case: Any) -> None:
            case.call_and_validate()
            tried.add(case.path)

        answers()
    assert tried == set(page.data("/api/openapi.json")["paths"])


# ---- a page with a key


class Neighbour(http.server.BaseHTTPRequestHandler):
    """A server at another port of the page's host name; to browsers its pages are of the same site."""

    cookies: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("Cookie") or "")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Nothing."""


@pytest.fixture(scope="module")
def locked() -> Iterator[Page]:
    """A page that its link opens."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config="WEB_ACCESS = KEY\n", web=True)
        yield Page(pool)
        pool.stop()


def visit(page: Page) -> tuple[str, str, str]:
    """Open the link: the path where the page is for this visit, its cookie, and all that was said of the cookie."""
    status, headers, body = page.ask(f"/?key={page.url.partition('?key=')[2]}")
    assert status == 200
    said = headers["set-cookie"]
    place = re.search(r"url=(/visit/[^/]+/)", body.decode())
    assert place is not None
    return place[1], said.partition(";")[0], said.lower()


def test_with_a_key_only_the_link_opens_the_page(locked: Page) -> None:
    key = locked.url.partition("?key=")[2]
    assert len(key) >= 32
    assert Path(locked.pool.dir / "run" / "web.url").stat().st_mode & 0o077 == 0
    for path in ("/", "/api/summary", "/page.js", "/?key=wrong", f"/api/summary?key={key}", "/visit/", "/visit//",
                 "/visit/x/api/summary", "/visit/x/?key=wrong"):
        assert locked.ask(path)[0] == 401, path
    place, cookie, said = visit(locked)
    assert locked.ask(f"{place}api/summary", Cookie=cookie)[0] == 200
    assert locked.ask(place, Cookie=cookie)[0] == 200
    assert locked.ask("/api/summary", Authorization=f"Bearer {key}")[0] == 200
    assert {"httponly", "samesite=strict", f"path={place.lower()}", "max-age=28800"} <= set(said.split("; "))
    log = (locked.pool.dir / "log" / "WebLog").read_text()
    assert key not in log
    assert place not in log


def test_a_visit_takes_both_its_secrets_and_neither_is_the_key(locked: Page) -> None:
    key = locked.url.partition("?key=")[2]
    place, cookie, said = visit(locked)
    other_place, other_cookie, _ = visit(locked)
    assert key not in said
    assert key not in place
    for path, shown in ((place, ""), (place, other_cookie), (other_place, cookie), ("/", cookie),
                        (place, f"condor_visit={key}"), (place, f"condor_web_key={key}"), (f"/visit/{key}/", cookie)):
        assert locked.ask(f"{path}api/summary", **({"Cookie": shown} if shown else {}))[0] == 401, (path, shown)
    assert locked.ask(f"{place}api/summary", Cookie=cookie)[0] == 200


def test_a_visit_ends_with_the_daemon(locked: Page) -> None:
    place, cookie, _ = visit(locked)
    old = locked.pool.kill("web")
    locked.pool.until_restarted("web", old)
    until(lambda: answers_at_all(locked), "the page to be there again")
    assert locked.ask(f"{place}api/summary", Cookie=cookie)[0] == 401


def answers_at_all(page: Page) -> bool:
    """Whether a request gets an answer."""
    with suppress(OSError):
        return bool(page.ask("/"))
    return False


def test_a_browser_shows_its_visit_to_no_other_port(locked: Page, browser: Any) -> None:
    """The page works, the key is out of the address, and a server beside it is sent no cookie."""
    until(lambda: answers_at_all(locked), "the page")
    server = http.server.ThreadingHTTPServer((locked.host, 0), Neighbour)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    context = browser.new_context()
    try:
        window = context.new_page()
        window.goto(locked.url)
        window.wait_for_selector("#map button")
        assert "key=" not in window.url
        assert "/visit/" in window.url
        window.reload()
        window.wait_for_selector("#map button")
        aside = context.new_page()
        for path in ("", "api/summary", "visit/", "visit/x/"):
            aside.goto(f"http://{locked.host}:{server.server_port}/{path}")
        assert len(Neighbour.cookies) >= 4
        assert set(Neighbour.cookies) == {""}
        own = [cookie for cookie in context.cookies() if "visit" in cookie["name"]]
        assert len(own) == 1
    finally:
        context.close()
        server.shutdown()
        server.server_close()
        thread.join()
