"""The user database is asked by libraries of its configuration's choice: by no process that has root's rights."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.harness.root_helper import ALICE, POOL, Helper
from tests.pool_fixture import fresh_folder

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nothing of a pool has its rights without"),
              pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")]

SPY = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void look(const char *call)
{
    char line[256], text[4096];
    int length = snprintf(text, sizeof text, "%s %d", call, (int)getpid());
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4) || !strncmp(line, "Groups:", 7) ||
            !strncmp(line, "CapPrm:", 7) || !strncmp(line, "CapEff:", 7)) {
            line[strcspn(line, "\n")] = 0;
            length += snprintf(text + length, sizeof text - length, "|%s", line);
        }
    fclose(status);
    DIR *list = opendir("/proc/self/fd");
    int most = 0;
    for (struct dirent *entry; (entry = readdir(list));)
        if (atoi(entry->d_name) > most && atoi(entry->d_name) != dirfd(list))
            most = atoi(entry->d_name);
    closedir(list);
    length += snprintf(text + length, sizeof text - length, "|Descriptor: %d|Traceable: %d\n", most,
                       access("/proc/self/environ", R_OK) == 0);
    FILE *said = fopen(getenv("SPY_SAYS"), "a");
    fwrite(text, 1, (size_t)length, said);
    fclose(said);
    while (getenv("SPY_HANGS") && access(getenv("SPY_HANGS"), F_OK) == 0)
        usleep(10000);
}

struct passwd *getpwuid(uid_t uid)
{
    struct passwd *(*next)(uid_t) = dlsym(RTLD_NEXT, "getpwuid");
    look("getpwuid");
    return next(uid);
}

int getgrouplist(const char *name, gid_t group, gid_t *groups, int *count)
{
    int (*next)(const char *, gid_t, gid_t *, int *) = dlsym(RTLD_NEXT, "getgrouplist");
    look("getgrouplist");
    int room = *count, found = next(name, group, groups, count);
    if (found < 0 || found >= room || !getenv("SPY_GROUP"))
        return found;
    groups[(*count)++] = (gid_t)atoi(getenv("SPY_GROUP"));
    return *count;
}
"""
NOBODY = 65534
EXTRA_GROUP = 4242
"""The database says that every user is in it."""


@attrs.frozen
class Spied:
    """A helper whose user database looks at who asks it."""

    helper: Helper
    folder: Path

    def asked(self) -> list[dict[str, list[str]]]:
        """Who has asked: the lines of its status."""
        found = []
        for line in (self.folder / "says").read_text().splitlines():
            call, *facts = line.split("|")
            found.append({"Call": call.split(), **{name: words.split() for name, words in (
                fact.split(":", 1) for fact in facts)}})
        return found


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spied]:
    with fresh_folder() as folder:
        library = folder / "spy.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), "-xc", "-", "-ldl"], input=SPY, text=True,
                       check=True)
        (folder / "says").touch()
        (folder / "says").chmod(0o666)
        trees = folder / "trees"
        trees.mkdir()
        with Helper("--folder", str(trees), accounts=(NOBODY, ALICE), environment={
                "LD_PRELOAD": str(library), "SPY_SAYS": str(folder / "says"), "SPY_HANGS": str(folder / "hangs"),
                "SPY_GROUP": str(EXTRA_GROUP),
        }) as helper:
            yield Spied(helper, folder)


def test_whoever_asks_has_no_right_no_descriptor_and_no_way_back(spied: Spied) -> None:
    """For each kind of order; the helper itself asks nothing, not even when it begins."""
    helper = spied.helper
    assert spied.asked() == []
    answer = helper.open(NOBODY, "/etc/passwd")
    assert answer.error == 0, answer.reason
    os.close(answer.descriptor)
    answer, complaint, said = helper.start(NOBODY, ["--", "/usr/bin/id", "-u"])
    assert (answer.error, complaint, said) == (0, "", f"{NOBODY}\n")
    tree = spied.folder / "trees" / "tree"
    tree.mkdir()
    os.chown(tree, POOL, POOL)
    folder = os.open(tree, os.O_RDONLY)
    for kind in (5, 8, 6):  # give, measure, take
        answer = helper.order(kind, NOBODY, b"", (folder,))
        assert answer.error == 0, answer.reason
    os.close(folder)
    asked = spied.asked()
    assert len([each for each in asked if each["Call"][0] == "getpwuid"]) == 5
    for each in asked:
        assert int(each["Call"][1]) != helper.process.pid
        assert each["Uid"] == [str(POOL)] * 4
        assert each["Gid"] == [str(POOL)] * 4
        assert each["Groups"] == [str(POOL)]
        assert (each["CapPrm"], each["CapEff"]) == (["0" * 16], ["0" * 16])
        assert each["Descriptor"] == ["3"], "its answer's; the helper's socket and the order's are closed"
        assert each["Traceable"] == ["0"]


def test_an_account_without_a_name_has_the_group_of_the_list(spied: Spied) -> None:
    answer, complaint, said = spied.helper.start(ALICE, ["--", "/usr/bin/id", "-G"])
    assert (answer.error, complaint, said) == (0, "", f"{ALICE}\n")


def test_a_database_that_never_answers_ends_the_order_alone(spied: Spied) -> None:
    (spied.folder / "hangs").touch()
    answer, complaint, said = spied.helper.start(NOBODY, ["--", "/usr/bin/id", "-u"])
    assert (answer.error, said) == (0, "")
    assert "the user database does not answer" in complaint
    (spied.folder / "hangs").unlink()
    assert spied.helper.start(NOBODY, ["--", "/usr/bin/id", "-u"])[2] == f"{NOBODY}\n"


def test_a_start_has_a_group_of_the_account_and_no_other(spied: Spied) -> None:
    script = "id -g; grep -E '^(Gid|CapPrm|CapEff)' /proc/self/status"
    answer, complaint, said = spied.helper.start(NOBODY, ["--", "/bin/sh", "-c", script], extra=EXTRA_GROUP)
    assert (answer.error, complaint) == (0, "")
    first, group, permitted, effective = said.splitlines()
    assert (first, group.split()[1:]) == (str(EXTRA_GROUP), [str(EXTRA_GROUP)] * 4)
    assert {permitted.split()[1], effective.split()[1]} == {"0" * 16}
    for other in (0xFFFFFFFF, 4243, POOL, 1):
        answer, complaint, said = spied.helper.start(NOBODY, ["--", "/usr/bin/id", "-g"], extra=other)
        assert (answer.error, said) == (0, "")
        assert complaint.startswith("gid")
    own = spied.helper.start(NOBODY, ["--", "/usr/bin/id", "-g"], extra=NOBODY)[2]
    assert own == f"{NOBODY}\n"
