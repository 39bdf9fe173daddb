"""A directory server that hangs: what is known goes on, who is not known waits, and no daemon stands still."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.pool_fixture import fresh_folder
from tests.security.local_users import NEED_USERS, SharedPool, a_person

pytestmark = [*NEED_USERS, pytest.mark.root,
              pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")]

SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_the_server(void)
{
    const char *hangs = getenv("DIRECTORY_HANGS");
    while (hangs != NULL && access(hangs, F_OK) == 0)
        usleep(10000);
}

int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    int (*next)(const char *, struct passwd *, char *, size_t, struct passwd **) = dlsym(RTLD_NEXT, "getpwnam_r");
    wait_for_the_server();
    return next(name, entry, text, size, found);
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    int (*next)(uid_t, struct passwd *, char *, size_t, struct passwd **) = dlsym(RTLD_NEXT, "getpwuid_r");
    wait_for_the_server();
    return next(uid, entry, text, size, found);
}

int getgrouplist(const char *name, gid_t group, gid_t *groups, int *count)
{
    int (*next)(const char *, gid_t, gid_t *, int *) = dlsym(RTLD_NEXT, "getgrouplist");
    wait_for_the_server();
    return next(name, group, groups, count);
}
"""


@attrs.frozen
class Slow:
    """A pool whose daemons ask a directory server; it hangs while there is a file."""

    pool: SharedPool
    hangs: Path


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    with fresh_folder() as folder, a_person("cdslowa", folder) as alice, a_person("cdslowm", folder) as mallory:
        library, hangs = folder / "slow.so", folder / "hangs"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), "-xc", "-", "-ldl"], input=SLOW, text=True,
                       check=True)
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("DIRECTORY_HANGS", str(hangs))
        pool = SharedPool(folder, alice, mallory)
        for name in ("LD_PRELOAD", "DIRECTORY_HANGS"):  # the commands have another server
            del pool.environment[name]
            monkeypatch.delenv(name)
        try:
            yield Slow(pool, hangs)
        finally:
            hangs.unlink(missing_ok=True)
            pool.stop()


def job_of(slow: Slow, name: str) -> None:
    """A job of alice's, from its submission to its end."""
    pool = slow.pool
    pool.submit_as(pool.alice, f"executable = /bin/true\nlog = {name}\nshould_transfer_files = YES\nqueue")
    pool.run_as(pool.alice, "condor_wait", "-wait", "90", name)


def test_a_server_that_hangs_stops_no_daemon(slow: Slow) -> None:
    pool = slow.pool
    job_of(slow, "before")
    slow.hangs.touch()
    stranger = subprocess.Popen(pool.mallory.command(*pool.command("condor_q")), env=pool.environment, cwd="/",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for daemon in ("collector", "negotiator", "schedd", "startd", "master"):
        pool.run("condor_ping", "-type", daemon, "READ")
    job_of(slow, "meanwhile")
    pool.submit("executable = /bin/true\nlog = roots.log\nqueue")  # by a shadow host that begins now
    pool.wait("roots.log")
    home = 'userHome(strcat("nobody", SlotID), "/nowhere") == "/nowhere"'
    found = pool.run("condor_status", "-constraint", home, "-af", "Name")
    assert len(found.split()) == len(pool.run("condor_status", "-af", "Name").split())
    slow.hangs.unlink()
    stranger.communicate(timeout=60)
    pool.run_as(pool.mallory, "condor_q")
    job_of(slow, "afterwards")


def test_a_new_user_is_served_when_the_server_answers(slow: Slow) -> None:
    """The first command of a user while the server hangs waits for it, and is then as good as any."""
    pool = slow.pool
    slow.hangs.touch()
    asking = subprocess.Popen(pool.mallory.command(*pool.command("condor_q")), env=pool.environment, cwd="/",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    pool.run("condor_q")
    assert asking.poll() is None
    slow.hangs.unlink()
    assert "Total for" in asking.communicate(timeout=60)[0]
