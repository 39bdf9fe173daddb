"""Checkpoints that go to a URL: sent with a list of what they are, fetched and held against it, removed in the end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.object_store import object_store
from tests.pool_fixture import PersonalPool, ToolFailed, fresh_folder, until

STORE = r"""#!/bin/sh
# Files below a folder, by store://PATH; one that says "down" is out of order.
if test "$1" = -classad; then
    printf 'PluginType = "FileTransfer"\nSupportedMethods = "store"\nMultipleFileSupport = true\n'
    exit 0
fi
status=0
while read -r line; do
    url=$(expr "$line" : '.* Url = "\([^"]*\)"')
    path=$(expr "$line" : '.*LocalFileName = "\([^"]*\)"')
    there=SHELF/${url#store://}
    if test -e SHELF/down; then
        echo "[ TransferUrl = \"$url\"; TransferSuccess = false; TransferError = \"the store is down\" ]" >> "$4"
        exit 3
    fi
    if test "$5" = -upload; then
        mkdir -p "${there%/*}" && cp "$path" "$there"
    else
        mkdir -p "${path%/*}" && cp "$there" "$path"
    fi
    echo "[ TransferUrl = \"$url\"; TransferSuccess = true ]" >> "$4"
done < "$2"
"""
STEPS = """#!/bin/sh
# Counts to 5; after every step it saves and ends with 85, to be started again; at the third it waits at a gate.
step=$(cat state/step 2>/dev/null || echo 0)
step=$((step + 1))
echo "step $step"
mkdir -p state/empty
echo $step > state/step
[ -e state/tool ] || { echo 'echo tool' > state/tool; chmod 755 state/tool; ln -s tool state/link; }
[ -x state/tool ] && [ -d state/empty ] && [ "$(readlink state/link)" = tool ] || exit 3
[ $step = 3 ] && [ ! -e $1 ] && { touch $1.here; sleep 1000; }
[ $step -ge 5 ] && exit 0
exit 85
"""


SHA_OF_2 = hashlib.sha256(b"2\n").hexdigest()


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        shelf = folder / "shelf"
        shelf.mkdir()
        shelf.chmod(0o777)
        plugin = folder / "store_plugin"
        plugin.write_text(STORE.replace("SHELF", str(shelf)))
        plugin.chmod(0o755)
        mapfile = folder / "map"
        mapfile.write_text(f"* store://kept/ cleanup_locally_mounted_checkpoint,-prefix,store://,-path,{shelf}\n"
                           "* store:// no_such_program\n")
        made = PersonalPool(folder, slots=1, config=f"FILETRANSFER_PLUGINS = {plugin}\n"
                                                    f"CHECKPOINT_DESTINATION_MAPFILE = {mapfile}\n"
                                                    "use POLICY : OnlyRegisteredCheckpointDestinations\n")
        until(lambda: "store" in made.run("condor_status", "-af", "HasFileTransferPluginMethods"), "the plugin")
        yield made
        made.stop()


def shelf(pool: PersonalPool) -> Path:
    return pool.dir.parent / "shelf"


def submit(pool: PersonalPool, name: str, text: str = STEPS, more: str = "") -> int:
    program = pool.work / f"{name}.sh"
    program.write_text(text)
    program.chmod(0o755)
    return pool.submit(f"executable = {name}.sh\narguments = {pool.work / name}.gate\ncheckpoint_exit_code = 85\n"
                       f"transfer_checkpoint_files = state\ntransfer_output_files = state/step\n"
                       f"output = {name}.out\nlog = {name}.log\n"
                       f"checkpoint_destination = store://kept/{name}\n{more}queue\n")


def folders(pool: PersonalPool, name: str) -> list[Path]:
    """The checkpoints of a job at the destination, the oldest first."""
    return sorted((shelf(pool) / "kept" / name).glob("*/*"))


def lists(pool: PersonalPool) -> list[Path]:
    return sorted(pool.dir.glob("**/owners/*/lists/*/*"))


def at_the_gate(pool: PersonalPool, name: str) -> None:
    until(lambda: (pool.work / f"{name}.gate.here").exists() or None, "the third step")


def open_the_gate(pool: PersonalPool, name: str, cluster: int) -> None:
    (pool.work / f"{name}.gate").touch()
    pool.run("condor_vacate_job", "-fast", f"{cluster}.0")


def test_checkpoints_go_there_and_the_next_run_goes_on_from_the_last(pool: PersonalPool) -> None:
    """With modes, folders and links; two of them are kept, with lists; none when the job is over."""
    cluster = submit(pool, "goes")
    at_the_gate(pool, "goes")
    one, two = folders(pool, "goes")
    assert [each.name for each in (one, two)] == ["0001.1", "0002.1"]
    assert (two / "state/step").read_text() == "2\n"
    listed = (two / "_condor_checkpoint_MANIFEST.0002").read_text()
    assert f"{SHA_OF_2} *state/step\n" in listed
    assert [each.name for each in lists(pool)] == [f"_condor_checkpoint_MANIFEST.000{number}" for number in (1, 2)]
    assert lists(pool)[1].read_text() == listed
    assert not list(pool.dir.glob("**/owners/*/evicted/*"))
    open_the_gate(pool, "goes", cluster)
    pool.wait("goes.log")
    assert (pool.work / "goes.out").read_text() == "".join(f"step {number}\n" for number in range(1, 6))
    assert (pool.work / "step").read_text() == "5\n"
    ended = pool.history(str(cluster))[0]
    assert (ended["NumCkpts"], ended["CheckpointNumber"]) == (4, 4)
    until(lambda: not folders(pool, "goes") or None, "the destination to be empty")
    until(lambda: not lists(pool) or None, "the lists to go")
    assert (shelf(pool) / "kept").is_dir()


def test_a_damaged_checkpoint_is_not_used(pool: PersonalPool) -> None:
    """The one before it is; and when there is none the job is held, and begins anew by its user's word."""
    cluster = submit(pool, "damaged")
    at_the_gate(pool, "damaged")
    _, two = folders(pool, "damaged")
    (two / "state/step").write_text("4\n")
    open_the_gate(pool, "damaged", cluster)
    pool.wait("damaged.log")
    said = (pool.work / "damaged.out").read_text()
    assert said == "".join(f"step {number}\n" for number in range(1, 6))  # with the output of the second step lost
    log = (pool.work / "damaged.log").read_text()
    assert "state/step is not what was sent there; the job goes on from the one before it" in log
    until(lambda: not folders(pool, "damaged") or None, "the destination to be empty")

    cluster = submit(pool, "both")
    at_the_gate(pool, "both")
    for folder in folders(pool, "both"):
        (folder / "state/step").write_text("4\n")
    open_the_gate(pool, "both", cluster)
    pool.until_status(f"{cluster}.0", 5)
    assert "there is none before it; condor_release has the job begin anew" in pool.jobs(str(cluster))[0]["HoldReason"]
    pool.run("condor_release", str(cluster))
    pool.wait("both.log")
    assert (pool.work / "both.out").read_text() == "".join(f"step {number}\n" for number in range(1, 6))


def test_a_destination_that_fails_holds_the_job(pool: PersonalPool) -> None:
    """When the checkpoint is to go there, and when it is to come back; released, it goes on from there."""
    cluster = submit(pool, "down")
    at_the_gate(pool, "down")
    (shelf(pool) / "down").touch()
    open_the_gate(pool, "down", cluster)
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 13
    assert "the store is down" in job["HoldReason"]
    (shelf(pool) / "down").unlink()
    pool.run("condor_release", str(cluster))
    pool.wait("down.log")
    assert (pool.work / "down.out").read_text() == "".join(f"step {number}\n" for number in range(1, 6))

    (shelf(pool) / "down").touch()
    cluster = submit(pool, "first")
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 12
    assert "Transfer checkpoint files failure: a file of the checkpoint cannot be sent to store://kept/first" in (
        job["HoldReason"])
    assert "the store is down" in job["HoldReason"]
    (shelf(pool) / "down").unlink()
    pool.run("condor_rm", str(cluster))


def test_a_killed_shadow_host_and_a_removed_job_leave_nothing(pool: PersonalPool) -> None:
    cluster = submit(pool, "killed")
    at_the_gate(pool, "killed")
    pool.kill("shadow-host")
    pool.until_status(f"{cluster}.0", 2)
    assert len(folders(pool, "killed")) == 2
    pool.run("condor_rm", str(cluster))
    until(lambda: not folders(pool, "killed") or None, "the destination to be empty")
    until(lambda: not lists(pool) or None, "the lists to go")


@pytest.mark.parametrize("where", ["https://nowhere.example/folder", "stored://kept/x", "s3://nowhere.example/b"])
def test_a_destination_that_nothing_is_registered_for_is_refused(pool: PersonalPool, where: str) -> None:
    """``use POLICY : OnlyRegisteredCheckpointDestinations``."""
    with pytest.raises(ToolFailed, match="no line of CHECKPOINT_DESTINATION_MAPFILE is for"):
        pool.submit("executable = /bin/true\ntransfer_executable = false\ncheckpoint_exit_code = 85\n"
                    f"transfer_checkpoint_files = state\ncheckpoint_destination = {where}\nlog = refused.log\nqueue\n")
    assert not (pool.work / "refused.log").exists() or "000 (" not in (pool.work / "refused.log").read_text()


def test_checkpoints_in_an_object_store(tmp_path: Path) -> None:
    """The machine sends and fetches by signed URLs, and all are gone when the job is over; removal needs no program."""
    with object_store(tmp_path) as store, fresh_folder() as folder:
        store.ask("PUT", "bucket")
        pool = PersonalPool(folder, slots=1, config=f"AUTH_SSL_CLIENT_CAFILE = {store.authorities}\n")
        try:
            for name in ("id", "secret"):
                (pool.work / name).write_text(f"{name}\n")
            program = pool.work / "steps.sh"
            program.write_text(STEPS)
            program.chmod(0o755)
            cluster = pool.submit(
                f"executable = steps.sh\narguments = {pool.work / 'steps'}.gate\ncheckpoint_exit_code = 85\n"
                "transfer_checkpoint_files = state\noutput = steps.out\nerror = steps.err\nlog = steps.log\n"
                "s3_access_key_id_file = id\ns3_secret_access_key_file = secret\n"
                f"checkpoint_destination = s3://{store.where}/bucket/jobs\nqueue\n")
            at_the_gate(pool, "steps")
            open_the_gate(pool, "steps", cluster)
            pool.wait("steps.log")
            assert (pool.work / "steps.out").read_text() == "".join(f"step {number}\n" for number in range(1, 6))
            until(lambda: not lists(pool) or None, "the lists to go")
            assert sum('"PUT ' in line and "/state/step" in line for line in store.requests) == 4
            assert any("DELETE " in line for line in store.requests)
            assert b"<Key>" not in (store.ask("GET", "bucket") or b"<Key>")
        finally:
            pool.stop()
