"""Custom print formats."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.printing.formats import FormatError
from condor_actors.tools.printing.tables import PrintTable


def job(cluster: int, owner: str, **more: object) -> ClassAd:
    return ClassAd({"ClusterId": cluster, "ProcId": 0, "Owner": owner, "JobStatus": 1, "Cmd": "/bin/sleep", **more})


JOBS = [job(12, "bob", RequestMemory=2048), job(3, "alice")]


def test_columns_heads_and_functions() -> None:
    table = PrintTable.parse(
        """
        # a comment
        SELECT NOTITLE NOSUMMARY
           ClusterId     AS '    ID'  NOSUFFIX WIDTH 6
           ProcId        AS ' '       NOPREFIX PRINTF '.%-3d'
           Owner         AS OWNER     WIDTH -8  PRINTAS OWNER
           JobStatus     AS ST        PRINTAS JOB_STATUS
           RequestMemory AS MEMORY    WIDTH 10 PRINTAS READABLE_MB OR ??
           Cmd           AS CMD       PRINTAS JOB_DESCRIPTION
        GROUP BY
           Owner
        """
    )
    assert not table.has_title
    assert not table.has_summary
    assert list(table.rows(JOBS)) == [
        "    ID     OWNER    ST     MEMORY CMD\n",
        "     3.0   alice    I  ?????????? sleep\n",
        "    12.0   bob      I      2.0 GB sleep\n",
    ]


def test_where_order_and_expressions() -> None:
    table = PrintTable.parse("SELECT BARE\nClusterId * 2 AS N\nWHERE ClusterId > 1\nGROUP BY ClusterId DESCENDING\n")
    assert list(table.rows(JOBS)) == ["24\n", "6\n"]


def test_labels_and_separators() -> None:
    table = PrintTable.parse(
        "SELECT BARE LABEL SEPARATOR ': ' FIELDSUFFIX '\\n' RECORDSUFFIX ''\nOwner AS Name\nClusterId\n"
    )
    assert "".join(table.rows(JOBS[:1])) == "Name: bob\nClusterId: 12\n"


@pytest.mark.parametrize("text", ["Owner", "SELECT\nOwner AS", "SELECT\nOwner PRINTAS NOTHING", "SELECT\nOwner WIDTH x",
                                  "SELECT\nA == AS x", "SELECT FROM JOBS"])  # fmt: skip
def test_what_makes_no_table_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(FormatError, match="line"):
        PrintTable.parse(text)


def test_unique_counts_what_agrees_in_everything_that_is_shown() -> None:
    table = PrintTable.parse("""
        SELECT UNIQUE NOTITLE NOSUMMARY
           Owner AS OWNER WIDTH -6
           JobStatus PRINTAS JOB_STATUS_RAW
           JobCount AS COUNT PRINTF %5d
           JobIds AS IDS
        GROUP BY
           Owner
    """)
    jobs = [job(5, "bob"), job(3, "alice"), job(4, "alice", JobStatus=5), job(9, "bob"), job(7, "bob")]
    assert list(table.rows(jobs)) == [
        "OWNER  JobStatus COUNT IDS\n",
        "alice  Idle          1 3.0\n",
        "alice  Held          1 4.0\n",
        "bob    Idle          3 5.0 ... 9.0\n",
    ]


def test_autoclusters_are_asked_for() -> None:
    table = PrintTable.parse("SELECT FROM AUTOCLUSTER NOTITLE\nOwner\nSUMMARY NONE\n")
    assert table.is_of_autoclusters
    assert not table.has_title


@pytest.mark.parametrize(("function", "value", "shown"), [
    ("ACTIVITY_CODE", "Dummy", "Cb"), ("ACTIVITY_TIME", "100", "0+00:15:00"),
    ("CONDOR_VERSION", '"$CondorVersion: 25.1.2 x $"', "25.1.2"),
    ("CONDOR_PLATFORM", '"$CondorPlatform: X86_64-Debian_12 $"', "x86_64_Debian_12"), ("CPU_UTIL", "Dummy", "0.5"),
    ("DAG_OWNER", "Dummy", "B"), ("ELAPSED_TIME", "940", "0+00:01:00"), ("LOAD_AVG", "0.5", "0.500"),
    ("MEMBER_COUNT", '{1,"a",3}', "3"), ("MEMBER_COUNT", '"a, b"', "2"), ("PLATFORM", "Dummy", "x64/Debian12"),
    ("READABLE_KB", "2048", "2.0 MB"), ("STRINGS_FROM_LIST", '{"a","b"}', "a, b"), ("TIME", "61", "0+00:01:01"),
    ("UNIQUE", '{"a","b","a"}', "a, b"), ("JOB_UNIVERSE", "1", "Standard"), ("BUFFER_IO_MISC", "Dummy", "<"),
])
def test_each_function_of_the_manual(
    function: str, value: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("time.time", lambda: 1000.0)
    ad = ClassAd.from_text("""
        State = "Claimed"
        Activity = "Busy"
        LastHeardFrom = 1000
        MyCurrentTime = 1000
        RemoteUserCpu = 5.0
        CommittedTime = 10
        DAGManJobId = 1
        DAGNodeName = "B"
        Arch = "X86_64"
        OpSysAndVer = "Debian12"
        TransferringInput = true
    """.replace("        ", ""))
    table = PrintTable.parse(f"SELECT BARE\n{value} PRINTAS {function}\n")
    assert "".join(table.rows([ad])).strip() == shown
