"""What machines, users and shadow hosts say, on the page: it is drawn for everybody, whatever one of them says.

A slot whose load has no end made the answer about machines no JSON, a date that no calendar has ended the script that
draws, and cores beyond all measure had the figures of three months thrown away at the next start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.web import picture, rows
from condor_actors.cores.web.figures import ENDED_ATTRIBUTES, Ended, Figures, Sample
from condor_actors.cores.web.picture import PoolPicture
from condor_actors.cores.web.rows import QueueRows, View
from condor_actors.cores.web.story import SHOWN, job_story
from condor_actors.daemons.schedd.job_story import told
from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.messages.envelope import Done
from condor_actors.numerals import LAST_S
from condor_actors.wire.blocking import connect
from tests.harness.web_page import Page, see, strict_window
from tests.pool_fixture import PersonalPool, fresh_folder, until
from tests.security.test_hostile_attributes import VALUES

FEW = 3
EXACT = 2**53
"""Beyond which a browser reads another number than was written."""
DATES = ("StageInFinish", "LastMatchTime", "JobCurrentStartExecutingDate", "LastRejMatchTime", "EnteredCurrentStatus")
MARKUP = "<img src=x onerror=alert(1)>"
CONFIG = "WEB_UPDATE_INTERVAL = 0.3\nWEB_FIGURES_INTERVAL = 1\n"


def read(data: Any) -> Any:
    """What a browser makes of an answer.

    Raises:
        ValueError: it is no JSON.
    """
    def none(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(json.dumps(data), parse_constant=none)


def numbers(data: Any) -> Iterator[float]:
    """All numbers of an answer."""
    if isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from numbers(each)
    elif isinstance(data, int | float):
        yield data


def is_drawn(data: Any) -> None:
    """A browser can read it, and knows each number."""
    assert all(abs(each) < EXACT for each in numbers(read(data)))


def one(name: str, value: str, **others: str) -> bytes:
    """An ad, of which one attribute is hostile."""
    said = {**others, name: value}
    return "".join(f"{each} = {text}\n" for each, text in said.items()).encode()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("name", sorted(set(picture.ATTRIBUTES) - {"Name"}))
def test_a_machine(name: str, value: str) -> None:
    pool = PoolPicture()
    changed = pool.heard(one(name, value, Name=f'"slot{number}@evil"', Machine='"evil"', State='"Claimed"')
                         for number in range(3))
    is_drawn(changed)
    is_drawn([pool.counts(), pool.cpus(), pool.machines()])
    assert all(0 <= slot["since"] <= LAST_S for slot in changed)
    cpus = pool.cpus()
    figures = Figures()
    for at_s in range(5):
        figures.add(Sample(at_s=float(at_s), cpus=sum(cpus.values()), running=cpus["running"], owner=cpus["owner"],
                           idle_jobs=0, running_jobs=0, held_jobs=0, ended=Ended()))
    is_drawn(figures.span("day", 10.0))
    Figures().restore(json.loads(json.dumps(figures.saved())))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("name", sorted({*rows.ATTRIBUTES, *SHOWN, *DATES}))
def test_a_job(name: str, value: str) -> None:
    text = one(name, value, ClusterId="1", ProcId="0", JobStatus="2", CompletionDate="900", QDate="100")
    ad = ClassAd.from_bytes(text)
    queue = QueueRows(lambda: 0.0)
    queue.put("schedd", [text])
    is_drawn(queue.page(View(sort="memory")).rows)
    shown = job_story("schedd", ad, told(ad, ()), has_left=False)
    is_drawn(shown)
    assert all(0 < line["at"] <= LAST_S for line in shown["events"])


@pytest.mark.parametrize("value", [*VALUES.values(), "1.0e-300", "-1.0e308"])
@pytest.mark.parametrize("name", ENDED_ATTRIBUTES)
def test_a_job_that_has_ended(name: str, value: str) -> None:
    """Some of it says the shadow host, which is its owner's process."""
    known = {"QDate": "100", "CompletionDate": "900", "RemoteWallClockTime": "10.0", "Leverage": "1.0e-300",
             "RemoteUserCpu": "1.0e8", "JobStatus": "4"}
    figures = Figures()
    for _ in range(3):
        figures.add(Sample(at_s=60.0, cpus=4, running=1, owner=0, idle_jobs=0, running_jobs=0, held_jobs=0,
                           ended=Ended.of([one(name, value, **known)] * 50)))
    is_drawn(figures.span("day", 100.0))
    kept = Figures()
    kept.restore(json.loads(json.dumps(figures.saved())))
    assert kept.saved() == figures.saved()


# ---- in a browser


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=CONFIG, web=True)
        yield Page(pool)
        pool.stop()


def advertised(page: Page, name: str, **said: str) -> None:
    """A slot that a machine of the pool has made up."""
    ad = {"MyType": '"Machine"', "Name": f'"{name}"', "Machine": f'"{MARKUP}"', "State": '"Claimed"',
          "Activity": '"Busy"', "MyAddress": '"192.0.2.1:9618"', **said}
    text = "".join(f"{each} = {value}\n" for each, value in ad.items()).encode()
    with connect(f"unix:{page.pool.dir}/run/collector.sock") as client:
        assert client.ask("collector", UpdateAd(ad_kind=AdKind.SLOT, ad=text)) == Done()


def test_all_views_are_drawn(page: Page, browser: Any) -> None:
    cluster = page.pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                               f"should_transfer_files = yes\nbatch_name = {MARKUP}\nhold = true\nqueue 2\n")
    for each in ("JobCurrentStartDate", "JobCurrentStartExecutingDate", "StageInFinish"):
        page.pool.run("condor_qedit", f"{cluster}.0", each, "9223372036854775807")
    page.pool.run("condor_qedit", f"{cluster}.0", "DAGMan_Graph", json.dumps(json.dumps([[MARKUP, []]])))
    for number in range(3):
        advertised(page, f"{MARKUP}{number}", LoadAvg="1.7e308", Cpus="9223372036854775807",
                   EnteredCurrentActivity="9223372036854775807", RemoteUser=f'"{MARKUP}"',
                   JobId='"javascript:alert(1)"', RemoteScheddName='"javascript:alert(1)"')
    until(lambda: len(page.data("/api/pool")["slots"]) > FEW, "slots that were made up")
    with strict_window(browser) as window:
        window.goto(page.url)
        window.wait_for_selector("#map button >> nth=3")
        for at in range(4):
            window.click(f"#map button >> nth={at}")
            window.wait_for_selector("#slot h3")
        window.click("nav >> text=Machines")
        see(window, "document.querySelectorAll('#machine-table tbody th').length === 2")
        window.click("nav >> text=Queue")
        window.wait_for_selector(f"#jobs a:text-is('{cluster}.0')")
        window.click(f"#jobs a:text-is('{cluster}.0')")
        window.wait_for_selector("#story svg.dag")
        window.click("nav >> text=Figures")
        window.wait_for_selector("#charts svg")

