"""A pool in which every daemon has dropped root, used as people use one: files, spool, workflows, checkpoints, mail.

Its machines share nothing but a wire.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shlex
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.harness.commands import COMMANDS, program_of
from tests.harness.images import packed, root_folder, rootfs_tar
from tests.harness.namespaces import NEED_NAMESPACES, Machine, a_wire
from tests.harness.proc_files import proc_file
from tests.harness.readable_python import python_for_all
from tests.harness.registry import Hostile, hostile_registry, made_image
from tests.harness.root_helper import POOL, status_of
from tests.harness.root_pool import CONFIG
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.integration.masters import MailServer
from tests.integration.test_checkpoint_destination import STEPS, STORE
from tests.pool_fixture import ToolFailed, fresh_folder, until
from tests.security.local_users import NEED_USERS, Person, a_person

pytestmark = [*NEED_NAMESPACES, *NEED_USERS, *NEED_RUNTIME]

CKPT_PORT = 5651
NEW_NETWORK = 0x40000000
RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapAmb")
SAY = """universe = vanilla
executable = /bin/sh
arguments = "-c 'echo $(JOB) `id -un` `uname -n`'"
output = out.$(JOB)
error = err.$(JOB)
should_transfer_files = YES
queue
"""
DIAMOND = "JOB A say.sub\nJOB B say.sub\nJOB C say.sub\nJOB D say.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"


class Hers(Machine):
    """A machine as one of its users has it: she runs the commands, in a folder of hers.

    Args:
        machine: with daemons of its own.
        person: the user.
    """

    is_ours = False

    def __init__(self, machine: Machine, person: Person) -> None:  # another view of a machine that is there
        self.__dict__.update(machine.__dict__)
        self.person = person
        self.work = person.home
        self.environment = {**machine.environment, "HOME": str(person.home), "USER": person.name,
                            "LOGNAME": person.name, "_CONDOR_USER_CERTIFICATE": str(person.home / ".condor/user.pem")}

    def command(self, *words: str) -> list[str]:
        """As she runs it, by a Python that she can read."""
        tool = [*python_for_all().words, "-c", program_of(words[0])] if words[0] in COMMANDS else []
        return super().command(*self.person.command(), *tool, *words)

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        """A file of hers."""
        path = self.work / name
        for folder in reversed(path.parents[: len(path.relative_to(self.work).parts) - 1]):
            if not folder.exists():
                folder.mkdir()
                os.chown(folder, self.person.uid, self.person.gid)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.person.uid, self.person.gid)
        return path


class HerJob(Job):
    """A job of the standard universe that a user submits who is not the one that runs the tests."""

    pool: Hers

    def __init__(self, pool: Hers, name: str, arguments: str, **commands: str) -> None:
        pool.write(f"{name}/there", "")
        super().__init__(pool, name, arguments, **commands)

    @property
    def checkpoints(self) -> Path:
        """Where its checkpoints lie at home."""
        return self.pool.dir / "spool" / "owners" / self.pool.person.name / "checkpoints" / self.id


@attrs.frozen
class Dropped:
    """The pool: a central manager with the checkpoint server, a machine to submit from, one to execute on."""

    manager: Machine
    submit: Machine
    execute: Machine
    alice: Hers
    mails: MailServer
    shelf: Path


def in_namespace(machine: Machine, make: Any) -> Any:
    """What ``make`` returns, called in the machine's network."""
    made: list[Any] = []

    def there() -> None:
        with open(f"/var/run/netns/{machine.namespace}") as network:
            assert ctypes.CDLL(None, use_errno=True).setns(network.fileno(), NEW_NETWORK) == 0
        made.append(make())

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    return made[0]


def issuer_key(machine: Machine) -> Path:
    """A key that signs tokens, of the daemons' account."""
    path = machine.dir / "issuer.pem"
    path.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    path.chmod(0o600)
    os.chown(path, POOL, -1)
    return path


