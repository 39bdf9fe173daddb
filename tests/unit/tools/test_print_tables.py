"""Custom print formats."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.print_formats import FormatError
from condor_actors.tools.print_tables import PrintTable


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
                                  "SELECT\nA == AS x", "SELECT FROM AUTOCLUSTER"])  # fmt: skip
def test_what_makes_no_table_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(FormatError, match="line"):
        PrintTable.parse(text)
