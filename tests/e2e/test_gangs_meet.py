"""Members of a gang meet: values, channels and barriers, from Python, from C and from a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.test_vanilla import folder
from tests.pool_fixture import PersonalPool, until

LIB = Path(__file__).parents[2] / "condor_actors/libexec"

MEMBER = """#!/usr/bin/python3
import os, sys, time
sys.path.append(os.environ["_CONDOR_GANG_LIB"])
from condor_gang import Gang, GangError, GangTimeout

gang = Gang()
if gang.number == 0:
    gang.put("address", b"here \\xff\\n")
    gang.put("address", b"there")
assert gang.get("nothing") is None
if gang.number == 1:
    assert gang.wait("address", timeout=60) in (b"there", b"here \\xff\\n")
    try:
        gang.put("address", b"mine")
    except GangError as error:
        print(error)
    try:
        gang.wait("never", timeout=0.2)
    except GangTimeout as error:
        print(error)
gang.barrier("begun", timeout=60)
begun = os.path.join(sys.argv[1], f"begun.{gang.number}")
open(begun, "w").close()
while not os.path.exists(os.path.join(sys.argv[1], "go")):
    time.sleep(0.05)
size = 100 * 1024
if gang.number == 0:
    done = []
    for number in range(40):
        gang.channel("work").send(b"%d" % number + b"." * size, timeout=120)
        done.append(int(gang.select(["a", "done"], timeout=120)[2]))
    print(done)
    gang.put("all", b"")
    gang.barrier("end", timeout=120)
else:
    while gang.get("all") is None:
        try:
            data = gang.channel("work").receive(timeout=1)
        except GangTimeout:
            continue
        assert len(data) > size
        gang.channel("done").send(data.rstrip(b"."), timeout=120)
    gang.barrier("end", timeout=120)
"""


def gang(pool: PersonalPool, here: Path, executable: str, size: int, more: str = "") -> int:
    return pool.submit(f"""
        universe = parallel
        machine_count = {size}
        initialdir = {here}
        executable = {executable}
        arguments = {here}
        output = out.$(Node)
        error = err.$(Node)
        log = gang.log
        +ParallelShutdownPolicy = "WAIT_FOR_ALL"
        {more}
        queue
    """)


def written(here: Path, name: str, text: str) -> None:
    (here / name).write_text(text)
    (here / name).chmod(0o755)


def ended_well(pool: PersonalPool, here: Path, cluster: int, size: int) -> None:
    pool.wait(str(here / "gang.log"))
    assert [(here / f"err.{node}").read_text() for node in range(size)] == [""] * size
    (ad,) = pool.history(str(cluster))
    assert (ad["ExitCode"], ad["NumShadowStarts"]) == (0, 1)


def test_messages_arrive_once_though_the_shadows_are_killed(own_pool: PersonalPool) -> None:
    here = folder(own_pool, "meet")
    written(here, "member.py", MEMBER)
    cluster = gang(own_pool, here, "member.py", 3)
    until(lambda: len(list(here.glob("begun.*"))) == 3, "three members that have met")
    (here / "go").touch()
    pid = own_pool.kill("shadow-host")
    own_pool.until_restarted("shadow-host", pid)
    ended_well(own_pool, here, cluster, 3)
    assert (here / "out.0").read_text() == f"{list(range(40))}\n"
    assert (here / "out.1").read_text().splitlines() == [
        "another member has put it", "gang_wait never: nothing within 0.2 s"]


C_MEMBER = r"""
#include "condor_gang.h"

static char large[CONDOR_GANG_MOST_BYTES + 1], there[CONDOR_GANG_MOST_BYTES];

static void fill(void) {
    for (size_t at = 0; at < sizeof large; at++)
        large[at] = (char)(at * 7 + at / 251);
}

static int is_large(long length) {
    return length == (long)sizeof there && memcmp(large, there, sizeof there) == 0;
}