@pytest.fixture(scope="module")
def pool() -> Iterator[Dropped]:
    with a_wire() as wire, a_person(f"ca{os.urandom(3).hex()}", wire.folder) as alice, fresh_folder() as shelf:
        os.chown(shelf, alice.uid, alice.gid)
        registered = wire.folder / "destinations"
        registered.write_text(f"* store://kept/ cleanup_locally_mounted_checkpoint,-prefix,store://,-path,{shelf}\n")
        manager = wire.manager(config=f"{CONFIG}DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR CKPT_SERVER\n"
                                      f"CKPT_SERVER_PORT = {CKPT_PORT}\n")
        submit = wire.machine("submit")
        mails: MailServer = in_namespace(submit, MailServer)
        (submit.dir / "config.d" / "zz.config").write_text(
            f"{CONFIG}CKPT_SERVER_HOST = {manager.address}:{CKPT_PORT}\nSMTP_SERVER = 127.0.0.1:{mails.port}\n"
            "MAIL_FROM = condor@example.org\nDAEMON_LIST = $(DAEMON_LIST) CREDD\n"
            f"CHECKPOINT_DESTINATION_MAPFILE = {registered}\n"
            f"LOCAL_CREDMON_PROVIDER_NAMES = scitokens\nLOCAL_CREDMON_PRIVATE_KEY = {issuer_key(submit)}\n"
            "LOCAL_CREDMON_TOKEN_LIFETIME = 4\n")
        submit.run("condor_pool", "join", manager.run("condor_pool", "token", "--roles", "master,schedd").strip())
        submit.start()
        execute = wire.member(manager, "execute", "master,startd", CONFIG)
        until(lambda: "execute.trio" in manager.run("condor_status", "-af", "Machine"), "the execute machine")
        until((submit.dir / "run" / "schedd.address").exists, "the schedd to listen")
        until((execute.dir / "run" / "starter-host.address").exists, "the starter host to listen")
        yield Dropped(manager, submit, execute, Hers(submit, alice), mails, shelf)
        mails.close()


def of_root(pool: Dropped) -> list[tuple[str, dict[str, str]]]:
    """The daemons, and those of them that have anything of root's."""
    found, seen = [], set()
    for machine in (pool.manager, pool.submit, pool.execute):
        for pid in machine.pids():
            words = proc_file(pid, "cmdline").decode().split("\0")
            if words == [""]:  # one that looked a name up for condor_root has ended
                continue
            at = words.index("condor_actors.services") + 1 if "condor_actors.services" in words else 0
            name, *more = words[at:] if at else ["master"]
            if name == "fork-server" and "master" in proc_file(more[0], "cmdline").decode().split("\0"):
                name = "master"
            if name == "master" or words[0].endswith("condor_root"):
                continue
            seen.add(name)
            status = status_of(pid)
            if status["Uid"].split() != [str(POOL)] * 4 or any(int(status[each], 16) for each in RIGHTS):
                found.append((name, status))
    assert seen >= {"collector", "negotiator", "ckpt_server", "credd", "schedd", "startd", "starter-host"}
    return found


def test_no_daemon_has_anything_of_root(pool: Dropped) -> None:
    until(lambda: not of_root(pool), lambda: f"{of_root(pool)} to drop root")  # a starter host begins as root


def test_a_job_with_files_and_a_mail(pool: Dropped) -> None:
    alice = pool.alice
    alice.write("input.txt", "input ")
    alice.write("tree/below/leaf", "leaf\n")
    alice.write("work.sh", "#!/bin/sh\nmkdir made\ncat input.txt tree/below/leaf > result\nuname -n > made/where\n"
                           "exit 4\n", 0o755)
    cluster = alice.submit("executable = work.sh\ntransfer_input_files = input.txt, tree\nlog = files.log\n"
                           "should_transfer_files = YES\noutput = files.out\nerror = files.err\n"
                           "transfer_output_files = result, made\n"
                           "notification = complete\nnotify_user = ann@example.org\nqueue")
    alice.wait("files.log")
    result = alice.work / "result"
    assert (result.read_text(), result.stat().st_uid) == ("input leaf\n", alice.person.uid)
    assert (alice.work / "made/where").read_text() == "execute.trio\n"
    mail = until(lambda: next((each for each in pool.mails.mails if f"Job {cluster}.0" in each), None), "the mail")
    assert "To: ann@example.org" in mail
    assert "exited with status 4" in mail


