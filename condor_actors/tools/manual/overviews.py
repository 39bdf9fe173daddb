"""The pages that are about more than one command: condor(1), condor_control(8) and condor_config(5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from condor_actors.config.parameters import sections
from condor_actors.config.reference import facts
from condor_actors.tools.manual.help_text import sentence
from condor_actors.tools.manual.lookup import described
from condor_actors.tools.manual.pages import admin, dag, jobs, live, pool, programs, runs, tokens
from condor_actors.tools.manual.roff import escaped, head, item, literal, paragraph, section, see_also

OF_USERS: Mapping[str, tuple[str, ...]] = {
    "Jobs": tuple(page.name for page in (*jobs.PAGES, *runs.PAGES)),
    "Workflows": tuple(page.name for page in dag.PAGES),
    "Machines, owners and the pool": tuple(page.name for page in pool.PAGES),
    "Live": tuple(page.name for page in live.PAGES),
    "Tokens": tuple(page.name for page in tokens.PAGES),
    "Other programs": tuple(page.name for page in programs.PAGES),
    "Administration": tuple(page.name for page in admin.PAGES),
}
FILES: Mapping[str, str] = {
    "/etc/condor/condor_config": "the configuration of the machine, as condor_config(5) says",
    "/etc/condor/pool": "the certificates of the machine, and on the central manager the pool's authority",
    "~/.condor/personal": "a pool of one's own, as condor_personal makes it",
    "~/.condor/tokens.d": "one's tokens",
}
EVERYDAY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Make a pool": (
        "On the first machine, condor_pool create makes the pool's authority and configures the machine as the central "
        "manager; condor_master starts its daemons. condor_pool token prints what lets one machine in, and condor_pool "
        "join makes it a member.", ("condor_pool create --name physics --interface 10.0.0.1", "condor_master",
                                    "condor_pool token")),
    "Start and stop": (
        "condor_master keeps the daemons of DAEMON_LIST running; condor_on, condor_off and condor_restart tell masters "
        "what to do with them, on this machine, on others, or on all of the pool.",
        ("condor_off -peaceful -startd -name desk7", "condor_on -name desk7")),
    "Change the configuration": (
        "condor_config check judges a file before it is in force; condor_reconfig has the daemons read it. "
        "condor_config_val shows what holds and where it was set.",
        ("condor_config check new.config", "condor_reconfig -all", "condor_config_val -verbose START")),
    "Take a machine out": (
        "condor_drain lets a machine finish its jobs; condor_vacate has it let go of them; condor_reserve keeps "
        "machines for a user. A machine's owner uses condor_owner.", ("condor_drain -reason disk desk7",
                                                              "condor_drain -cancel desk7")),
    "Decide who gets how much": (
        "condor_userprio shows and sets priorities, factors, floors and ceilings; groups and their quotas are in the "
        "configuration.", ("condor_userprio -setfactor alice@physics 100",)),
    "Look into what goes on": (
        "condor_status shows machines and daemons, condor_who those of this machine, condor_ping who may do what, "
        "condor_manhole the inside of a daemon.", ("condor_status -schedd", "condor_who -daemons",
                                                   "condor_ping -type schedd ALL")),
    "Work with other pools": (
        "condor_flock says which other pools this one trusts and on which terms they lend each other machines.",
        ("condor_flock list",)),
    "Have more machines for a time": (
        "condor_annex has a Slurm cluster start machines that join the pool and leave again.",
        ("condor_annex slurm --count 20 --lifetime 8h", "condor_annex list")),
}


def pages() -> Iterator[tuple[str, int, str]]:
    """Each page: its name, its section, and its text."""
    for name, number, lines in (("condor", 1, _condor()), ("condor_control", 8, _control()),
                                ("condor_config", 5, _configuration())):  # fmt: skip
        yield name, number, "\n".join(lines) + "\n"


def _purposes(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        page = described()[name]
        yield from item(f"\\fB{literal(name)}\\fR({page.section})", sentence(page.purpose))


def _condor() -> Iterator[str]:
    yield from head("condor", 1, "a pool of workstations for long jobs")
    yield ".SH DESCRIPTION"
    yield from paragraph(
        "Condor turns idle workstations into one pool for long jobs and gives each machine back the moment its "
        "owner touches it. A user describes jobs in a file, condor_submit(1) queues them, and condor_q(1) shows "
        "how they stand. The pool finds machines, runs the jobs, moves them when an owner returns, and sees them "
        "through to their end.")
    yield from paragraph(
        "Each machine runs a condor_master(8), which keeps the daemons that it needs: a schedd where jobs are "
        "queued, a startd where they run, and on the central manager the collector, which knows all machines, and "
        "the negotiator, which gives them to users by their priorities.")
    yield ".SH COMMANDS"
    for title, names in OF_USERS.items():
        yield f".SS {escaped(title)}"
        yield from _purposes(names)
    yield ".SH COMMON OPTIONS"
    yield from paragraph(
        "Options of most commands may be shortened as long as they stay distinct, and take one dash or two. -help "
        "lists the options of a command, -version prints the version, -name NAME asks another daemon of its kind, "
        "and -pool HOST another pool.")
    yield from section("FILES", _entries(FILES))
    yield from section("SEE ALSO", see_also(("condor_submit(1)", "condor_q(1)", "condor_status(1)", "condor_control(8)",
                                             "condor_config(5)")))


def _control() -> Iterator[str]:
    yield from head("condor_control", 8, "running machines and pools: an overview")
    yield ".SH DESCRIPTION"
    yield from paragraph(
        "What administrators do, and with which commands. All of them may be given anywhere in the pool by those "
        "who have the level ADMINISTRATOR; on a machine itself root has it.")
    yield ".SH TASKS"
    for title, (text, examples) in EVERYDAY.items():
        yield f".SS {escaped(title)}"
        yield from paragraph(text)
        yield from (".PP", ".RS", ".nf", *(literal(example) for example in examples), ".fi", ".RE")
    yield ".SH COMMANDS"
    yield from _purposes(name for name, page in described().items() if page.section == 8)
    yield from section("FILES", _entries(FILES))
    yield from section("SEE ALSO", see_also((
        "condor(1)", "condor_config(5)", "condor_master(8)", "condor_pool(8)", "condor_config_val(1)")))


def _entries(entries: Mapping[str, str]) -> list[str]:
    return [line for name, text in entries.items() for line in item(f"\\fI{literal(name)}\\fR", sentence(text))]


def _configuration() -> Iterator[str]:
    yield from head("condor_config", 5, "the configuration of a machine of a pool")
    yield ".SH DESCRIPTION"
    yield from paragraph(
        "The configuration is read from the file that CONDOR_CONFIG names, or /etc/condor/condor_config, and then "
        "from the files of LOCAL_CONFIG_DIR in the order of their names. The later setting of a parameter wins, "
        "and an environment variable _CONDOR_NAME over all of them.")
    yield from paragraph(
        "NAME = VALUE sets a parameter; names may be written in small letters too. VALUE may use $(OTHER), and a "
        "line that ends with a backslash goes on. SCHEDD.NAME = VALUE is for the schedd alone. \"use CATEGORY : "
        "TEMPLATE\" stands for a set of settings, and if, elif, else and endif choose among lines. A # begins a "
        "comment.")
    yield from paragraph(
        "condor_config_val(1) shows what holds and where it was set, condor_config(8) judges a file before it is "
        "in force, and condor_reconfig(8) has the daemons read it.")
    for title, rows in sections().items():
        yield f'.SH "{escaped(title.upper())}"'
        for row in sorted(rows, key=lambda each: each.name):
            yield from item(f"\\fB{literal(row.name)}\\fR", row.doc)
            told = "; ".join(f"{name}: {text}" for name, text in facts(row))
            yield from (".br", escaped(sentence(told)))
    yield from section("FILES", _entries({"/etc/condor/condor_config": "the first file of the configuration"}))
    yield from section("SEE ALSO", see_also((
        "condor(1)", "condor_config_val(1)", "condor_config(8)", "condor_control(8)", "condor_reconfig(8)")))