int main(void) {
    fill();
    struct condor_gang gang;
    char text[64] = "", from[CONDOR_GANG_MOST_NAME + 20] = "";
    if (condor_gang_open(&gang))
        return 2;
    if (condor_gang_get(&gang, "nothing", text, sizeof text) != CONDOR_GANG_ABSENT)
        return 3;
    if (condor_gang_wait(&gang, "never", text, sizeof text, 0.1) != CONDOR_GANG_TIMEOUT)
        return 4;
    if (condor_gang_put(&gang, "two words", "x", 1) != CONDOR_GANG_INVALID)
        return 5;
    if (condor_gang_barrier(&gang, "met", 60))
        return 6;
    if (gang.number == 1) {
        if (condor_gang_send(&gang, "large", large, sizeof large, 60) != CONDOR_GANG_TOO_BIG ||
            condor_gang_put(&gang, "large", large, sizeof large) != CONDOR_GANG_TOO_BIG)
            return 9;
        if (condor_gang_put(&gang, "large", large, sizeof there) ||
            condor_gang_send(&gang, "large", large, sizeof there, 60))
            return 10;
        return condor_gang_send(&gang, "b", "hello", 5, 60) ? 7 : 0;
    }
    if (condor_gang_wait(&gang, "large", text, sizeof text, 60) != CONDOR_GANG_TOO_BIG)
        return 11;
    if (!is_large(condor_gang_get(&gang, "large", there, sizeof there)))
        return 12;
    memset(there, 0, sizeof there);
    if (!is_large(condor_gang_receive(&gang, "large", there, sizeof there, NULL, 60)))
        return 13;
    long length = condor_gang_receive(&gang, "a b", text, sizeof text, from, 60);
    printf("%d of %d: %.*s from %s\n", gang.number, gang.size, (int)length, text, from);
    return length == 5 ? 0 : 8;
}
"""


def test_programs_in_c_and_shell_scripts_meet(pool: PersonalPool) -> None:
    here = folder(pool, "meet-c")
    (here / "member.c").write_text(C_MEMBER)
    subprocess.run(["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-I", str(LIB), "-o", "member", "member.c"],
                   cwd=here, check=True)
    ended_well(pool, here, gang(pool, here, "member", 2), 2)
    assert (here / "out.0").read_text() == "0 of 2: hello from 1 b\n"
    here = folder(pool, "meet-sh")
    written(here, "member.sh", """#!/bin/sh -e
condor_gang barrier begun
if [ "$_CONDOR_PROCNO" = 0 ]; then
    hostname | condor_gang put host -
    condor_gang -timeout 60 receive results
else
    test "$(condor_gang -timeout 60 wait host)" = "$(hostname)"
    condor_gang send results "from $_CONDOR_PROCNO"
    condor_gang get nothing 2>/dev/null || test $? = 4
    condor_gang -timeout 0.1 wait nothing 2>/dev/null || test $? = 3
    condor_gang put a 2>/dev/null || test $? = 2
fi
""")
    ended_well(pool, here, gang(pool, here, "member.sh", 2), 2)
    assert (here / "out.0").read_text() == "from 1"


def test_members_meet_nobody_else(pool: PersonalPool) -> None:
    here = folder(pool, "meet-alone")
    written(here, "member.sh", "#!/bin/sh\ncondor_gang put key \"$1\" && condor_gang wait key\n")
    first, second = (gang(pool, here, "member.sh", 1, f"output = {name}.out\nerror = {name}.err\nlog = {name}.log")
                     for name in ("first", "second"))
    for name in ("first", "second"):
        pool.wait(str(here / f"{name}.log"))
        assert (here / f"{name}.err").read_text() == ""
    assert first != second
    written(here, "alone.sh", "#!/bin/sh\nexec condor_gang put key value\n")
    cluster = pool.submit(f"executable = alone.sh\ninitialdir = {here}\nerror = alone.err\nlog = alone.log\nqueue\n")
    pool.wait(str(here / "alone.log"))
    assert cluster
    assert "no member of a gang" in (here / "alone.err").read_text()
