"""A user does what he may and what he may not: both are written down, and he writes nothing of his own into the log."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^ "]+)')
JOB = ("executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nenvironment = \"TOKEN=hush\"\n"
       "requirements = false\nqueue\n")
FORGED = "x\n2026-01-01T00:00:00.000Z daemon=schedd act=drain who=root@forged result=ok\" who=root@forged\r\x1b[2J"


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    """One for all tests of this module."""
    with a_shared_pool("ALLOW_CONFIG = root@*\nENABLE_RUNTIME_CONFIG = True\n") as shared:
        yield shared


def audited(pool: SharedPool, daemon: str) -> list[dict[str, str]]:
    """The lines of a daemon's audit log."""
    path = pool.dir / "log" / f"{daemon}AuditLog"
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        fields = {name: json.loads(value) if value.startswith('"') else value for name, value in FIELD.findall(line)}
        assert FIELD.sub("", line.partition(" ")[2]).strip() == "", line
        lines.append(fields)
    return lines


def line_of(pool: SharedPool, daemon: str, **wanted: str) -> dict[str, str]:
    """The first line with these fields, as soon as it is there; a value may be a part of the field's."""
    def look() -> dict[str, str] | None:
        return next((line for line in audited(pool, daemon)
                     if all(value in line.get(name, "") for name, value in wanted.items())), None)

    found: dict[str, str] = until(look, lambda: f"{wanted} in {audited(pool, daemon)[-5:]}", 20.0)
    return found


def test_acts_on_jobs(pool: SharedPool) -> None:
    """Her own, and his on hers."""
    cluster = pool.submit_as(pool.alice, JOB)
    pool.run_as(pool.alice, "condor_hold", str(cluster), "-reason", FORGED)
    pool.run_as(pool.alice, "condor_qedit", str(cluster), "Something", "1")
    pool.tool_as(pool.mallory, "condor_rm", str(cluster))
    pool.tool_as(pool.mallory, "condor_ssh_to_job", str(cluster))
    line_of(pool, "Schedd", act="submit", who=pool.alice.name, object=f"cluster_id={cluster}")
    held = line_of(pool, "Schedd", act="hold-jobs", who=pool.alice.name)
    assert held["uid"] == str(pool.alice.uid)
    assert held["result"] == "ok"
    assert held["right"] == "WRITE"
    assert held["via"] == "local"
    assert "root@forged" in held["object"]
    line_of(pool, "Schedd", act="edit-jobs", who=pool.alice.name, result="ok")
    line_of(pool, "Schedd", act="remove-jobs", who=pool.mallory.name, result="denied")
    lines = audited(pool, "Schedd")
    assert not [line for line in lines if "root@forged" in line.get("who", "")]
    pool.run_as(pool.alice, "condor_rm", str(cluster))


def test_administrative_acts(pool: SharedPool) -> None:
    """A user's are refused and told, root's done and told."""
    host = pool.run("condor_status", "-af", "Machine").split()[0]
    mallory = pool.mallory.name
    for command in (("condor_drain", host), ("condor_reconfig", "-startd"), ("condor_off", "-startd"),
                    ("condor_userprio", "-setfactor", f"{mallory}@x", "1"),
                    ("condor_config_val", "-startd", "-rset", "START = False")):
        assert pool.tool_as(pool.mallory, *command).returncode != 0, command
    line_of(pool, "Startd", act="drain", who=mallory, result="denied", right="ADMINISTRATOR")
    line_of(pool, "Master", act="command-daemons", who=mallory, result="denied")
    line_of(pool, "Negotiator", act="set-priority", who=mallory, result="denied")
    line_of(pool, "Startd", act="set-config", who=mallory, result="denied")
    pool.run("condor_reconfig", "-startd")
    line_of(pool, "Master", act="reconfig-daemons", who="root", result="ok")


def test_floods_of_refusals_are_bounded_and_counted(pool: SharedPool) -> None:
    """He asks for what he may not, two thousand times."""
    pool.attack(pool.mallory, """
        from condor_actors.messages.admin import *
        with unix_client(startd) as client:
            for _ in range(2000):
                client.tell("admin", Reconfigure())
            result = said(client, "admin", Reconfigure())
    """, startd=pool.socket("startd"))
    pool.tool_as(pool.alice, "condor_drain", pool.run("condor_status", "-af", "Machine").split()[0])
    line_of(pool, "Startd", act="drain", who=pool.alice.name, result="denied")
    lines = [line for line in audited(pool, "Startd") if pool.mallory.name in line["who"]]
    assert len(lines) < 200


def test_the_log_is_for_administrators_and_has_no_secrets(pool: SharedPool) -> None:
    """Nobody else reads it, and what is secret to a claim or a job is not in it."""
    cluster = pool.submit_as(pool.alice, JOB.replace("requirements = false\n", ""))
    run = pool.stolen(f"{cluster}.0")
    line_of(pool, "StarterHost", act="activate-claim", who=f"shadow:{pool.alice.name}", result="ok")
    line_of(pool, "Startd", act="request-claim", object=f"owner={pool.alice.name}@", result="ok")
    logs = sorted(pool.dir.glob("log/*AuditLog"))
    assert {"ScheddAuditLog", "StartdAuditLog", "StarterHostAuditLog"} <= {path.name for path in logs}
    for path in logs:
        assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0, path
        text = path.read_text()
        assert run.secret not in text
        assert "hush" not in text
        done = subprocess.run(pool.mallory.command("cat", str(path)), capture_output=True, text=True, check=False)
        assert done.stdout == ""


def test_he_forges_events_in_a_log(pool: SharedPool) -> None:
    """Reasons with line ends make no event of their own in the user log."""
    log = pool.alice.home / "forged.log"
    cluster = pool.submit_as(pool.alice, JOB.replace("queue\n", "log = forged.log\nqueue\n"))
    pool.run_as(pool.alice, "condor_hold", str(cluster), "-reason",
                f"x\n...\n005 ({cluster:03}.000.000) 2026-01-01 00:00:00 Job terminated.\n...\n")
    until(lambda: "012 (" in log.read_text(), "the hold is in the log")
    events = [line for line in Path(log).read_text().splitlines() if re.match(r"\d{3} \(", line)]
    assert [line[:3] for line in events] == ["000", "012"]
