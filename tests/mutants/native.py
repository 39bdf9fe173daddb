"""Bugs of the native code: launcher, shadow, runtime, ClassAds.

What these let through must be harmless on the machine that tries them: no hole in the runtime's filter or in job_root
through which an attack of the tests could reach more than the test's own directory.
"""

from __future__ import annotations

from tests.mutants.mutation import Mutation

LAUNCHER: tuple[Mutation, ...] = (
    Mutation(
        "launcher-leaves-descriptors", "native/launcher/identity.c",
        "if (next > from && syscall(",
        "if (next > from && count > MAX_KEPT + 1 && syscall(",
        why="a job gets at the sockets and files of the daemon that started it",
        killed_by=("tests/native/test_launcher.py::test_descriptors_are_closed_but_those_kept",)),
    Mutation(
        "launcher-keeps-groups", "native/launcher/identity.c",
        "if (geteuid() == 0 && setgroups(",
        "if (geteuid() != 0 && setgroups(",
        why="a job has root's groups",
        killed_by=("tests/native/test_launcher.py::test_identity_is_dropped_for_good",)),
    Mutation(
        "launcher-lets-privileges-come-back", "native/launcher/identity.c",
        "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)",
        "prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)",
        why="a job becomes root through any set-user-ID program of the machine",
        killed_by=("tests/native/test_launcher.py::test_signals_start_at_their_defaults",)),
    Mutation(
        "launcher-hands-on-ignored-signals", "native/launcher/identity.c",
        "number <= 64; number++",
        "number <= 1; number++",
        why="a job cannot be asked to leave: SIGTERM is ignored, as in the daemon that started it",
        killed_by=("tests/native/test_launcher.py::test_signals_start_at_their_defaults",)),
    Mutation(
        "launcher-without-death-signal", "native/launcher/identity.c",
        "prctl(PR_SET_PDEATHSIG, number)",
        "prctl(PR_GET_PDEATHSIG, &number)",
        why="a job goes on, unseen, when its starter host has died",
        killed_by=("tests/native/test_launcher.py::test_death_signal_ends_the_job_with_its_parent",)),
    Mutation(
        "launcher-says-exited", "native/launcher/supervise.c",
        "    if (WIFSIGNALED(status)) {\n",
        "    if (WIFSTOPPED(status)) {\n",
        why="a job that was killed counts as one that finished",
        killed_by=("tests/native/test_launcher.py::test_isolated_jobs_end_is_relayed",)),
    Mutation(
        "launcher-root-without-its-directory", "native/launcher/namespaces.c",
        '(chroot(plan->root) < 0 || chdir("/") < 0)',
        "chroot(plan->root) < 0",
        why="a job leaves its root through the directory that it began in",
        killed_by=()),
    Mutation(
        "launcher-sets-soft-limits-only", "native/launcher/options.c",
        "limit->value.rlim_max = hard ? limit_value(hard) : limit->value.rlim_cur;",
        "limit->value.rlim_max = hard ? limit_value(hard) : RLIM_INFINITY;",
        why="a job takes its limits off",
        killed_by=("tests/native/test_launcher.py::test_limits_umask_nice_directory_session",)),
)

