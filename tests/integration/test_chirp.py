"""Chirp: what a running job reads, writes and says at home, by condor_chirp, by HTCondor's own client and by hand."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from condor_actors.compat.htcondor2 import htchirp
from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = "STARTER_UPDATE_INTERVAL = 2\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nPOLLING_INTERVAL = 1\n"
EVERY_COMMAND = r"""#!/bin/sh
# What each command prints goes to standard output; the first that fails ends the job.
set -e
chirp() { condor_chirp "$@" || { echo "FAILED: $*"; exit 9; }; }
printf 'made here\n' > local
chirp fetch at-home got; cat got
chirp fetch at-home -
chirp put local put
chirp put -mode cwa local appended
chirp put -mode cwa local appended
printf 'piped\n' | condor_chirp put -perm 600 - piped
chirp write -offset 5 put local
chirp read -offset 5 put 4
chirp read -stride 1 3 put 3
chirp getdir .
chirp getdir -l . | grep -c device:
chirp stat put | grep '^size'
chirp lstat put | grep '^size'
chirp statfs . | grep -c f_bsize
chirp access put rw
chirp chmod put 640
condor_chirp chown put $(id -u) $(id -g) 2> /dev/null || true
chirp utime put 1000000000 1000000001
chirp link put hard
chirp link -s put soft
chirp readlink soft
chirp truncate appended 4
chirp remove hard
chirp rmdir empty
chirp rmdir -r full
chirp ulog "Hello from the job"
chirp set_job_attr MyProgress '"half way"'
chirp get_job_attr MyProgress
chirp get_job_attr NoSuchAttribute
chirp set_job_attr_delayed ChirpStep '6 * 7'
chirp get_job_attr_delayed ChirpStep
chirp whoami
chirp whoareyou someone
echo done
"""
NOT_ALLOWED = r"""#!/bin/sh
# Each of these must fail.
n=0
no() { if condor_chirp "$@" >> out.txt 2>> err.txt; then echo "ALLOWED: $*"; n=1; fi; }
no fetch /etc/shadow x
no fetch ../outside x
no fetch leads-out x
no fetch leads-out/passwd x
no fetch /proc/self/environ x
no put /bin/true ../planted
no put /bin/true leads-out/planted
no put /bin/true /tmp/planted-by-chirp
no link -s ../outside sly
no link -s /etc sly
no link /etc/passwd hard
no getdir ..
no getdir /root
no stat /etc/passwd
no access /etc/passwd r
no chmod /etc/passwd 666
no remove ../outside
no rmdir -r .
no rmdir -r ..
for name in Owner User Cmd Iwd Out JobStatus JobUniverse Requirements RequestCpus WantIOProxy LimitDirectoryAccess \
            TransferOutputRemaps UserLog PeriodicRemove AccountingGroup OtherIsFixed; do
    no set_job_attr $name 1
done
no set_job_attr "Two words" 1
no set_job_attr Fine '1 +'
no set_job_attr_delayed NotChirp 1
no phase begin
echo "wrong: $n"
"""
ORACLE = r"""
import sys
sys.path.insert(0, ".")
from htchirp import HTChirp, condor_chirp
with HTChirp() as chirp:
    open("sent", "wb").write(bytes(range(256)) * 2000)
    print("put", chirp.put("sent", "oracle.bin"), chirp.fetch("oracle.bin", "back"))
    assert open("back", "rb").read() == open("sent", "rb").read()
    chirp.write(b"0123456789", "oracle.txt", "wct")
    chirp.write(b"ab", "oracle.txt", "w", offset=4)
    chirp.write(b"end", "oracle.txt", "wa")
    print("read", chirp.read("oracle.txt", 100), chirp.read("oracle.txt", 3, offset=4))
    print("stride", chirp.read("oracle.txt", 4, offset=0, stride_length=1, stride_skip=2))
    chirp.mkdir("oracle dir")
    chirp.rename("oracle.txt", "oracle dir/a name")
    print("dir", chirp.getdir("oracle dir"), sorted(chirp.getdir("oracle dir", stat_dict=True)))
    chirp.link("oracle dir/a name", "oracle.link", symbolic=True)
    print("link", chirp.readlink("oracle.link"), chirp.stat("oracle.link")["size"])
    chirp.truncate("oracle.link", 2)
    print("lstat", chirp.lstat("oracle dir/a name")["size"], chirp.statfs(".")["f_bsize"] > 0)
    chirp.access("oracle.link", "rw")
    chirp.chmod("oracle.link", 0o600)
    chirp.utime("oracle.link", 5, 6)
    chirp.set_job_attr("OracleSays", '"a \\"quoted\\" word"')
    print("attr", chirp.get_job_attr("OracleSays"))
    chirp.set_job_attr_delayed("ChirpOracle", "1.5")
    print("delayed", chirp.get_job_attr_delayed("ChirpOracle"))
    chirp.ulog("the oracle was here")
    print("who", chirp.whoami(), chirp.whoareyou("x"))
    chirp.rmdir("oracle dir", recursive=True)
    for error, act in ((HTChirp.DoesntExist, lambda: chirp.fetch("nowhere", "x")),
                       (HTChirp.NotAuthorized, lambda: chirp.fetch("/etc/shadow", "x")),
                       (HTChirp.IsDir, lambda: chirp.fetch(".", "x")),
                       (HTChirp.NotAuthorized, lambda: chirp.set_job_attr("Owner", '"root"'))):
        try:
            act()
        except error:
            continue
        print("no", error)
