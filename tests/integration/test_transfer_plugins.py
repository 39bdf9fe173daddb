"""Files that transfer plugins bring and take: the administrator's and jobs' own, and what goes wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

BOX = r"""#!/bin/sh
# Files of a folder, by box://NAME.
if test "$1" = -classad; then
    printf 'PluginType = "FileTransfer"\nSupportedMethods = "box,crate"\nMultipleFileSupport = true\n'
    exit 0
fi
echo "$(env | sed 's/=.*//' | tr '\n' ' ')| $(pwd) | $BOX_MODE" >> SHELF/calls
status=0
while read -r line; do
    url=$(expr "$line" : '.* Url = "\([^"]*\)"')
    path=$(expr "$line" : '.*LocalFileName = "\([^"]*\)"')
    there=SHELF/$(echo "${url#*://}" | tr / _)
    if test "$5" = -upload; then
        why=$(cp "$path" "$there" 2>&1)
    else
        why=$(cp "$there" "$path" 2>&1)
    fi
    if test $? = 0; then
        echo "[ TransferUrl = \"$url\"; TransferSuccess = true ]" >> "$4"
    else
        status=3
        echo "[ TransferUrl = \"$url\"; TransferSuccess = false; TransferError = \"the shelf: ${why##*: }\" ]" >> "$4"
    fi
done < "$2"
exit $status
"""

OLD = """#!/bin/sh
if test "$1" = -classad; then echo 'SupportedMethods = "old"'; exit 0; fi
case "$1" in
    old://slow) sleep 600;;
    old://lie) exit 0;;
    old://*) echo "from $1" > "$2";;
    *) cp "$1" SHELF/"${2##*/}";;
