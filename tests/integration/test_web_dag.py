"""A workflow on the page of a real pool: node by node, and a large one by levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.test_dagman import Workflows
from tests.harness.user_pool import user_pool
from tests.harness.web_page import Page, see
from tests.pool_fixture import until

CONFIG = ("DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD WEB\nWEB_UPDATE_INTERVAL = 0.3\n"
          "DAGMAN_USER_LOG_SCAN_INTERVAL = 1\n")
WAITS = "universe = local\nexecutable = /bin/sh\narguments = \"-c 'until [ -e go ]; do sleep 0.2; done'\"\nqueue\n"
FAILS = "universe = local\nexecutable = /bin/false\nqueue\n"
DAG = """JOB First say.sub
JOB Waits waits.sub
JOB Fails fails.sub
JOB After say.sub
JOB Never say.sub
PARENT First CHILD Waits Fails
PARENT Waits CHILD After
PARENT Waits Fails CHILD Never
"""
MANY = 400


@pytest.fixture(scope="module")
def dags() -> Iterator[Workflows]:
    with user_pool(CONFIG) as pool:
        yield Workflows(pool)


@pytest.fixture(scope="module")
def page(dags: Workflows) -> Page:
    return Page(dags.pool)


def picture(page: Page, cluster: int) -> Any:
    """What the page has of a workflow, None before there is something."""
    status, _, _ = page.ask(f"/api/job?cluster={cluster}")
    return page.data(f"/api/job?cluster={cluster}")["dag"] if status == 200 else None


def states(page: Page, cluster: int) -> dict[str, str]:
    return {node["name"]: node["state"] for node in (picture(page, cluster) or {"nodes": []})["nodes"]}


@pytest.mark.parametrize("width", [360, 1280])
def test_a_workflow_is_drawn_with_the_state_of_each_node(dags: Workflows, page: Page, browser: Any, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    folder = dags.begin(DAG, waits_sub=WAITS, fails_sub=FAILS)
    cluster = dags.submit()
    now = {"First": "done", "Waits": "running", "Fails": "failed", "After": "waiting", "Never": "futile"}
    until(lambda: states(page, cluster) == now, lambda: f"{states(page, cluster)}\n{dags.out()}")
    shown = picture(page, cluster)
    assert [node["level"] for node in shown["nodes"]] == [0, 1, 1, 2, 2]
    assert len(shown["edges"]) == 5
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark",
                                  reduced_motion="reduce")
    try:
        window = context.new_page()
        schedd = page.data("/api/summary")["schedds"][0]
        window.goto(f"{page.url}#job/{schedd}/{cluster}.0")
        window.wait_for_selector("svg.dag .node >> nth=4")
        assert window.evaluate("document.querySelectorAll('svg.dag .edge').length") == 5
        assert window.evaluate("document.querySelector('.n-failed title').textContent") == "Fails: failed"
        window.focus("details.nodes summary")
        window.keyboard.press("Enter")
        see(window, "document.querySelector('details.nodes').open")
        jobs = {node["name"]: node["job"] for node in picture(page, cluster)["nodes"]}
        assert {name for name, job in jobs.items() if job} == {"First", "Waits", "Fails"}
        rows = window.evaluate("[...document.querySelectorAll('details.nodes tbody tr')].map((row) => row.textContent)")
        assert "NeverfutileWaits, Fails" in rows
        found = axe.run(window)
        assert found.violations_count == 0, found.generate_report()
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        (folder / "go").touch()
        see(window, "document.querySelectorAll('svg.dag .n-done').length === 3")
        see(window, "document.querySelector('details.nodes').open")  # also drawn anew
        follow_nodes(window, page, jobs)
    finally:
        context.close()
    assert dags.wait() == 1
    until(lambda: page.data(f"/api/job?cluster={cluster}")["left"], "the workflow is in the history")
    assert states(page, cluster) == {**now, "Waits": "done", "After": "done"}


def follow_nodes(window: Any, page: Page, jobs: dict[str, str]) -> None:
    """From the picture by mouse, from the table by keyboard, to a node's job, and back."""
    for name, press in (("Fails", lambda: window.click("svg.dag .node:has(title:text-is('Fails: failed'))")),
                        ("First", lambda: (window.focus("details.nodes a:text-is('First')"),
                                           window.keyboard.press("Enter")))):
        press()
        see(window, f"document.getElementById('job-title').textContent.startsWith('Job {jobs[name]} of ')")
        see(window, f"document.querySelector('#story dl').textContent.includes('DAGNodeName{name}')")
        assert window.evaluate("document.activeElement.id") == "main"
        window.go_back()
        window.wait_for_selector("svg.dag .node")


def test_a_large_workflow_is_told_by_levels(dags: Workflows, page: Page, browser: Any) -> None:
    children = [f"n{number}" for number in range(MANY)]
    text = "JOB Waits waits.sub\n" + "".join(f"JOB {name} say.sub NOOP\n" for name in children)
    folder = dags.begin(text + f"PARENT Waits CHILD {' '.join(children)}\n", waits_sub=WAITS)
    cluster = dags.submit()
    until(lambda: (picture(page, cluster) or {}).get("levels") == [{"running": 1}, {"waiting": MANY}],
          lambda: f"{picture(page, cluster)}\n{dags.out()}")
    assert picture(page, cluster)["nodes"] == []
    context = browser.new_context()
    try:
        window = context.new_page()
        schedd = page.data("/api/summary")["schedds"][0]
        window.goto(f"{page.url}#job/{schedd}/{cluster}.0")
        see(window, f"document.body.textContent.includes('{MANY + 1} nodes: 1 running, {MANY} waiting.')")
    finally:
        context.close()
    (folder / "go").touch()
    assert dags.wait() == 0
    until(lambda: (picture(page, cluster) or {}).get("counts") == {"done": MANY + 1}, "all of it done")


def test_a_job_that_is_no_workflow_has_no_picture(dags: Workflows, page: Page) -> None:
    cluster = dags.pool.submit("executable = /bin/true\nhold = true\nqueue\n")
    assert picture(page, cluster) is None
    dags.pool.run("condor_rm", str(cluster))