print("done")
"""
ORACLE_SAID = [
    "put 512000 512000", "read b'0123ab6789end' b'ab6'", "stride b'02a6'", "dir ['a name'] ['a name']",
    "link b'oracle dir/a name' 13", "lstat 2 True", 'attr "a \\"quoted\\" word"', "delayed 1.500000000000000E+00",
    "who CONDOR CONDOR", "done"]
GOES_ON = r"""
import os, sys, time
sys.path.insert(0, ".")
from chirp import Chirp
chirp = Chirp()
number = chirp.open("counted", "wcta", 0o644)
chirp.ask("set_job_attr_delayed", "ChirpBegan", "NumJobStarts")
count = 0
while not os.path.exists(os.environ["STOP"]):
    line = b"%d\n" % count
    chirp.say("pwrite", number, len(line), 0)
    chirp.send(line)
    try:
        count += chirp.answer() == len(line)
    except Exception as error:
        print("not known:", error, flush=True)
    time.sleep(0.05)
chirp.ask("set_job_attr", "Counted", count)
chirp.ask("set_job_attr_delayed", "ChirpCounted", count)
print("counted", count)
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2, config=f"{CONFIG}IMMUTABLE_JOB_ATTRS = OtherIsFixed\n")
        yield made
        made.stop()


def folder_of(pool: PersonalPool, name: str, **files: str) -> Path:
    """A folder for one test's job, with its program."""
    folder = pool.work / name
    folder.mkdir()
    folder.chmod(0o777)
    for each, text in files.items():
        path = folder / each
        path.write_text(text)
        path.chmod(0o755)
    return folder


def submit(pool: PersonalPool, folder: Path, more: str = "", program: str = "job") -> int:
    return pool.submit(f"executable = {program}\ninitialdir = {folder}\noutput = out\nerror = err\nlog = log\n"
                       f"should_transfer_files = yes\nrequest_memory = 1\n{more}queue\n")


def ended(pool: PersonalPool, folder: Path, cluster: int) -> str:
    """What the job has printed, when it has ended well."""
    pool.wait(str(folder / "log"))
    said = (folder / "out").read_text()
    ad = pool.history(str(cluster))[0]
    assert ad.get("ExitCode") == 0, f"{said}\n{(folder / 'err').read_text()}"
    return said


