"""Bugs of the native code: launcher, shadow, runtime, relays, ClassAds.

What these let through must be harmless on the machine that tries them: no hole in the runtime's filter or in job_root
through which an attack of the tests could reach more than the test's own directory.
"""

from __future__ import annotations

from tests.mutants.mutation import Mutation

LAUNCHER: tuple[Mutation, ...] = (
    Mutation(
        "launcher-takes-another-folder", "native/launcher/sources.c",
        "found.st_ino != looked_at.st_ino)",
        "found.st_ino == 0)",
        why="a folder that was put in the place of an image's after the look at it becomes a job's root",
        killed_by=("tests/native/test_launcher_sources.py::test_what_is_bound_was_swapped",)),
    Mutation(
        "launcher-follows-links-to-what-was-checked", "native/launcher/sources.c",
        ".resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};",
        ".resolve = RESOLVE_NO_MAGICLINKS};",
        why="a link in the place of a job's own folder leads its mounts elsewhere",
        killed_by=("tests/native/test_launcher_sources.py::test_a_link_where_nothing_was_kept",)),
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
        "launcher-keeps-capabilities", "native/launcher/identity.c",
        "for (int each = 0; each <= LAST; each++)",
        "for (int each = 0; each < 0; each++)",
        why="a program with file capabilities gives a job what the machine's root may do",
        killed_by=("tests/native/test_launcher.py::test_no_capability_is_left",)),
    Mutation(
        "launcher-leaves-the-filter-open", "native/launcher/main.c",
        "    close_filter(plan.filter);\n",
        "",
        why="a forged checkpoint has every system call until it closes the filter itself",
        killed_by=("tests/native/test_launcher.py::test_the_filter_is_closed_before_the_program_begins",)),
    Mutation(
        "launcher-keeps-the-old-root", "native/launcher/namespaces.c",
        'if (umount2(".", MNT_DETACH) < 0)',
        'if (chdir("/") < 0)',
        why="a job finds the machine's files under its own root",
        killed_by=("tests/native/test_launcher.py::test_the_old_root_is_let_go",)),
    Mutation(
        "launcher-hides-nothing", "native/launcher/namespaces.c",
        "for (size_t i = 0; i < plan->hidden_count; i++)\n        if (mount(\"tmpfs\"",
        "for (size_t i = 0; i < plan->hidden_count * 0; i++)\n        if (mount(\"tmpfs\"",
        why="a job reads and changes the scratch directories of others of its account",
        killed_by=("tests/native/test_launcher.py::test_hidden_folders_are_empty_but_for_what_is_bound",)),
    Mutation(
        "launcher-root-without-its-directory", "native/launcher/namespaces.c",
        '(chroot(plan->root) < 0 || chdir("/") < 0)',
        "chroot(plan->root) < 0",
        why="a job leaves its root through the directory that it began in",
        killed_by=("tests/native/test_launcher.py::test_nothing_outside_is_reached_from_where_the_job_began",)),
    Mutation(
        "launcher-sets-soft-limits-only", "native/launcher/options.c",
        "limit->value.rlim_max = hard ? limit_value(hard) : limit->value.rlim_cur;",
        "limit->value.rlim_max = hard ? limit_value(hard) : RLIM_INFINITY;",
        why="a job takes its limits off",
        killed_by=("tests/native/test_launcher.py::test_limits_umask_nice_directory_session",)),
)

CHANNEL: tuple[Mutation, ...] = (
    Mutation(
        "changed-records-are-believed", "native/seal.h",
        "    if (differs)\n        return false;\n",
        "    if (differs && !size)\n        return false;\n",
        why="anyone who sits between changes a program's calls, and the answers it gets",
        killed_by=("tests/native/test_secret.py::test_a_changed_byte_ends_the_session",)),
)