def test_a_job_with_tokens_that_are_renewed(pool: Dropped) -> None:
    """Her files are hers alone, and are replaced by the helper's hand while the job has its folder."""
    alice, root = pool.alice, pool.submit
    until((root.dir / "run" / "credd.sock").exists, "the credential daemon")
    alice.write("secret", "the-token-of-alice")
    alice.run("condor_store_cred", "add-oauth", "-s", "gdrive", "-P", "-i", "secret")
    alice.write("tokens.sh", """#!/bin/sh
cd "$_CONDOR_CREDS" || exit 3
stat -c '%a %U %n' . *.use
cat gdrive.use; echo
first=$(cat scitokens.use)
until [ "$(cat scitokens.use)" != "$first" ]; do sleep 0.2; done
stat -c '%a %U %n' *.use
""", 0o755)
    alice.submit("executable = tokens.sh\nlog = tokens.log\noutput = tokens.out\nerror = tokens.err\n"
                 "should_transfer_files = YES\nuse_oauth_services = gdrive, scitokens\nqueue")
    alice.wait("tokens.log")
    name = alice.person.name
    files = [f"600 {name} gdrive.use", f"600 {name} scitokens.use"]
    assert (alice.work / "tokens.err").read_text() == ""
    assert (alice.work / "tokens.out").read_text().splitlines() == [
        f"700 {name} .", *files, "the-token-of-alice", *files]
    listed = root.run("condor_store_cred", "query", "-u", "*")
    assert f"gdrive: access token of {name}@" in listed
    assert "the-token-of-alice" not in listed
    asked = root.tool("htcondor", "credential", "get", "oauth2", "--service", "gdrive")
    assert (asked.returncode, "root@" in asked.stderr) == (1, True)
    owner = listed.split("token of ")[1].split(",")[0]
    root.run("condor_store_cred", "delete-oauth", "-s", "gdrive", "-u", owner)
    alice.run("condor_store_cred", "query", "-s", "gdrive", expect=1)
    denied = alice.tool("condor_store_cred", "query", "-u", "*")
    assert (denied.returncode, "is no administrator here" in denied.stderr) == (1, True)


def test_a_job_in_an_image(pool: Dropped) -> None:
    """The launcher makes the image's root for her, by the helper; nothing of the machine's is in it."""
    alice = pool.alice
    images = rootfs_tar(root_folder(alice.work / "unpacked"), alice.work / "image.tar")
    os.chown(images, alice.person.uid, alice.person.gid)
    alice.submit("universe = container\ncontainer_image = image.tar\nexecutable = /bin/sh\n"
                 "transfer_executable = false\n"
                 "arguments = \"-c 'cat /etc/image; id -u; ls /usr /home; echo made >result'\"\n"
                 "log = image.log\noutput = image.out\nerror = image.err\nshould_transfer_files = YES\nqueue")
    alice.wait("image.log", 60)
    assert (alice.work / "image.out").read_text() == f"made in a test\n{alice.person.uid}\n"
    assert (alice.work / "result").read_text() == "made\n"


PLUGIN = r"""#!/bin/sh
while read -r line; do
    path=$(expr "$line" : '.*LocalFileName = "\([^"]*\)"')
    if test "$5" = -upload; then
        echo "[ TransferSuccess = false; TransferError = \"it has $(cat "$path") for $(id -u)\" ]" >> "$4"
    else
        mkdir -p "$(dirname "$path")/beside"
        echo "brought by $(id -u)" > "$path"
        echo '[ TransferSuccess = true ]' >> "$4"
        sleep 600 &
    fi
done < "$2"
"""