esac
"""


def made(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        shelf = folder / "shelf"
        shelf.mkdir()
        shelf.chmod(0o777)
        (shelf / "calls").touch()
        (shelf / "calls").chmod(0o666)
        box = made(folder / "box_plugin.py", BOX.replace("SHELF", str(shelf)))
        old = made(folder / "old", OLD.replace("SHELF", str(shelf)))
        broken = made(folder / "broken", "#!/bin/sh\nexit 1\n")
        pool = PersonalPool(folder, slots=2, config=f"FILETRANSFER_PLUGINS = {box}, {broken}, {old}\n"
                                                    "MAX_FILE_TRANSFER_PLUGIN_LIFETIME = 20\n")
        until(lambda: "box" in pool.run("condor_status", "-af", "HasFileTransferPluginMethods"), "the plugins' methods")
        yield pool
        pool.stop()


def shelf(pool: PersonalPool) -> Path:
    return pool.dir.parent / "shelf"


def script(pool: PersonalPool, name: str, text: str) -> str:
    program = made(pool.work / name, f"#!/bin/sh\n{text}\n")
    return f"executable = {program}\nlog = {name}.log\noutput = {name}.out\n"


def held(pool: PersonalPool, cluster: int) -> str:
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    pool.run("condor_rm", str(cluster))
    return f"{job['HoldReasonCode']} {job['HoldReasonSubCode']} {job['HoldReason']}"


def test_the_machine_says_which_schemes_it_knows(pool: PersonalPool) -> None:
    methods = pool.run("condor_status", "-af", "HasFileTransferPluginMethods", "HasJobTransferPlugins").split("\n")
    assert methods[0] == "http,https,box,crate,old true"


def test_inputs_and_outputs_by_plugins_of_the_machine(pool: PersonalPool) -> None:
    """Several files by one start, which sees hardly any environment; one that takes one file at a time; a folder."""
    (shelf(pool) / "in_one").write_text("one\n")
    (shelf(pool) / "in_two").write_text("two\n")
    before = (shelf(pool) / "calls").read_text().count("\n")
    pool.submit(script(pool, "there", "cat one two three; mkdir folder; echo a > folder/a; echo kept > kept; "
                                      "echo single > single; ls -A")
                + 'environment = "BOX_MODE=quick SECRET=hidden"\n'
                "transfer_input_files = box://in/one, crate://in/two, old://three\n"
                "transfer_output_files = folder, kept, single\n"
                'transfer_output_remaps = "folder = box://out; single = old://x/single"\nqueue\n')
    pool.wait("there.log")
    said = (pool.work / "there.out").read_text()
    assert said.startswith("one\ntwo\nfrom old://three\n")
    assert ".condor_plugin" not in said
    assert (shelf(pool) / "out_a").read_text() == "a\n"
    assert (shelf(pool) / "single").read_text() == "single\n"
    assert (pool.work / "kept").read_text() == "kept\n"
    assert not (pool.work / "folder").exists()
    assert not (pool.work / "single").exists()
    calls = (shelf(pool) / "calls").read_text().splitlines()[before:]
    assert len(calls) == 2
    for call in calls:
        names, folder, mode = call.split(" | ")
        assert mode == "quick"
        assert Path(folder).name.startswith("dir_")
        assert "SECRET" not in names
        assert "CONDOR_CONFIG" not in names
        assert {"_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD", "_CONDOR_SCRATCH_DIR", "PATH"} <= set(names.split())


def test_all_output_to_one_place_and_standard_output_too(pool: PersonalPool) -> None:
    pool.submit(script(pool, "all", "echo said; echo result > result").replace("output = all.out", "output = box://said")
                + "output_destination = box://all/\nqueue\n")
    pool.wait("all.log")
    assert (shelf(pool) / "said").read_text() == "said\n"
    assert (shelf(pool) / "all_result").read_text() == "result\n"


def test_a_jobs_own_plugin_goes_before_the_machines(pool: PersonalPool) -> None:
    """It comes along, is executable there whatever its mode at home, and serves schemes that no machine knows."""
    (pool.work / "bin").mkdir()
    own = pool.work / "bin" / "mine"
    own.write_text("#!/bin/sh\nwhile read -r line; do\n"
                   "  path=${line#*LocalFileName = \\\"}; path=${path%%\\\"*}\n"
                   "  echo mine > \"$path\"; echo '[ TransferSuccess = true ]' >> \"$4\"\ndone < \"$2\"\n")
    own.chmod(0o644)
    pool.submit(script(pool, "own", "cat one two") + "transfer_plugins = box,mine = bin/mine\n"
                "transfer_input_files = box://x/one, mine://two\nqueue\n")
    pool.wait("own.log")
    assert (pool.work / "own.out").read_text() == "mine\nmine\n"
    cluster = pool.submit(script(pool, "requires", "true") + "transfer_plugins = mine = bin/mine\nhold = true\n"
                          "transfer_input_files = mine://two, crate://three\nqueue\n")
    (job,) = pool.jobs(str(cluster))
    assert 'stringListIMember("crate",TARGET.HasFileTransferPluginMethods)' in str(job["Requirements"])
    assert '"mine"' not in str(job["Requirements"])
    pool.run("condor_rm", str(cluster))


def test_a_plugin_that_fails_holds_the_job_in_its_own_words(pool: PersonalPool) -> None:
    cluster = pool.submit(script(pool, "missing", "true") + "transfer_input_files = box://none?key=secret\nqueue\n")
    reason = held(pool, cluster)
    assert reason.startswith("13 768 ")
    assert "box://none: the shelf: No such file or directory" in reason
    assert "secret" not in reason
    cluster = pool.submit(script(pool, "unsent", "echo x > x; echo said; echo y > y")
                          + f'transfer_output_remaps = "x = box://{"x" * 300}"\nqueue\n')
    assert held(pool, cluster).startswith("12 768 ")
    assert [(pool.work / name).read_text() for name in ("unsent.out", "y")] == ["said\n", "y\n"]


def test_a_plugin_that_takes_too_long_or_lies_holds_the_job(pool: PersonalPool) -> None:
    slow = pool.submit(script(pool, "slow", "true") + "transfer_input_files = old://slow\nqueue\n")
    lie = pool.submit(script(pool, "lie", "true") + "transfer_input_files = old://lie\nqueue\n")
    assert "says that it has brought lie, which is not there" in held(pool, lie)
    assert "took more than 20 s (MAX_FILE_TRANSFER_PLUGIN_LIFETIME)" in held(pool, slow)


def test_a_job_that_is_removed_while_a_plugin_works_leaves_nothing(pool: PersonalPool) -> None:
    own = made(pool.work / "hanging", f"#!/bin/sh\necho begun > {pool.work}/begun\nexec sleep 600\n")
    cluster = pool.submit(script(pool, "removed", "true") + f"transfer_plugins = hang = {own}\n"
                          "transfer_input_files = hang://x\nqueue\n")
    until((pool.work / "begun").exists, "the plugin works")
    pool.run("condor_rm", str(cluster))
    until(lambda: not pool.jobs(str(cluster)), "the job is gone")
    until(lambda: not [path for path in (pool.dir / "execute").iterdir() if path.name.startswith("dir_")],
          "its scratch directory is gone")


def test_a_scheme_that_no_machine_knows_waits(pool: PersonalPool) -> None:
    cluster = pool.submit(script(pool, "waits", "true") + "should_transfer_files = YES\ntransfer_input_files = moon://x\nqueue\n")
    until(lambda: "HasFileTransferPluginMethods" in pool.run("condor_q", "-better-analyze", str(cluster)),
          "the analysis names what no machine has")
    (job,) = pool.jobs(str(cluster))
    assert job["JobStatus"] == 1
    pool.run("condor_rm", str(cluster))


@pytest.mark.parametrize(("text", "reason"), [
    ("transfer_plugins = nonsense\n", "'nonsense' is not METHOD=PATH"),
    ("transfer_plugins = s3=x\n", "the submit machine sees to"),
    ("transfer_plugins = a=x\nshould_transfer_files = NO\n", "but should_transfer_files is NO"),
    ("transfer_plugins = a=x\nuniverse = scheduler\n", "jobs of this universe are not run by a starter"),
])
def test_what_cannot_be_had_is_refused(pool: PersonalPool, text: str, reason: str) -> None:
    done = pool.tool("condor_submit", stdin=f"executable = /bin/true\n{text}queue\n")
    assert done.returncode != 0
    assert reason in done.stderr