SHADOW: tuple[Mutation, ...] = (
    Mutation(
        "shadow-reads-beyond-the-frame", "native/shadow/serve.c",
        "    if (w->head.size - *at < size)\n",
        "    if (size > MAX_PAYLOAD)\n",
        why="a hostile program reads the shadow's memory",
        killed_by=("tests/native/test_shadow_frames.py::test_an_argument_that_is_longer_than_its_frame_is_not_read",)),
    Mutation(
        "shadow-path-beyond-the-frame", "native/shadow/serve.c",
        "if (length == w->head.size - *at || length >= PATH_LIMIT)",
        "if (length >= PATH_LIMIT)",
        why="as above, through a name without an end",
        killed_by=("tests/native/test_shadow_frames.py::test_lengths_that_lie",)),
    Mutation(
        "shadow-is-greeted-twice", "native/shadow/serve.c",
        "if (w->head.size < sizeof hello || s->greeted)",
        "if (w->head.size < sizeof hello)",
        why="a program makes the shadow roll its files back while it runs",
        killed_by=("tests/native/test_shadow_frames.py::test_a_second_greeting_is_refused",)),
    Mutation(
        "shadow-shows-its-own-memory", "native/shadow/files/open_calls.c",
        "return names_own_thread(name) ? -EACCES : 0;",
        "return names_own_thread(name) && 0 ? -EACCES : 0;",
        why="a program reads the keys of its owner's other sessions",
        killed_by=("tests/native/test_shadow_frames.py::test_the_shadows_own_memory_is_not_to_be_had",)),
    Mutation(
        "job-root-of-the-neighbour", "native/shadow/confine.c",
        "strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/')",
        "strncmp(path, directory, length) == 0",
        why="a job in /home/a/job reaches /home/a/job2",
        killed_by=("tests/native/test_job_root.py::test_nothing_outside_is_opened_looked_at_or_changed",)),
    Mutation(
        "image-shorter-than-was-said", "native/shadow/checkpoint/image.c",
        "st.st_size != ARGUMENT(1) || ",
        "",
        why="half a checkpoint takes the place of a whole one",
        killed_by=("tests/native/test_shadow_edges.py::test_images_that_are_given_up_leave_no_descriptors",)),
    Mutation(
        "journal-outlives-its-image", "native/shadow/checkpoint/image.c",
        "long failed = journal_reset(s, s->generation);",
        "long failed = 0;",
        why="a restart undoes what was written before the checkpoint",
        killed_by=("tests/native/test_undo_journal.py::test_an_image_of_a_program_that_has_ended_finds_its_files",)),
    Mutation(
        "journal-saves-nothing", "native/shadow/checkpoint/journal.c",
        "block * BLOCK < to && !result; block++",
        "block * BLOCK < 0 && !result; block++",
        why="after a crash a program goes on with files of its own future",
        killed_by=("tests/native/test_undo_journal.py::test_what_is_changed_in_place_is_as_it_was",)),
)

