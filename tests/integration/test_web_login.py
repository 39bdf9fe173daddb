"""Log-in to the page of a real pool, and what users then do to jobs: by HTTP, in a browser, and under attack."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from condor_actors.daemons.web.sessions import BURST
from condor_actors.wire.idtokens.signed_token import read_claims, sign
from tests.harness.other_site import Elsewhere
from tests.harness.page_user import (
    User,
    choose,
    chosen,
    log_in,
    logged_in,
    open_queue,
    results,
    token_of,
    try_token,
)
from tests.harness.web_page import Page, see, strict_window
from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = "WEB_UPDATE_INTERVAL = 0.3\nWEB_MAX_CONNECTIONS_OF_ADDRESS = 60\n"
HELD = ("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nshould_transfer_files = yes\n"
        "hold = true\nqueue {count}\n")
NEVER = HELD.replace("hold = true", "requirements = false")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=CONFIG, web=True)
        made = Page(pool)
        until(lambda: made.data("/api/summary")["schedds"], "a schedd that the page knows")
        yield made
        pool.stop()


@pytest.fixture(scope="module")
def own_token(page: Page) -> str:
    """A token of the user who submits the jobs here."""
    return page.pool.run("condor_token_fetch").strip()


@pytest.fixture
def owner(page: Page, own_token: str) -> User:
    """The user who submits the jobs here."""
    return logged_in(page, own_token)


def job_of(page: Page, job: str, attribute: str) -> Any:
    found = page.pool.jobs(job, "-attributes", attribute)
    return found[0].get(attribute) if found else "gone"


# ---- users act


def test_a_user_acts_as_the_user_and_the_schedd_records_it(page: Page, owner: User) -> None:
    cluster = page.pool.submit(HELD.format(count=2))
    status, told = owner.act("release", f"{cluster}.0", "999999.0")
    assert (status, told["count"]) == (200, 1)
    assert told["results"] == [
        {"job": f"{cluster}.0", "result": "success", "text": f"Job {cluster}.0 was released."},
        {"job": "999999.0", "result": "not-found", "text": "Job 999999.0 is not in the queue."}]
    assert owner.act("hold", f"{cluster}.0", reason="no\nlonger")[1]["count"] == 1
    assert "no longer" in job_of(page, f"{cluster}.0", "HoldReason")
    assert owner.act("hold", f"{cluster}.0")[1]["results"][0]["result"] == "already-done"
    status, told = owner.post("/api/priority", {"jobs": [str(cluster)], "priority": 7})
    assert (status, told["count"], job_of(page, f"{cluster}.1", "JobPrio")) == (200, 2, 7)
    status, told = owner.act("remove", str(cluster))
    assert (status, told["count"]) == (200, 2)
    assert page.pool.jobs(str(cluster)) == []
    until(lambda: "act=remove-jobs" in audit_of(page), "the line of the audit log")
    line = next(line for line in audit_of(page).splitlines() if "act=remove-jobs" in line)
    assert f"who={owner.said['user']} via=token" in line
    assert "right=WRITE" in line


def audit_of(page: Page) -> str:
    return (page.pool.dir / "log" / "ScheddAuditLog").read_text()


def test_another_users_job_is_left_alone(page: Page) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    stranger = logged_in(page, token_of(page, "mallory"))
    for action in ("release", "remove", "hold"):
        status, told = stranger.act(action, f"{cluster}.0", str(cluster))
        assert (status, told["count"]) == (200, 0)
        assert {each["result"] for each in told["results"]} == {"permission-denied"}
    assert stranger.post("/api/priority", {"jobs": [f"{cluster}.0"], "priority": 9})[1]["count"] == 0
    assert (job_of(page, f"{cluster}.0", "JobStatus"), job_of(page, f"{cluster}.0", "JobPrio")) == (5, 0)
    until(lambda: "result=denied" in audit_of(page), "the refusal in the audit log")
    page.pool.run("condor_rm", str(cluster))


def test_a_token_for_reading_does_not_act(page: Page, owner: User) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    reader = logged_in(page, token_of(page, owner.said["user"].partition("@")[0], "-authz", "READ"))
    assert reader.said["levels"] == ["READ", "CLIENT"]
    status, told = reader.act("remove", f"{cluster}.0")
    assert status == 403
    assert "WRITE" in told["error"]
    assert job_of(page, f"{cluster}.0", "JobStatus") == 5
    page.pool.run("condor_rm", str(cluster))


# ---- tokens that do not count, sessions that have ended


def test_tokens_that_do_not_count_log_nobody_in(page: Page, owner: User) -> None:
    issuer, subject = read_claims(owner.token.rpartition(".")[0]).issuer, owner.said["user"]
    wrong = owner.token[:-6] + ("AAAAAA" if not owner.token.endswith("AAAAAA") else "BBBBBB")
    cases = {
        "signature is wrong": wrong,
        "tokens of": sign(b"a key of another pool", "POOL", "elsewhere", subject, now_s=1.8e9),
        "key": sign(b"a key of another pool", "OTHER", issuer, subject, now_s=1.8e9),
        "not a token": "nonsense",
    }
    for reason, token in cases.items():
        status, headers, body = try_token(page, token)
        assert status == 401, (reason, body)
        assert reason in json.loads(body)["error"]
        assert "set-cookie" not in headers
        assert token.rpartition(".")[2].encode() not in body or token == "nonsense"


def test_a_revoked_token_is_worth_nothing_at_once(page: Page, owner: User) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    token = page.pool.run("condor_token_fetch").strip()
    user = logged_in(page, token)
    page.pool.run("condor_token_revoke", read_claims(token.rpartition(".")[0]).token_id)
    status, told = user.act("remove", f"{cluster}.0")
    assert (status, "revoked" in told["error"]) == (401, True), told
    assert user.who() == ""
    assert job_of(page, f"{cluster}.0", "JobStatus") == 5
    assert try_token(page, token)[0] == 401
    assert owner.who() == owner.said["user"]
    page.pool.run("condor_rm", str(cluster))


def test_a_session_ends_with_its_token(page: Page) -> None:
    token = page.pool.run("condor_token_fetch", "-lifetime", "3600").strip()
    assert logged_in(page, token).said["ends"] == read_claims(token.rpartition(".")[0]).ends_s
    short = page.pool.run("condor_token_fetch", "-lifetime", "1").strip()
    _, _, body = until(lambda: found if (found := try_token(page, short))[0] == 401 else None, "the token to run out")
    assert "run out" in json.loads(body)["error"]


def test_a_stolen_cookie_is_half_of_what_it_takes(page: Page) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    user = logged_in(page, page.pool.run("condor_token_fetch").strip())
    act = {"action": "remove", "jobs": [f"{cluster}.0"]}
    assert user.post("/api/act", act, X_Condor_Session=None)[0] == 403
    assert user.post("/api/act", act, X_Condor_Session="none")[0] == 401
    assert user.post("/api/act", act, X_Condor_Session=user.cookie.partition("=")[2])[0] == 401
    assert user.post("/api/act", act, Cookie=None)[0] == 401
    assert user.post("/api/act", act, Cookie="condor_session=" + user.secret)[0] == 401
    assert user.who(X_Condor_Session=None) == user.who(Cookie=None) == ""
    assert user.who() == user.said["user"]
    status, told = user.post("/api/logout", {})
    assert (status, told["user"]) == (200, "")
    assert user.post("/api/act", act)[0] == 401  # both, after the log-out
    assert user.who() == ""
    assert job_of(page, f"{cluster}.0", "JobStatus") == 5
    page.pool.run("condor_rm", str(cluster))


def test_a_cookie_is_for_no_script_and_no_other_site(page: Page, owner: User) -> None:
    _, headers, _ = try_token(page, owner.token)
    facts = headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/"} <= set(facts)


def test_no_log_and_no_address_has_a_secret(page: Page, owner: User) -> None:
    owner.act("hold", "1.0")
    for path in (page.pool.dir / "log").iterdir():
        text = path.read_text(errors="replace")
        for secret in (owner.token, owner.token.rpartition(".")[2], owner.secret, owner.cookie.partition("=")[2]):
            assert secret not in text, path
    assert f"{owner.said['user']} logged in" in (page.pool.dir / "log" / "WebLog").read_text()


# ---- other sites, and bodies


@pytest.mark.parametrize("changed", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://localhost"},
    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Sec_Fetch_Site": "none"},
    {"Host": "evil.example"}, {"X_Condor_Session": None}, {"Content_Type": "text/plain"}, {"Content_Type": None},
    {"Content_Type": "application/x-www-form-urlencoded"}, {"Content_Type": "multipart/form-data; boundary=x"},
])
def test_what_another_site_can_send_does_nothing(page: Page, owner: User, changed: dict[str, str | None]) -> None:
    for path, fields in (("/api/act", {"action": "hold", "jobs": ["1.0"]}), ("/api/login", {"token": owner.token}),
                         ("/api/priority", {"jobs": ["1.0"], "priority": 1}), ("/api/logout", {})):
        assert owner.post(path, fields, **changed)[0] in (403, 415, 421), path
    assert owner.who() == owner.said["user"]


def test_posts_and_questions_have_their_paths(page: Page, owner: User) -> None:
    for path in ("/api/act", "/api/login", "/api/logout", "/api/priority"):
        status, headers, _ = page.ask(path, **owner.headers())
        assert (status, headers["allow"]) == (405, "POST")
        assert page.ask(path, "PUT", b"{}", **owner.headers())[0] == 405
    assert page.ask("/api/session", "POST", b"{}", **owner.headers())[0] == 405
    assert page.ask("/api/jobs", "POST", b"{}", **owner.headers())[0] == 405


@pytest.mark.parametrize(("body", "status"), [
    (b"", 400), (b"[]", 400), (b"[" * 10_000, 400), (b'{"jobs":["1.0"],"action":"hold","action":"remove"}', 400),
    (json.dumps({"action": "hold", "jobs": ["1.0"] * 501}).encode(), 400), (b"\xff\xfe", 400),
    (b'{"action":"remove-forced","jobs":["1.0"]}', 400), (b'{"action":"hold","jobs":["1.0"],"schedd":"x"}', 404),
])
def test_bodies_that_are_none_are_refused(page: Page, owner: User, body: bytes, status: int) -> None:
    assert page.ask("/api/act", "POST", body, **owner.headers())[0] == status


@pytest.mark.parametrize("length", [b"Content-Length: 16385", b"Content-Length: 99999999999",
                                    b"Transfer-Encoding: chunked"])
def test_large_bodies_are_not_read(page: Page, length: bytes) -> None:
    sent = b"POST /api/act HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + length + b"\r\n\r\n"
    assert page.raw(sent).startswith(b"HTTP/1.1 413 ")


def test_a_page_of_another_port_cannot_act_as_its_visitor(page: Page, owner: User, browser: Any) -> None:
    """For a cookie it is the same site: the browser even hands the cookie to that server."""
    cluster = page.pool.submit(HELD.format(count=1))
    server = http.server.ThreadingHTTPServer((page.host, 0), Elsewhere)
    Elsewhere.target, Elsewhere.job = page.url.rstrip("/"), f"{cluster}.0"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        window = context.new_page()
        log_in(window, page, owner.token)
        evil = context.new_page()
        evil.goto(f"http://{page.host}:{server.server_port}/")
        until(lambda: evil.title() == "refused,refused", lambda: f"both attempts to end: {evil.title()!r}")
        assert "condor_session=" in Elsewhere.cookies[0]
        stolen = User(page, "", Elsewhere.cookies[0], "none", {})
        assert stolen.act("remove", f"{cluster}.0")[0] == 401
        assert job_of(page, f"{cluster}.0", "JobStatus") == 5
        assert window.inner_text("#user-name") == f"Logged in as {owner.said['user']}"
    finally:
        context.close()
        server.shutdown()
        server.server_close()
    page.pool.run("condor_rm", str(cluster))


# ---- in a browser


@pytest.fixture
def window(browser: Any) -> Iterator[Any]:
    """A window that fails the test when a script fails, speaks, or is refused."""
    with strict_window(browser) as made:
        yield made


def open_job(window: Any, page: Page, job: str) -> None:
    schedd = page.data("/api/summary")["schedds"][0]
    window.evaluate("view => { location.hash = view; }", f"job/{schedd}/{job}")
    window.wait_for_selector(".story li")


def test_a_user_logs_in_acts_and_logs_out(page: Page, owner: User, window: Any) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    job = f"{cluster}.0"
    window.goto(page.url)
    open_job(window, page, job)
    assert window.is_hidden("#actions")
    log_in(window, page, owner.token)
    assert window.input_value("#token") == ""
    assert window.evaluate("document.activeElement.id") == "log-out"
    open_job(window, page, job)
    window.wait_for_selector("#actions button[data-action=release]")
    window.fill("#priority", "12")
    window.keyboard.press("Enter")
    see(window, f"document.getElementById('action-result').textContent === 'Job {job} was given its priority.'")
    assert job_of(page, job, "JobPrio") == 12
    window.click("#actions button[data-action=remove]")
    window.wait_for_selector("#confirm[open]")
    assert window.evaluate("document.activeElement.id") == "confirm-no"
    window.keyboard.press("Enter")
    assert job_of(page, job, "JobStatus") == 5, "kept"
    window.reload()
    window.wait_for_selector("#actions button[data-action=remove]")  # still logged in
    window.click("#actions button[data-action=remove]")
    window.click("#confirm-yes")
    see(window, f"document.getElementById('action-result').textContent === 'Job {job} was removed.'")
    until(lambda: page.pool.jobs(job) == [], "the job is gone")
    window.wait_for_selector("#actions", state="hidden")
    window.click("#log-out")
    window.wait_for_selector("#log-in:not([hidden])")
    assert window.evaluate("localStorage.length") == 0
    assert window.evaluate("document.cookie") == ""


def test_several_jobs_are_chosen_by_keyboard_and_by_mouse(page: Page, owner: User, window: Any) -> None:
    cluster = page.pool.submit(NEVER.format(count=4))
    jobs = [f"{cluster}.{number}" for number in range(4)]
    window.goto(f"{page.url}#queue")
    window.wait_for_selector("#jobs tbody a")
    assert window.locator("#jobs input").count() == 0
    assert window.is_hidden("#selection")
    log_in(window, page, owner.token)
    open_queue(window, page, cluster)
    assert window.is_disabled("#selection button[data-action=remove]")
    choose(window, jobs[1]).focus()
    window.keyboard.press("Space")
    window.keyboard.press("Shift+ArrowDown")
    window.keyboard.press("Shift+ArrowDown")
    chosen(window, "3 jobs chosen")
    window.keyboard.press("Space")
    chosen(window, "2 jobs chosen")
    page.pool.run("condor_hold", jobs[2])  # elsewhere, meanwhile: the table is drawn anew
    window.wait_for_selector("#jobs .s-held")
    assert window.evaluate("document.activeElement.dataset.id") == jobs[3]
    window.focus("#selection button[data-action=hold]")
    window.keyboard.press("Enter")
    window.wait_for_selector("#confirm[open]")
    assert window.inner_text("#confirm-title") == "Hold 2 jobs?"
    assert f"{jobs[1]}, {jobs[2]}." in window.inner_text("#confirm-text")
    window.keyboard.press("Tab")
    window.keyboard.press("Enter")
    assert results(window) == [f"Job {jobs[1]} was held.", f"Job {jobs[2]} is held already."]
    assert window.inner_text("#selection-summary") == "1 of 2 jobs were held."
    assert [job_of(page, job, "JobStatus") for job in jobs] == [1, 5, 5, 1]
    window.click("#choose-none")
    chosen(window, "0 jobs chosen")
    choose(window, jobs[0]).click()
    choose(window, jobs[3]).click(modifiers=["Shift"])
    chosen(window, "4 jobs chosen")
    page.pool.run("condor_rm", jobs[3])
    window.click("#selection button[data-action=release]")
    window.click("#confirm-yes")
    assert results(window)[:2] == [f"Job {jobs[0]} is not held.", f"Job {jobs[3]} is not in the queue."]
    chosen(window, "2 jobs chosen")  # those that were not released
    window.check("#choose-all")
    window.click("#selection button[data-action=remove]")
    window.click("#confirm-no")
    assert len(page.pool.jobs(str(cluster))) == 3
    window.click("#selection button[data-action=remove]")
    window.click("#confirm-yes")
    see(window, "document.getElementById('selection-summary').textContent.endsWith('jobs were removed.')")
    until(lambda: page.pool.jobs(str(cluster)) == [], "all are gone")
    window.click("#log-out")
    window.wait_for_selector("#selection", state="hidden")


def test_another_users_job_has_no_buttons_and_mistakes_are_told(page: Page, browser: Any) -> None:
    cluster = page.pool.submit(HELD.format(count=1))
    context = browser.new_context()
    try:
        window = context.new_page()
        window.goto(page.url)
        window.click("#log-in")
        window.fill("#token", "nonsense")
        window.keyboard.press("Enter")
        see(window, "document.getElementById('login-problem').textContent.startsWith('You are not logged in: ')")
        window.keyboard.press("Escape")
        token = token_of(page, "mallory")
        log_in(window, page, token)
        open_job(window, page, f"{cluster}.0")
        assert window.is_hidden("#actions")
        open_queue(window, page, cluster)
        window.wait_for_selector("#selection")
        assert choose(window, f"{cluster}.0").count() == 0
        page.pool.run("condor_rm", str(cluster))
        page.pool.run("condor_token_revoke", read_claims(token.rpartition(".")[0]).token_id)
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nobody_is_shut_out_of_acting(page: Page, owner: User, window: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    cluster = page.pool.submit(NEVER.format(count=1))
    window.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    window.set_viewport_size({"width": width, "height": 800})

    def check(what: str) -> None:
        found = axe.run(window)
        assert found.violations_count == 0, f"{what}: {found.generate_report()}"
        assert window.evaluate("document.documentElement.scrollWidth") <= width, f"{what} is wider than {width}"

    window.goto(page.url)
    window.click("#log-in")
    window.wait_for_selector("#login[open]")
    check("the log-in")
    window.keyboard.press("Escape")
    window.wait_for_selector("#login", state="hidden")
    log_in(window, page, owner.token)
    open_job(window, page, f"{cluster}.0")
    window.click("#actions button[data-action=hold]")
    window.wait_for_selector("#actions button[data-action=release]")
    check("a job's actions")
    window.click("#actions button[data-action=remove]")
    window.wait_for_selector("#confirm[open]")
    check("the confirmation")
    window.keyboard.press("Escape")
    open_queue(window, page, cluster)
    choose(window, f"{cluster}.0").check()
    window.click("#selection button[data-action=hold]")
    window.wait_for_selector("#confirm[open]")
    check("the confirmation for several")
    window.click("#confirm-yes")
    assert results(window) == [f"Job {cluster}.0 is held already."]
    check("jobs that are chosen")
    page.pool.run("condor_rm", str(cluster))


# ---- the description, and what an administrator sets


def test_the_description_is_what_a_user_is_answered(page: Page, owner: User) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    described = page.data("/api/openapi.json")
    described["paths"] = {path: described["paths"][path] for path in ("/api/session", "/api/act", "/api/priority")}
    api = schemathesis.openapi.from_dict(described)
    api.config.update(base_url=page.url.rstrip("/"))
    headers = {"X-Condor-Session": owner.secret, "Cookie": owner.cookie}
    tried: dict[str, set[int]] = {}
    for result in api.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck),
                  phases=[Phase.explicit, Phase.generate], derandomize=True)
        def answers(case: Any) -> None:
            if isinstance(case.body, dict):
                case.body.pop("schedd", None)
            answer = case.call_and_validate(headers=headers)
            tried.setdefault(case.path, set()).add(answer.status_code)

        answers()
    assert tried == {path: {200} for path in described["paths"]}


def test_an_administrator_closes_the_log_in(page: Page) -> None:
    user = logged_in(page, page.pool.run("condor_token_fetch").strip())
    installed = page.pool.dir / "config.d" / "10-given"
    whole = installed.read_text()
    installed.write_text(whole + "\nWEB_LOGIN = FALSE\n")
    page.pool.run("condor_reconfig", "-daemon", "web")
    try:
        refused = until(lambda: page.data("/api/session")["refusal"], "the log-in to be closed")
        assert "WEB_LOGIN" in refused
        assert user.act("hold", "1.0")[0] == 401
        status, _, body = try_token(page, user.token)
        assert (status, json.loads(body)["error"]) == (403, refused)
    finally:
        installed.write_text(whole)
        page.pool.run("condor_reconfig", "-daemon", "web")
    until(lambda: page.data("/api/session")["refusal"] == "", "the log-in to be open")
    assert user.who() == "", "the session has ended for good"


def test_guessing_is_slowed_down(page: Page) -> None:
    answers = [try_token(page, "nonsense") for _ in range(BURST + 5)]
    statuses = [status for status, _, _ in answers]
    assert statuses[-1] == 429
    assert int(answers[-1][1]["retry-after"]) > 0


def test_by_https_the_cookie_stays_there() -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, web=True, config="WEB_CERTIFICATE = $(HOST_CERTIFICATE)\n"
                                                              "WEB_KEY = $(HOST_KEY)\n")
        try:
            page = Page(pool)
            until(lambda: page.data("/api/summary")["schedds"], "a schedd that the page knows")
            _, headers, body = try_token(page, pool.run("condor_token_fetch").strip())
            cookie = headers["set-cookie"]
            assert cookie.startswith("__Host-condor_session=")
            assert "secure" in cookie.lower().split("; ")
            user = User(page, "", cookie.partition(";")[0], json.loads(body)["secret"], json.loads(body))
            assert user.who() == user.said["user"]
            plain = user.headers(Origin=f"http://{page.host}:{page.port}")
            assert page.ask("/api/logout", "POST", b"{}", **plain)[0] == 403
            assert user.act("hold", "1.0")[0] == 200
        finally:
            pool.stop()