def test_every_command(pool: PersonalPool) -> None:
    folder = folder_of(pool, "every", job=EVERY_COMMAND)
    (folder / "at-home").write_text("was at home\n")
    (folder / "empty").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("x")
    cluster = submit(pool, folder, "want_io_proxy = true\n+MyProgress = \"not begun\"\n")
    lines = ended(pool, folder, cluster).splitlines()
    assert lines[:2] == ["was at home", "was at home"]
    assert lines[2:4] == ["made", "mea"], lines  # of "made made here": from 5; every third letter
    assert {"at-home", "put", "appended", "piped", "full", "empty"} <= set(lines)
    assert "size: 15" in lines
    assert lines[-7:] == ["put", '"half way"', "UNDEFINED", "6 * 7", "CONDOR", "CONDOR", "done"]
    assert (folder / "put").read_text() == "made made here\n"
    assert (folder / "appended").read_text() == "made"
    assert (folder / "piped").read_text() == "piped\n"
    assert stat.S_IMODE((folder / "put").stat().st_mode) == 0o640
    assert stat.S_IMODE((folder / "piped").stat().st_mode) == 0o600
    assert (folder / "put").stat().st_mtime == 1000000001
    assert not (folder / "full").exists()
    assert not (folder / "empty").exists()
    assert not (folder / "hard").exists()
    assert not (folder / ".chirp.config").exists()
    assert "\n008 (" in (folder / "log").read_text()
    assert "Hello from the job" in (folder / "log").read_text()
    ad = pool.history(str(cluster))[0]
    assert ad["MyProgress"] == "half way"
    assert pool.run("condor_history", str(cluster), "-af", "ChirpStep").strip() == "42"


def test_what_is_not_allowed(pool: PersonalPool) -> None:
    folder = folder_of(pool, "hostile", job=NOT_ALLOWED)
    (pool.work / "outside").write_text("not the job's\n")
    (folder / "leads-out").symlink_to("/etc")
    cluster = submit(pool, folder, "want_io_proxy = true\n")
    said = ended(pool, folder, cluster)
    assert said == "wrong: 0\n"
    assert (pool.work / "outside").read_text() == "not the job's\n"
    assert not (pool.work / "planted").exists()
    assert not Path("/tmp/planted-by-chirp").exists()  # noqa: S108
    ad = pool.history(str(cluster))[0]
    assert ad["Iwd"] == str(folder)
    assert "Fine" not in ad


def test_without_want_io_proxy_there_are_delayed_attributes_only(pool: PersonalPool) -> None:
    folder = folder_of(pool, "delayed", job="""#!/bin/sh
for words in 'fetch at-home x' 'set_job_attr Mine 1' 'get_job_attr Owner' 'ulog x' 'whoami'; do
    condor_chirp $words 2>> why && echo "ALLOWED: $words"
done
condor_chirp set_job_attr_delayed ChirpMine 7 && condor_chirp get_job_attr_delayed chirpmine
condor_chirp get_job_attr_delayed ClusterId
""")
    (folder / "at-home").write_text("x")
    cluster = submit(pool, folder)
    assert ended(pool, folder, cluster) == f"7\n{cluster}\n"
    assert pool.history(str(cluster))[0]["ChirpMine"] == 7


def test_our_client_with_its_names(pool: PersonalPool) -> None:
    ours = Path(htchirp.__file__).parent
    program = ORACLE.replace("from htchirp import HTChirp, condor_chirp",
                             "from htchirp import HTChirp\nfrom command import condor_chirp")
    program += 'print(condor_chirp("stat oracle.bin")["size"], condor_chirp(["access", "nowhere", "f"], True))\n'
    command = (ours / "command.py").read_text().replace("from condor_actors.compat.htcondor2.htchirp.", "from ")
    folder = folder_of(pool, "ours", job="#!/bin/sh\nexec python3 oracle.py\n", **{
        "oracle.py": program, "htchirp.py": (ours / "htchirp.py").read_text(), "command.py": command})
    cluster = submit(pool, folder, "want_io_proxy = true\ntransfer_input_files = oracle.py, htchirp.py, command.py\n"
                                   "transfer_output_files = \"\"\n")
    assert ended(pool, folder, cluster).splitlines() == [*ORACLE_SAID, "512000 1"]
    assert (folder / "oracle.bin").read_bytes() == bytes(range(256)) * 2000


