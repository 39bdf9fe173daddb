"""A local user at the programs beside jobs, and at what others have stored: real accounts, daemons without root.

The wrapper of all jobs, a hook of the site and a transfer plugin of the job's own write down as whom they run and what
they inherit; then he asks for her credentials and for what the histories know of her.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

LOOK = r"""{ echo "uid=$(id -u) gid=$(id -g) groups=$(id -G)"; cat /proc/self/status; ls -l /proc/$$/fd
tr '\0' '\n' < /proc/$$/environ; }"""
WRAPPER = f'#!/bin/sh\n{LOOK} > "${{_CONDOR_WRAPPER_ERROR_FILE%/*}}/wrapped" 2>&1\nexec "$@"\n'
PLUGIN = f"""#!/bin/sh
if [ "$1" = -classad ]; then
    printf 'PluginType = "FileTransfer"\\nSupportedMethods = "own"\\nMultipleFileSupport = true\\n'
    exit 0
fi
{LOOK} > plugged 2>&1
echo '[ TransferUrl = "own://x/plugged"; TransferSuccess = true ]' > "$4"
"""
JOB = """executable = x.sh
output = out
log = x.log
should_transfer_files = yes
transfer_plugins = own={home}/plugin
transfer_input_files = own://x/plugged
transfer_output_files = plugged, wrapped
environment = "_CONDOR_WRAPPER_ERROR_FILE=/etc/passwd LD_LIBRARY_PATH=/nowhere OWN=1"
+HookKeyword = "SITE"
queue
"""
HERS = """executable = /bin/true
log = her.log
environment = "HERS=in-her-environment"
arguments = in-her-arguments
queue
"""
SECRET = "the-token-that-she-has-stored"
ANY = 'regexp("in-her", Environment) || regexp("in-her", Args) || regexp("in-her", Arguments) || regexp("in-her", Env)'


@attrs.frozen
class Attacked:
    """The pool, and what each of the programs has written down."""

    pool: SharedPool
    told: dict[str, str]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    site = Path("/usr/local/lib") / f"condor-test-{tmp_path_factory.mktemp('site').parent.name}"
    site.mkdir(mode=0o755, parents=True)
    try:
        for name, text in (("wrapper", WRAPPER), ("hook", f"#!/bin/sh\n{LOOK} > hooked 2>&1\n")):
            (site / name).write_text(text)
            (site / name).chmod(0o755)
        config = f"""
            DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CREDD
            USER_JOB_WRAPPER = {site}/wrapper
            SITE_HOOK_PREPARE_JOB = {site}/hook
        """
        with a_shared_pool(config, slots=2, drops_root=True) as pool:
            yield Attacked(pool, run_his_job(pool))
    finally:
        for path in site.iterdir():
            path.unlink()
        site.rmdir()


def run_his_job(pool: SharedPool) -> dict[str, str]:
    home = pool.mallory.home
    for name, text in (("plugin", PLUGIN), ("x.sh", "#!/bin/sh\ncat hooked\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    job = f"{pool.submit_as(pool.mallory, JOB.format(home=home))}.0"
    until(lambda: pool.status_of(job) in (0, 5), "his job to end")
    assert pool.status_of(job) == 0, pool.jobs(job)
    return {"wrapper": (home / "wrapped").read_text(), "hook": (home / "out").read_text(),
            "plugin": (home / "plugged").read_text()}


@pytest.mark.parametrize("program", ["wrapper", "hook", "plugin"])
def test_each_runs_as_the_jobs_account_with_nothing_of_the_daemons(attacked: Attacked, program: str) -> None:
    told, mallory = attacked.told[program], attacked.pool.mallory
    assert told.startswith(f"uid={mallory.uid} gid={mallory.gid} groups={mallory.gid}\n"), told[:200]
    for line in (f"Uid:\t{mallory.uid}\t{mallory.uid}\t{mallory.uid}\t{mallory.uid}", "NoNewPrivs:\t1",
                 "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapInh:\t0000000000000000"):
        assert line in told, (program, line)
    inherited = set(re.findall(r" \d+ -> (.*)", told))
    assert not any(re.search(r"socket|anon_inode|/spool/|/log/|/run/", each) for each in inherited), inherited
    assert not re.search(r"^(CONDOR_CONFIG|_CONDOR_STARTER|.*TOKEN|.*KEY)", told, re.MULTILINE), told


def test_he_chooses_the_variables_of_the_job_and_not_those_of_hooks_and_plugins(attacked: Attacked) -> None:
    assert "OWN=1" in attacked.told["wrapper"]
    for program in ("hook", "plugin"):
        assert "OWN=1" not in attacked.told[program]
        assert "LD_LIBRARY_PATH" not in attacked.told[program]
    assert "_CONDOR_WRAPPER_ERROR_FILE=/etc/passwd" not in attacked.told["wrapper"]


@pytest.mark.parametrize("program", ["wrapper", "plugin"])
def test_what_the_job_may_say_is_confined_as_it_is(attacked: Attacked, program: str) -> None:
    assert "CapBnd:\t0000000000000000" in attacked.told[program]
    assert "Seccomp:\t2" in attacked.told[program]


def test_her_credentials_are_neither_shown_nor_used_nor_removed(attacked: Attacked) -> None:
    pool = attacked.pool
    pool.run_as(pool.alice, "condor_store_cred", "add-oauth", "-s", "box", "-i", "-",
                stdin=f'{{"access_token": "{SECRET}", "expires_in": 10000}}')
    her = f"{pool.alice.name}@{pool.run('condor_config_val', 'UID_DOMAIN').strip()}"
    for words in (("query", "-u", her), ("query", "-u", "*"), ("delete-oauth", "-s", "box", "-u", her),
                  ("add-oauth", "-s", "box", "-u", her, "-i", "-")):
        done = pool.tool_as(pool.mallory, "condor_store_cred", *words, stdin='{"access_token": "his"}')
        assert done.returncode != 0, words
        assert SECRET not in done.stdout + done.stderr
    done = pool.tool_as(pool.mallory, "htcondor", "credential", "get", "oauth2", "--service", "box")
    assert (done.returncode, "has no credential of box here" in done.stderr) == (1, True), done.stderr
    assert "box" in pool.run_as(pool.alice, "condor_store_cred", "query")


def test_histories_show_him_none_of_her_words_and_tell_nothing_by_what_they_find(attacked: Attacked) -> None:
    pool = attacked.pool
    job = f"{pool.submit_as(pool.alice, HERS)}.0"
    until(lambda: pool.status_of(job) == 0, "her job to end")
    until(lambda: job.startswith(pool.run_as(pool.alice, "condor_history", "-startd", job, "-af", "ClusterId").strip()
                                 or "none"), "the machine's record")
    for words in ((), ("-epochs",), ("-transfer-history",), ("-startd",), ("-daemon",)):
        shown = pool.tool_as(pool.mallory, "condor_history", *words, "-l")
        assert "in-her-" not in shown.stdout, words
        found = pool.tool_as(pool.mallory, "condor_history", *words, "-constraint", ANY, "-af", "ClusterId")
        assert found.stdout.strip() in ("", "undefined"), (words, found.stdout)
        until_it = pool.tool_as(pool.mallory, "condor_history", *words, "-since", ANY, "-af", "ClusterId").stdout
        assert until_it == pool.tool_as(pool.mallory, "condor_history", *words, "-af", "ClusterId").stdout, words
    assert "in-her-arguments" in pool.tool_as(pool.alice, "condor_history", job, "-l").stdout