def test_transfer_plugins_work_as_her_account_in_a_folder_that_is_the_pools_again_afterwards(pool: Dropped) -> None:
    """An input of an ordinary job, of one in an image and of one that is spooled; an output that is not taken."""
    alice = pool.alice
    alice.write("plugins/mine", PLUGIN)
    images = rootfs_tar(root_folder(alice.work / "plugged"), alice.work / "plugins/image.tar")
    os.chown(images, alice.person.uid, alice.person.gid)
    folder, said = alice.work / "plugins", f"brought by {alice.person.uid}\n"
    words = ("executable = /bin/sh\ntransfer_executable = false\nlog = $(name).log\noutput = $(name).out\n"
             "should_transfer_files = YES\narguments = \"-c 'cat what; echo new > beside/result; echo x > taken'\"\n"
             "transfer_plugins = mine = mine\ntransfer_input_files = mine://what\n")
    alice.write("plugins/plain.sub", f"name = plain\n{words}transfer_output_files = beside\nqueue\n")
    alice.write("plugins/image.sub", f"name = image\nuniverse = container\ncontainer_image = image.tar\n{words}"
                                     "transfer_output_files = beside/result\nqueue\n")
    alice.write("plugins/out.sub", f'name = out\n{words}transfer_output_remaps = "taken = mine://there"\nqueue\n')
    clusters = {}
    for name, more in (("plain", ()), ("image", ()), ("out", ()), ("plain", ("-spool",))):
        told = alice.run("condor_submit", *more, f"{name}.sub", cwd=folder)
        clusters[f"{name}{''.join(more)}"] = told.rsplit("cluster ", 1)[1].strip().rstrip(".")
    alice.wait("plugins/plain.log", 120)
    assert (folder / "plain.out").read_text() == said
    assert (folder / "beside/result").read_text() == "new\n"
    alice.wait("plugins/image.log", 120)
    assert (folder / "image.out").read_text() == said
    assert (folder / "result").read_text() == "new\n"
    alice.until_status(f"{clusters['out']}.0", 5)
    (job,) = alice.jobs(clusters["out"])
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (12, 0)
    assert f"mine://there: it has x for {alice.person.uid} (mine)" in job["HoldReason"]
    (folder / "plain.out").unlink()
    alice.until_status(f"{clusters['plain-spool']}.0", 4)
    alice.run("condor_transfer_data", clusters["plain-spool"], cwd=folder)
    assert (folder / "plain.out").read_text() == said
    alice.run("condor_rm", clusters["out"], clusters["plain-spool"])
    until(lambda: not pool.execute.scratch(), "nothing of them is left on the machine")


def test_checkpoints_at_a_destination_are_her_accounts_and_go_with_the_job(pool: Dropped) -> None:
    """A starter host and a shadow host without root: what is sent, fetched and removed there is by her account."""
    alice = pool.alice
    alice.write("kept/store", STORE.replace("SHELF", str(pool.shelf)), 0o755)
    alice.write("kept/steps.sh", STEPS, 0o755)
    alice.write("kept/steps.sub", "executable = steps.sh\narguments = gate\ncheckpoint_exit_code = 85\n"
                "should_transfer_files = YES\ntransfer_plugins = store = store\ntransfer_checkpoint_files = state\n"
                "output = steps.out\nlog = steps.log\ntransfer_output_files = state/step\n"
                "checkpoint_destination = store://kept/steps\nqueue\n")
    told = alice.run("condor_submit", "steps.sub", cwd=alice.work / "kept")
    cluster = told.rsplit("cluster ", 1)[1].strip().rstrip(".")
    until(lambda: "2\n" in [path.read_text() for path in pool.shelf.glob("kept/steps/*/*/state/step")],
          "the second checkpoint")
    assert {path.stat().st_uid for path in pool.shelf.rglob("*")} == {alice.person.uid}
    alice.run("condor_rm", cluster)
    until(lambda: not [path for path in pool.shelf.rglob("*") if path.is_file()], "they are removed")


def test_an_image_of_a_registry_is_fetched_by_her_account_and_nothing_of_one_that_is_broken_off_is_left(
        pool: Dropped) -> None:
    alice, over = pool.alice, threading.Event()
    root = packed(root_folder(alice.work / "fetched"))

    def waits(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "10240")
        request.end_headers()
        over.wait(300)

    with contextlib.ExitStack() as opened:
        opened.callback(over.set)
        registry: Hostile = in_namespace(pool.execute, lambda: opened.enter_context(hostile_registry()))
        whole = registry.has("whole", made_image(root))
        broken = registry.has("broken", made_image(root, root + bytes(10240)))
        last = json.loads(broken.manifest)["layers"][1]["digest"]
        registry.answers[last] = waits
        words = ("universe = container\nexecutable = /bin/sh\ntransfer_executable = false\nlog = fetched.log\n"
                 "arguments = \"-c 'cat /etc/image; id -u'\"\noutput = fetched.out\nshould_transfer_files = YES\n"
                 f"container_image = docker://{registry.host}/tool")
        cluster = alice.submit(f"{words}:whole\nqueue")
        alice.wait("fetched.log", 60)
        assert (alice.work / "fetched.out").read_text() == f"made in a test\n{alice.person.uid}\n"
        assert alice.history(str(cluster))[0]["ContainerImageDigest"] == whole.digest
        cluster = alice.submit(f"{words}:broken\nqueue")
        until(lambda: registry.count(last) == 1, "the last layer asked for")
        (folder,) = (pool.execute.dir / "execute").glob("dir_*")
        assert {path.stat().st_uid for path in (folder / ".condor_image").iterdir()} == {alice.person.uid}
        (host,) = (pid for pid in pool.execute.pids()
                   if b"condor_actors.services\0starter-host\0--startd" in proc_file(pid, "cmdline")
                   and status_of(pid)["Uid"].split()[0] != "0")
        os.kill(host, signal.SIGKILL)
        until(lambda: registry.count(last) == 2, "the next run")
        until(lambda: not folder.exists(), "nothing of the first run")
        alice.run("condor_rm", str(cluster))
        until(lambda: not pool.execute.scratch(), "nothing of the second")