def test_htcondors_own_client(pool: PersonalPool) -> None:
    found = find_spec("htcondor2")
    theirs = Path(found.submodule_search_locations[0]) / "htchirp" / "htchirp.py" if (
        found is not None and found.submodule_search_locations) else Path("/nonexistent")
    if not theirs.exists():
        pytest.skip("HTCondor's Python bindings are not installed")
    folder = folder_of(pool, "oracle", job="#!/bin/sh\nexec python3 oracle.py\n", **{"oracle.py": ORACLE})
    shutil.copy(theirs, folder / "htchirp.py")
    cluster = submit(pool, folder, "want_io_proxy = true\ntransfer_input_files = oracle.py, htchirp.py\n"
                                   "transfer_output_files = \"\"\n")
    assert ended(pool, folder, cluster).splitlines() == ORACLE_SAID
    assert (folder / "oracle.bin").read_bytes() == bytes(range(256)) * 2000
    ad = pool.history(str(cluster))[0]
    assert (ad["OracleSays"], ad["ChirpOracle"]) == ('a "quoted" word', 1.5)


def lines_of(connection: socket.socket, count: int) -> list[bytes]:
    stream = connection.makefile("rb")
    return [stream.readline() for _ in range(count)]


def is_hung_up(connection: socket.socket) -> bool:
    connection.settimeout(60)
    with suppress(ConnectionError):
        while connection.recv(100):
            pass
    return True


def test_a_stranger_on_the_machine(pool: PersonalPool) -> None:
    """Who has no cookie gets nothing, is hung up, and keeps nobody else out; who has one run's does nothing of
    another's."""
    folder = folder_of(pool, "stranger", job="#!/bin/sh\nwhile [ ! -e $STOP ]; do sleep 0.1; done\n"
                                             "condor_chirp set_job_attr Still 1\n")
    cluster = submit(pool, folder, f"want_io_proxy = true\nenvironment = STOP={folder}/stop\n")
    pool.until_status(f"{cluster}.0", 2)
    configs = until(lambda: list((pool.dir / "execute").glob("dir_*/.chirp.config")), "the address of the run")
    assert stat.S_IMODE(configs[0].stat().st_mode) == 0o400
    host, port, cookie = configs[0].read_text().split()
    assert host == "127.0.0.1"
    strangers = []
    for _ in range(100):
        connection = socket.create_connection((host, int(port)), 30)
        connection.sendall(b"getfile out\n")
        strangers.append(connection)
    last = strangers[-1]
    last.sendall(b"cookie " + b"0" * 64 + b"\ncookie\nstat /\n")
    assert lines_of(last, 4) == [b"-1\n", b"-1\n", b"-1\n", b""]
    assert is_hung_up(strangers[0])
    with socket.create_connection((host, int(port)), 30) as own:
        own.sendall(f"cookie {cookie}\nversion\nnonsense\nopen {'x' * 6000} r 0\n".encode())
        assert lines_of(own, 5) == [b"0\n", b"2\n", b"-8\n", b"-5\n", b""]
    for connection in strangers:
        connection.close()
    (folder / "stop").touch()
    ended(pool, folder, cluster)
    assert pool.history(str(cluster))[0]["Still"] == 1


def test_it_goes_on_when_hosts_are_killed(pool: PersonalPool) -> None:
    """A descriptor outlives the shadow host, with its position; a starter host's death starts the job anew."""
    import condor_actors.tools.jobs.chirp as tool

    folder = folder_of(pool, "killed", job="#!/bin/sh\nexec python3 goes_on.py\n", **{"goes_on.py": GOES_ON})
    shutil.copy(str(tool.__file__), folder / "chirp.py")
    cluster = submit(pool, folder, f"want_io_proxy = true\ntransfer_input_files = goes_on.py, chirp.py\n"
                                   f"environment = STOP={folder}/stop\n")
    counted = folder / "counted"

    def count() -> int:
        return len(counted.read_text().splitlines()) if counted.exists() else 0

    until(lambda: count() > 5, "the first lines")
    pool.kill("shadow-host")
    before = count()
    until(lambda: count() > before + 5, "lines after the shadow host's death")
    pool.kill("starter-host")
    until(lambda: 0 < count() < before, "the next run, which begins again")
    until(lambda: count() > 5, "its lines")
    old = pool.kill("schedd")
    pool.until_restarted("schedd", old)
    (folder / "stop").touch()
    said = ended(pool, folder, cluster)
    ad = pool.history(str(cluster))[0]
    number = int(said.split("counted ")[1])
    assert ad["Counted"] == ad["ChirpCounted"] == number
    lines = counted.read_text().splitlines()
    assert [int(line) for line in lines] == sorted(int(line) for line in lines)
    assert set(range(number)) <= {int(line) for line in lines}
