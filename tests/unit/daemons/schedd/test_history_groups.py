"""Totals by any attribute: columns say what the jobs themselves say, and nothing that happens to a file changes it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd import history_groups, history_pieces
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.messages.queue import QueryJobs
from condor_actors.store import history_columns
from condor_actors.store.history_columns import FOLDER, HistoryColumns, make_missing
from condor_actors.store.queue_store import QueueStore

PIECE = 32
EVERYTHING = JobSight(frozenset(), lambda owner: True)
STRANGER = JobSight(frozenset({"cmd", "projectname"}), lambda owner: owner == "ann")
TEXTS = (
    '"biology"', '"Biology"', '"b\\"io\\nlogy"', "7", "-7", "7.0", "0.5", "1.0E+03", "true", "FALSE", "undefined",
    "error", "RequestMemory * 2", "MY.RequestMemory + 1", "TARGET.Memory", "Owner", "Day", '{ 1,"a",ProjectName }',
    "[ a = 1; b = RequestCpus ]", 'strcat(Owner,"-",ProjectName)', "ifThenElse(RequestMemory > 5,Cmd,Outcome)",
    'eval("RequestMemory")', "size(ProjectName)", "-(3)", "1 / 0", "Loop", "MY", '"\xff"', "12345678901234567",
)
NAMES = ("ProjectName", "RequestMemory", "requestmemory", "REQUESTCPUS", "Cmd", "Loop", "Outcome", "Mine", "'odd name'")
SHARED = ("RequestMemory = 64", 'Cmd = "/bin/a"', "Mine = Cmd")
CONSTRAINTS = (
    "", "RequestMemory > 3", "RequestMemory <= 7 && ProjectName =?= \"biology\"", "ProjectName == \"BIOLOGY\"",
    "7 || Nothing", "Nothing =?= undefined && true", 'Outcome == "failed" && RequestMemory isnt undefined',
    "RequestMemory && RequestCpus", "!(RequestMemory > 3)", 'Day >= "2023-11-15"', 'Owner != "ann" && Serial < 60',
    "Serial >= 5 && Serial < 90", "MY.Serial > 10", "TARGET.Serial > 1", "eval(\"Serial > 20\")", "Serial % 3",
    "stringListMember(ProjectName,\"biology,7\")", "error || Serial > 3", "regexp(\"^b\",ProjectName)",
    "'odd name' > 1", 'Cmd is undefined', "undefined",
)
BY = (("ProjectName",), ("RequestMemory",), ("projectname", "Outcome"), ("Month", "RequestCpus"),
      ("Mine", "Cmd", "Day"), ("Serial",), ("Nothing",), ("Loop",), ("Owner", "ProjectName"))


def ended(serial: int, chance: random.Random) -> ArchiveJob:
    """A job with odd attributes."""
    def lines(most: int) -> list[str]:
        return [f"{chance.choice(NAMES)} = {chance.choice(TEXTS)}" for _ in range(chance.randrange(most))]

    own = [f"Serial = {serial}", f"JobStatus = {chance.choice((3, 4))}", f"ExitCode = {chance.choice((0, 0, 1))}",
           f"NumJobStarts = {chance.randrange(3)}", f"RemoteWallClockTime = {chance.randrange(9000) / 4}", *lines(6)]
    text = "\n".join([*own, ""])
    shared = "\n".join([*random.Random(serial // 7).choices(SHARED, k=2), ""])
    return ArchiveJob(1 + serial // 7, serial % 7, chance.choice(("ann", "bob", "carl")), 1,
                      1_700_000_000.0 + 9_000 * serial, text.encode("utf-8", "surrogateescape"), shared.encode())


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_columns, "PIECE_JOBS", PIECE)
    monkeypatch.setattr(history_groups, "PIECE_JOBS", PIECE)


def history(folder: Path, jobs: int, seed: int = 1) -> QueueStore:
    chance = random.Random(seed)
    store = QueueStore(folder)
    store.commit([ended(serial, chance) for serial in range(jobs)])
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueStore]:
    made = history(tmp_path, 100)
    yield made
    made.close()


class Asked:
    """All pages of an answer, added up."""

    def __init__(self, store: QueueStore, folder: Path | None, sight: JobSight = EVERYTHING,
                 **question: object) -> None:
        columns = None if folder is None else HistoryColumns(folder / FOLDER)
        questions = HistoryQuestions(store.history, lambda function, *given: function(*given), columns=columns)
        self.groups: dict[str, list[float]] = {}
        self.looked = self.scanned = self.pages = 0
        self.reasons: set[str] = set()
        cursor = ""
        while True:
            page = questions.answer(QueryJobs(source="totals", cursor=cursor, **question), sight)  # type: ignore[arg-type]
            for text in page.ads:  # type: ignore[attr-defined]
                ad = ClassAd.from_bytes(text)
                sums = [ad.get_float(name) for name in history_groups.SUMMED]
                for name in history_groups.SUMMED:
                    del ad[name]
                before = self.groups.setdefault(str(ad), [0.0] * 5)
                self.groups[str(ad)] = [one + other for one, other in zip(before, sums, strict=True)]
            self.looked += page.looked  # type: ignore[attr-defined]
            self.scanned += page.scanned  # type: ignore[attr-defined]
            self.reasons |= {page.reason} - {""}  # type: ignore[attr-defined]
            self.pages += 1
            cursor = page.cursor  # type: ignore[attr-defined]
            if not cursor:
                return


def same(one: Asked, other: Asked) -> bool:
    return one.groups.keys() == other.groups.keys() and all(
        sums == pytest.approx(other.groups[key]) for key, sums in one.groups.items())


@pytest.mark.parametrize("seed", range(2))
def test_columns_say_what_the_jobs_say(tmp_path: Path, seed: int) -> None:
    store = history(tmp_path, 100, seed)
    assert make_missing(tmp_path, 400) == 3
    if seed == 1:
        store.trim_history(90)  # the first piece has lost some jobs
    by_columns = 0
    for constraint in CONSTRAINTS:
        for by in BY:
            for sight in (EVERYTHING, STRANGER):
                question = {"constraint": constraint, "projection": (*by, "Serial") if constraint == "" else by}
                fast = Asked(store, tmp_path, sight, **question)
                slow = Asked(store, None, sight, **question)
                assert same(fast, slow), (constraint, by)
                by_columns += fast.looked - fast.scanned
    assert by_columns > 5_000
    store.close()


def test_a_users_own_jobs(store: QueueStore, tmp_path: Path) -> None:
    make_missing(tmp_path, 400)
    fast = Asked(store, tmp_path, owner="bob@here", projection=("Outcome", "Serial"))
    assert same(fast, Asked(store, None, owner="bob", projection=("Outcome", "Serial")))
    assert fast.scanned == 100 % PIECE


def test_attributes_that_were_left_out_are_looked_up_in_the_jobs(tmp_path: Path) -> None:
    store = QueueStore(tmp_path)
    chance = random.Random(3)
    store.commit([ArchiveJob(1, serial, "ann", 1, 1e9, b"Small = 1\nLarge = %d\n" % chance.getrandbits(49), b"")
                  for serial in range(PIECE)])
    make_missing(tmp_path, 15)
    assert Asked(store, tmp_path, projection=("Small",)).scanned == 0
    large = Asked(store, tmp_path, projection=("Small",), constraint="Large >= 0")
    assert (large.scanned, large.reasons) == (PIECE, {"large has no column"})
    assert Asked(store, tmp_path, projection=("Small",), constraint="Unheard is undefined").scanned == PIECE
    assert [sums[0] for sums in large.groups.values()] == [PIECE]
    store.close()


@pytest.mark.parametrize("harm", ["cut", "turned", "empty", "other version"])
def test_a_damaged_file_is_removed_and_made_again(store: QueueStore, tmp_path: Path, harm: str) -> None:
    make_missing(tmp_path, 400)
    right = Asked(store, None, projection=("ProjectName",))
    path = history_columns.path_of(tmp_path / FOLDER, 1)
    whole = path.read_bytes()
    for at in range(10, len(whole), 41):
        data = bytearray(whole)
        if harm == "cut":
            del data[at:]
        elif harm == "turned":
            data[at] ^= 0xFF
        elif harm == "empty":
            data.clear()
        else:
            data[7] = data[-1] = 9
        path.write_bytes(data)
        assert same(Asked(store, tmp_path, projection=("ProjectName",)), right)
        if harm != "turned":  # the turned byte may be in a column that was not read
            assert not path.exists()
    path.unlink(missing_ok=True)
    assert make_missing(tmp_path, 400) == 1
    assert path.read_bytes() == whole


def test_a_file_of_another_history_is_not_believed(store: QueueStore, tmp_path: Path) -> None:
    make_missing(tmp_path, 400)
    other = tmp_path / "other"
    other.mkdir()
    again = history(other, 100, seed=9)
    again.commit([])
    with again.database.transaction() as connection:
        connection.execute("UPDATE history SET ended_s = ended_s + 1")
    (tmp_path / FOLDER).rename(other / FOLDER)
    assert same(Asked(again, other, projection=("ProjectName",)), Asked(again, None, projection=("ProjectName",)))
    assert list((other / FOLDER).iterdir()) == []
    again.close()


def test_files_go_with_their_pieces_and_with_what_an_interrupted_one_left(store: QueueStore, tmp_path: Path) -> None:
    assert [make_missing(tmp_path, 400, most=2), make_missing(tmp_path, 400), make_missing(tmp_path, 400)] == [2, 1, 0]
    (tmp_path / FOLDER / ".0000000001.columns.17").write_text("half")
    while store.trim_history(30):
        pass
    make_missing(tmp_path, 400)
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["0000000002.columns"]
    make_missing(tmp_path, 0)
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_columns_take_their_share_at_most(store: QueueStore, tmp_path: Path) -> None:
    make_missing(tmp_path, 400)
    large = sum(path.stat().st_size for path in (tmp_path / FOLDER).iterdir())
    make_missing(tmp_path, 0)
    make_missing(tmp_path, 5)
    assert sum(path.stat().st_size for path in (tmp_path / FOLDER).iterdir()) < large / 2


def test_many_groups_come_on_many_pages(store: QueueStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_missing(tmp_path, 400)
    monkeypatch.setattr(history_groups, "GROUPS_BYTES", 3_000)
    asked = Asked(store, tmp_path, projection=("Serial",))
    assert (len(asked.groups), asked.looked) == (100, 100)
    assert asked.pages > 10


def test_what_takes_long_is_looked_at_job_by_job(store: QueueStore, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    make_missing(tmp_path, 400)
    monkeypatch.setattr(history_pieces, "PIECE_S", -1.0)
    assert Asked(store, tmp_path, projection=("Serial",)).reasons >= {"it takes long"}


@pytest.mark.parametrize(("wrong", "why"), [
    ({"projection": ("a b",)}, "no attribute"), ({"projection": ("jobstarts",)}, "one of their sums"),
    ({"projection": ("Cmd",), "ids": ((1, 0),)}, "not of single ones"),
    ({"projection": ("Cmd",), "since": "1"}, "since"),
    ({"projection": tuple(f"A{number}" for number in range(11))}, "at most 10"),
    ({"projection": ("Cmd",), "cursor": "x"}, "no cursor"),
])
def test_what_makes_no_sense_is_refused(store: QueueStore, wrong: dict[str, object], why: str) -> None:
    questions = HistoryQuestions(store.history, lambda function, *given: function(*given))
    with pytest.raises(ValueError, match=why):
        questions.answer(QueryJobs(source="totals", **wrong), EVERYTHING)  # type: ignore[arg-type]