def test_spooled_files_come_back(pool: Dropped) -> None:
    alice = pool.alice
    alice.write("spooled/input", "spooled\n")
    alice.write("spooled/spool.sub", "executable = /bin/sh\narguments = \"-c 'tr a-z A-Z < input > output; id -un'\"\n"
                                     "transfer_input_files = input\nshould_transfer_files = YES\nlog = job.log\n"
                                     "output = who\ntransfer_executable = false\nqueue\n")
    folder = alice.work / "spooled"
    said = alice.run("condor_submit", "-spool", "spool.sub", cwd=folder)
    cluster = said.rsplit("cluster ", 1)[1].strip().rstrip(".")
    alice.until_status(f"{cluster}.0", 4)
    assert not (folder / "output").exists()
    alice.run("condor_transfer_data", cluster, cwd=folder)
    assert (folder / "output").read_text() == "SPOOLED\n"
    assert (folder / "output").stat().st_uid == alice.person.uid
    kept = pool.submit.dir / "spool" / cluster
    alice.run("condor_rm", cluster)
    until(lambda: not kept.exists(), "its spool folder goes with the job")


def test_a_workflow(pool: Dropped) -> None:
    alice = pool.alice
    program = alice.write("dagman", "#!/bin/sh\nexec " + shlex.join(python_for_all().words)
                          + ' -m condor_actors.tools.dag.dagman "$@"\n', 0o755)
    alice.write("dag/x.dag", DIAMOND)
    alice.write("dag/say.sub", SAY)
    folder = alice.work / "dag"
    alice.run("condor_submit_dag", "-dagman", str(program), "x.dag", cwd=folder)
    try:
        alice.run("condor_wait", "-wait", "120", "x.dag.dagman.log", cwd=folder)
    except ToolFailed as error:
        out = folder / "x.dag.dagman.out"
        raise AssertionError(f"{error}\n{out.read_text() if out.exists() else 'no dagman.out'}") from None
    assert "EXITING WITH STATUS 0" in (folder / "x.dag.dagman.out").read_text()
    said = [(folder / f"out.{node}").read_text().split() for node in "ABCD"]
    assert said == [[node, alice.person.name, "execute.trio"] for node in "ABCD"]
    assert {each.stat().st_uid for each in folder.iterdir()} == {alice.person.uid}


def test_a_checkpointed_job_goes_on_by_the_checkpoint_server(pool: Dropped) -> None:
    job = HerJob(pool.alice, "standard", "14 4 9")
    kept = pool.manager.dir / "spool" / "ckpt_server"
    job.until_lines(5)
    job.checkpoint()
    until(lambda: list(kept.glob("u-*/j-*/image")), "the image at the server")
    pool.alice.run("condor_hold", job.id)
    job.until_logged("012 (")
    until(lambda: not (job.checkpoints / "image").exists(), "no image at home")
    job.go_on(4)
    pool.alice.run("condor_release", job.id)
    job.until_lines(10)
    pool.alice.run("condor_vacate_job", job.id)
    job.until_logged("(1) Job was checkpointed.")
    job.go_on(9)
    job.wait()
    assert job.text("err") == ""
    job.check(14)
    until(lambda: not list(kept.glob("u-*/j-*/image")), "nothing left at the server")
    assert job.text("job.log").count("001 (") == 3