SHADOW: tuple[Mutation, ...] = (
    Mutation(
        "shadow-reads-beyond-the-frame", "native/shadow/serve.c",
        "    if (w->head.size - *at < size)\n",
        "    if (size > MAX_PAYLOAD)\n",
        why="a hostile program reads the shadow's memory",
        killed_by=()),
    Mutation(
        "shadow-path-beyond-the-frame", "native/shadow/serve.c",
        "if (length == w->head.size - *at || length >= PATH_LIMIT)",
        "if (length >= PATH_LIMIT)",
        why="as above, through a name without an end",
        killed_by=()),
    Mutation(
        "shadow-is-greeted-twice", "native/shadow/serve.c",
        "if (w->head.size < sizeof hello || s->greeted)",
        "if (w->head.size < sizeof hello)",
        why="a program makes the shadow roll its files back while it runs",
        killed_by=()),
    Mutation(
        "shadow-shows-its-own-memory", "native/shadow/open_calls.c",
        "return names_own_thread(name) ? -EACCES : 0;",
        "return names_own_thread(name) && 0 ? -EACCES : 0;",
        why="a program reads the keys of its owner's other sessions",
        killed_by=()),
    Mutation(
        "job-root-of-the-neighbour", "native/shadow/confine.c",
        "strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/')",
        "strncmp(path, directory, length) == 0",
        why="a job in /home/a/job reaches /home/a/job2",
        killed_by=()),
    Mutation(
        "image-shorter-than-was-said", "native/shadow/image.c",
        "st.st_size != ARGUMENT(1) || ",
        "",
        why="half a checkpoint takes the place of a whole one",
        killed_by=()),
    Mutation(
        "journal-outlives-its-image", "native/shadow/image.c",
        "long failed = journal_reset(s, s->generation);",
        "long failed = 0;",
        why="a restart undoes what was written before the checkpoint",
        killed_by=()),
    Mutation(
        "journal-saves-nothing", "native/shadow/journal.c",
        "block * BLOCK < to && !result; block++",
        "block * BLOCK < 0 && !result; block++",
        why="after a crash a program goes on with files of its own future",
        killed_by=()),
    Mutation(
        "shadow-believes-changed-records", "native/shadow/secret.c",
        "        if (!seal_open(&secret->in, secret->raw + at, size, s->in + s->in_used))\n"
        "            return false;\n",
        "        (void)seal_open(&secret->in, secret->raw + at, size, s->in + s->in_used);\n",
        why="whoever sits between changes a program's calls",
        killed_by=()),
)

RUNTIME: tuple[Mutation, ...] = (
    Mutation(
        "runtime-believes-changed-records", "native/runtime/secret.c",
        "        if (!seal_open(&secret->in, secret->raw + secret->raw_at, size, secret->text))\n"
        "            return 0;\n",
        "        (void)seal_open(&secret->in, secret->raw + secret->raw_at, size, secret->text);\n",
        why="whoever sits between changes the answers a program gets",
        killed_by=()),
    Mutation(
        "filter-lets-any-file-be-synced", "native/runtime/filter.c",
        "{__NR_fsync, {{IS, 0, GIFT_FD}}},",
        "{__NR_fsync, {{0}}},",
        why="one rule of the filter, which the attacks are made from, is wider than it says",
        killed_by=()),
    Mutation(
        "checkpoint-forgets-children", "native/runtime/checkpoint.c",
        "return SYSTEM(__NR_waitid, ANYBODY, 0, &info, NO_HANG | ENDED | KEEP, 0) != -ECHILD;",
        "return SYSTEM(__NR_waitid, ANYBODY, 0, &info, NO_HANG | ENDED | KEEP, 0) == -EFAULT;",
        why="a shell waits for ever for a child that ended before it moved",
        killed_by=()),
    Mutation(
        "restart-forgets-pending-signals", "native/runtime/restart.c",
        "number <= SIGNAL_COUNT; number++",
        "number < 0; number++",
        why="a signal that came in the moment of a checkpoint is lost",
        killed_by=()),
    Mutation(
        "image-without-its-increments-base", "native/runtime/checkpoint.c",
        "    else if (!memory->writer.increment)\n        protect_all(",
        "    else\n        protect_all(",
        why="what changes between two increments is in neither",
        killed_by=()),
)

CLASSADS: tuple[Mutation, ...] = (
    Mutation(
        "strings-differ-by-case", "native/classads/operators.c",
        "int difference = Py_TOLOWER(first[at]) - Py_TOLOWER(second[at]);",
        "int difference = first[at] - second[at];",
        why='Arch == "x86_64" does not match X86_64',
        killed_by=("tests/unit/classads/test_matching.py::test_the_index_finds_what_asking_each_pair_finds",)),
    Mutation(
        "undefined-is-an-error", "native/classads/operators.c",
        "return nothing(error ? ERROR : UNDEFINED);",
        "return nothing(error ? UNDEFINED : ERROR);",
        why="policies that look at what a machine does not have fail",
        killed_by=("tests/unit/classads/test_evaluation.py::test_cycles_end",)),
    Mutation(
        "shift-to-zero", "native/classads/operators.c",
        "return integer((int64_t)~(~a >> (right < 0 ? 0 : right > 63 ? 63 : right)));",
        "return integer((int64_t)(a >> (right < 0 ? 0 : right > 63 ? 63 : right)));",
        why="the two implementations of the language disagree",
        killed_by=("tests/unit/classads/test_evaluation.py::test_integers_are_those_of_the_machine",)),
)

MUTATIONS: tuple[Mutation, ...] = (*LAUNCHER, *SHADOW, *RUNTIME, *CLASSADS)