RUNTIME: tuple[Mutation, ...] = (
    Mutation(
        "filter-looks-at-half-a-pointer", "native/runtime/filter.c",
        "if (c->test == IS && c->value == 0) {",
        "if (c->test == IS && c->value == 1) {",
        why="a limit that the program hands over where the runtime may only ask for one is set",
        killed_by=("tests/native/test_confinement.py::test_every_attack_dies_or_gets_its_errno",)),
    Mutation(
        "filter-lets-any-mapping-be-made", "native/runtime/filter.c",
        "emit(BPF_JMP | BPF_JSET | BPF_K, 1, 0, c->value); break;",
        "emit(BPF_JMP | BPF_JSET | BPF_K, 1, 1, c->value); break;",
        why="a program maps what is open in the runtime, the channel's key among it",
        killed_by=("tests/native/test_confinement.py::test_every_attack_dies_or_gets_its_errno",)),
    Mutation(
        "restart-forgets-pending-signals", "native/runtime/checkpoint/restart.c",
        "    give_back_signals(self);\n",
        "",
        why="a signal that came in the moment of a checkpoint is lost",
        killed_by=("tests/native/test_checkpoint.py::test_a_signal_that_waits_moves_too",)),
    Mutation(
        "moved-signals-have-no-sender", "native/runtime/signals/pending.c",
        "*room == NAMED ? *sender : virtual_sender(*sender) : 0",
        "0 : 0",
        why="a signal that waited while the program moved comes from nobody",
        killed_by=("tests/native/test_queued_signals.py::test_signals_that_wait_move",)),
    Mutation(
        "orphans-are-not-looked-for", "native/runtime/kinship/kinship.c",
        "            if (is_child(list[i].real_pid))\n",
        "            if (!list[i].real_pid && is_child(list[i].real_pid))\n",
        why="a process cannot wait for a child that another one has started for it",
        killed_by=(
            "tests/native/test_kinship.py"
            "::test_what_becomes_of_the_children_of_those_that_end_is_the_native_thing",)),
    Mutation(
        "stopped-members-stay", "native/runtime/signals/stops.c",
        "            if (home_is_lost())",
        "            if (!process.family && home_is_lost())",
        why="a process that the program has stopped stays on the machine when its shadow is killed",
        killed_by=("tests/native/test_standalone.py::test_a_member_that_is_stopped_does_not_outlive_the_command",)),
    Mutation(
        "owner-does-not-die", "native/runtime/process/owned.c",
        "waiters | FUTEX_OWNER_DIED",
        "waiters",
        why="who takes a robust lock whose owner died is not told that what it guards may be half done",
        killed_by=("tests/native/test_owned_locks.py::test_locks_know_their_owners",)),
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

RELAYS: tuple[Mutation, ...] = (
    Mutation(
        "relay-sends-again-what-came", "native/relay/numbered.c",
        "    bytes_drop(&c->kept, (size_t)(arrived - c->acknowledged));\n",
        "",
        why="a call whose connection broke is done twice",
        killed_by=(
            "tests/native/test_relays.py::test_every_byte_comes_once_and_in_order_wherever_connections_break",)),
    Mutation(
        "relay-goes-on-in-the-middle-of-a-frame", "native/relay/numbered.c",
        "    c->head_used = c->left = 0; /* what came of a frame is counted */\n",
        "",
        why="what comes over the next connection is taken for the rest of a frame of the last",
        killed_by=(
            "tests/native/test_relays.py::test_every_byte_comes_once_and_in_order_wherever_connections_break",)),
    Mutation(
        "relay-believes-what-arrived", "native/relay/numbered.c",
        "    if (arrived < c->acknowledged || arrived - c->acknowledged > c->sent - c->acknowledged + c->end_sent)\n",
        "    if (arrived < c->acknowledged)\n",
        why="a hostile machine makes home forget what it has not had",
        killed_by=("tests/native/test_relays.py::test_a_hostile_end_ends_the_channel_and_nothing_else",)),
    Mutation(
        "relay-speaks-too-early", "native/relay/numbered.c",
        "remote->fd >= 0 && !c->listens && ",
        "remote->fd >= 0 && ",
        why="the first answers are lost in the other end's TLS",
        killed_by=("tests/native/test_relays.py::test_who_listens_says_nothing_before_the_other_end_has",)),
    Mutation(
        "relay-keeps-no-bound", "native/relay/numbered.c",
        "!c->end_came && c->kept.used < WINDOW_BYTES;",
        "!c->end_came;",
        why="a program that writes while a gateway is away fills the execute machine's memory",
        killed_by=("tests/native/test_relays.py::test_what_does_not_arrive_is_bounded",)),
    Mutation(
        "splice-swallows-a-half-close", "native/relay/splice.c",
        "            shutdown(end->fd, SHUT_WR);\n",
        "",
        why="who waits for the end of what the other says waits forever",
        killed_by=("tests/native/test_relays.py::test_a_half_close_is_passed_on_after_what_came_before_and_answers_go_back",)),
)

MUTATIONS: tuple[Mutation, ...] = (*LAUNCHER, *CHANNEL, *SHADOW, *RUNTIME, *CLASSADS, *RELAYS)
