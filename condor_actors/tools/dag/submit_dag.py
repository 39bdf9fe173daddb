"""condor_submit_dag: submit the job that runs a DAG.

The DAG is read first, so its mistakes are told here and nothing is submitted.  The job is one of the scheduler
universe: condor_dagman, as a submit description beside the DAG file has it.

**Source**: the manual, condor_submit_dag.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from condor_actors.config import Config
from condor_actors.cores.argument_quoting import join_raw
from condor_actors.dag.definitions import Dag, Kind
from condor_actors.dag.errors import DagError
from condor_actors.dag.reader import read_dag, refuse_cycle
from condor_actors.dag.rescue import later_rescues, newest_rescue
from condor_actors.dag.scope import Reading
from condor_actors.submit.quoting import parse_environment
from condor_actors.tools.dag.dag_files import DagFiles, named_state, read_text
from condor_actors.tools.dag.dag_flags import SHARED, DagOptions, inherited_words, options_of
from condor_actors.tools.dag.node_description import folder_of
from condor_actors.tools.dag.run_files import replace_file
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.lib.submit_files import check_name
from condor_actors.tools.pool.version import version_line

FLAGS = (
    Flag("no_submit", 4),
    Flag("append", 1, 1),
    Flag("insert_sub_file", 8, 1),
    Flag("config", 1, 1),
    Flag("remote", 1, 1),
    Flag("no_recurse", 4),
    Flag("do_recurse", 4),
    Flag("valgrind", 3, refused="condor_dagman is no native program; see with 'py-spy dump' what it does"),
    Flag("schedd-daemon-ad-file", 8, 1, refused="the schedd of this machine, or -remote NAME, is submitted to"),
    Flag("schedd-address-file", 8, 1, refused="the schedd of this machine, or -remote NAME, is submitted to"),
    *SHARED,
)
LINE = "-" * 71
GETENV = ("CONDOR_CONFIG,_CONDOR_*,PATH,PYTHONPATH,PERL*,PEGASUS_*,TZ,HOME,USER,LANG,LC_ALL,ASAN_OPTIONS,LSAN_OPTIONS,"
          "BEARER_TOKEN,BEARER_TOKEN_FILE")
DEFAULT_REMOVE = "( ExitSignal =?= 11 || (ExitCode =!= UNDEFINED && ExitCode >=0 && ExitCode <= 2))"
REMOVAL_S = 86400
"""How long a DAG that is removed has for its final node."""


def main() -> int:
    """Entry of ``condor_submit_dag``."""
    return run(FLAGS, "condor_submit_dag", _answer, words=Words(
        unknown="ERROR: unknown option {word}\n{usage}", missing="ERROR: {word} argument needs a value\n{usage}"))


def _answer(given: Sequence[Given]) -> int:
    own = {"append", "insert_sub_file", "config", "remote", "no_submit", "no_recurse", "do_recurse"}
    options = options_of([item for item in given if item.name not in own])
    words = {item.name: item.values[0] if item.values else "" for item in given if item.name in own}
    appended = [item.values[0] for item in given if item.name == "append"]
    if not options.files:
        raise ToolError(f"ERROR: no dag file specified; aborting.\n{reminder_of('condor_submit_dag')}")
    config = load("DAGMAN")
    for path in options.files:
        check_name(path)
    files = DagFiles(options.primary, len(options.files) > 1, options.texts.get("outfile_dir", ""))
    dag = _read(options, config)
    if words.get("config"):
        if dag.config and os.path.abspath(dag.config) != os.path.abspath(words["config"]):
            raise ToolError(f"ERROR: -config {words['config']} conflicts with CONFIG {dag.config} in a DAG file")
        dag.config = words["config"]
    if dag.config and not os.access(dag.config, os.R_OK):
        raise ToolError(f"ERROR: Can't read DAGMan config file: {dag.config}")
    if "do_recurse" in words and _recurse(dag, options):
        raise ToolError("Recursive submit(s) failed; exiting without attempting top-level submit")
    _clear_the_way(options, files, config)
    text = description(options, files, dag, config, appended, words.get("insert_sub_file", ""))
    replace_file(files.submit_file, [text])
    return _submit(files, words)


def _read(options: DagOptions, config: Config) -> Dag:
    """The DAG, when it can be run."""
    try:
        dag = read_dag(options.files, Reading(
            read_text, any_characters=config.boolean("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS"),
            joins=config.boolean("DAGMAN_USE_JOIN_NODES"), own_folders="usedagdir" in options.switches),
            munges=config.boolean("DAGMAN_MUNGE_NODE_NAMES"))
        refuse_cycle(dag)
        if dag.rejected is not None:
            raise DagError(dag.rejected, "the DAG is marked with REJECT", "take the line out to run it")
    except DagError as error:
        raise ToolError(f"ERROR: {error}") from None
    for sentence in dag.warnings:
        print(f"WARNING: {sentence}", file=sys.stderr)
    return dag


def _recurse(dag: Dag, options: DagOptions) -> bool:
    """Make the submit files of the SUBDAGs; whether one failed."""
    for node in dag.nodes:
        if node.kind is Kind.SUBDAG:
            command = [sys.executable, "-m", "condor_actors.tools.dag.submit_dag", "-no_submit", "-update_submit",
                       "-do_recurse", *inherited_words(options), node.description]
            if subprocess.run(command, cwd=folder_of(node, os.getcwd()), check=False).returncode:
                return True
    return False


def _clear_the_way(options: DagOptions, files: DagFiles, config: Config) -> None:
    """Files of an earlier run: removed with -force, else in the way, unless it goes on.

    Raises:
        ToolError: one is in the way.
    """
    number = options.numbers.get("dorescuefrom", 0)
    beside = files.beside()
    if "force" in options.switches:
        kept = files.nodes_log if "dorecovery" in options.switches else ""  # the run is made anew of it
        for path in (files.submit_file, files.lib_out, files.lib_err, files.log, files.lock, files.journal,
                     files.nodes_log, files.metrics, files.halt):
            if os.path.lexists(path) and path != kept:
                os.unlink(path)
        for path in later_rescues(beside, files.primary, 0, several=files.several):
            os.rename(path, path + ".old")
        return
    if number:
        if not os.path.exists(files.rescue(number)):
            raise ToolError(f"ERROR: -dorescuefrom {number} specified, but rescue DAG file {files.rescue(number)} does "
                            "not exist!")
        for path in later_rescues(beside, files.primary, number, several=files.several):
            os.rename(path, path + ".old")
        return
    named = named_state(options, files)
    if named and not os.path.exists(named):
        raise ToolError(f"ERROR: {named} does not exist, from which the DAG is to go on")
    if "rescuefile" in options.texts:
        for path in later_rescues(beside, files.primary, files.rescue_number(named), several=files.several):
            os.rename(path, path + ".old")
    if named or {"update_submit", "dorecovery"} & options.switches:
        return
    automatic = config.boolean("DAGMAN_AUTO_RESCUE") if options.auto_rescue is None else options.auto_rescue
    newest = newest_rescue(beside, files.primary, config.integer("DAGMAN_MAX_RESCUE_NUM"), several=files.several)
    if automatic and newest:
        print(f"Running rescue DAG {newest}")
        return
    if os.path.exists(files.journal):  # a run that was killed: it goes on
        return
    there = [path for path in (files.submit_file, files.lib_out, files.lib_err, files.log) if os.path.lexists(path)]
    if there:
        said = "".join(f'ERROR: "{path}" already exists.\n' for path in there)
        raise ToolError(f"{said}\nSome file(s) needed by condor_dagman already exist. Either:\n- Rename them\n"
                        '- Use the "-f" option to force them to be overwritten\n\tor\n'
                        '- Use the "-update_submit" option to update the submit file and continue.')


def description(options: DagOptions, files: DagFiles, dag: Dag, config: Config, appended: Sequence[str],
                inserted: str) -> str:
    """The submit description of the DAG's own job."""
    names = list(options.environment_names) + dag.environment_names
    more = config.text("DAGMAN_MANAGER_JOB_APPEND_GETENV") or ""
    getenv = "true" if more.lower() == "true" or "import_env" in options.switches else ",".join(
        [GETENV, *names, *([more] if more else [])])
    executable = os.path.abspath(options.texts["dagman"]) if "dagman" in options.texts else program("condor_dagman")
    lines = [
        f"# Filename: {files.submit_file}", f"# Generated by condor_submit_dag {' '.join(options.files)} ",
        "universe    = scheduler", f"executable  = {executable}", f"getenv      = {getenv}",
        f"output      = {files.lib_out}", f"error       = {files.lib_err}", f"log         = {files.log}",
    ]
    batch = options.texts.get("batch-name") or f"{os.path.basename(options.primary)}+$(cluster)"
    lines.append(f'My.JobBatchName = "{batch}"')
    lines += [
        "remove_kill_sig = SIGUSR1", f"job_max_vacate_time = {REMOVAL_S}",
        'My.OtherJobRemoveRequirements = "DAGManJobId =?= $(cluster)"',
        "# Note: default on_exit_remove expression:", f"# {DEFAULT_REMOVE}",
        "# attempts to ensure that DAGMan is automatically", "# requeued by the schedd if it",
        "# exits abnormally or is killed (e.g., during a reboot).",
        f"on_exit_remove = {config.needed_text('DAGMAN_ON_EXIT_REMOVE')}",
        f"arguments = {quoted(_arguments(options))}", f"environment = {quoted(_environment(options, files, dag))}",
    ]
    if "notification" in options.texts:
        lines.append(f"notification = {options.texts['notification']}")
    inserted = inserted or config.text("DAGMAN_INSERT_SUB_FILE") or ""
    if inserted:
        lines += read_text(inserted).splitlines()
    lines += [f"My.{name} = {value}" for name, value in dag.attributes.items()]
    return "\n".join([*lines, *appended, "queue"]) + "\n"


def _arguments(options: DagOptions) -> list[str]:
    """The command line of condor_dagman."""
    words = ["-p", "0", "-f", "-l", "."]
    if "debug" in options.numbers:
        words += ["-Debug", str(options.numbers["debug"])]
    words += ["-Lockfile", options.texts.get("lockfile", DagFiles(options.primary).lock)]
    for file in options.files:
        words += ["-Dag", file]
    for name, spelled in (("maxidle", "-MaxIdle"), ("maxjobs", "-MaxJobs"), ("maxpre", "-MaxPre"),
                          ("maxpost", "-MaxPost"), ("priority", "-Priority"), ("dorescuefrom", "-DoRescueFrom")):
        if name in options.numbers:
            words += [spelled, str(options.numbers[name])]
    if "dorecovery" in options.switches:
        words.append("-DoRecov")
    words += ["-CsdVersion", version_line()]
    for name, spelled in (("load_save", "-load_save"), ("rescuefile", "-RescueFile")):
        if name in options.texts:
            words += [spelled, options.texts[name]]
    return words + [word for word in inherited_words(options) if word != "-Force"]


def _environment(options: DagOptions, files: DagFiles, dag: Dag) -> list[str]:
    """Variables of the DAG's own job, ``NAME=VALUE``."""
    variables: dict[str, str] = {}
    for text in options.environment:
        delimiter = text[:1] if text and not (text[0].isalnum() or text[0] == "_") else ";"
        pairs = text.lstrip(delimiter).split(delimiter)
        variables.update((name, value) for name, _, value in (pair.partition("=") for pair in pairs) if name)
    for text in dag.environment:
        variables.update(parse_environment(text))
    variables |= {"_CONDOR_DAGMAN_LOG": files.out, "_CONDOR_MAX_DAGMAN_LOG": "0"}
    if dag.config:
        variables["_CONDOR_DAGMAN_CONFIG_FILE"] = os.path.abspath(dag.config)
    return [f"{name}={value}" for name, value in variables.items()]


def quoted(words: Sequence[str]) -> str:
    """Words as a value of the submit language in its new quoting."""
    return '"' + join_raw(words).replace('"', '""') + '"'


def program(name: str) -> str:
    """The path of an installed command: beside the one that runs, else where the system finds it."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)
    for path in (beside, os.path.join(sys.prefix, "bin", name)):
        if os.access(path, os.X_OK):
            return path
    return shutil.which(name) or name


def _submit(files: DagFiles, words: dict[str, str]) -> int:
    print(f"\n{LINE}")
    for what, path in (("File for submitting this DAG to HTCondor", files.submit_file),
                       ("Log of DAGMan debugging messages", files.out),
                       ("Log of HTCondor library output", files.lib_out),
                       ("Log of HTCondor library error messages", files.lib_err),
                       ("Log of the life of condor_dagman itself", files.log)):
        print(f"{what:<51}: {path}")
    print(flush=True)
    if "no_submit" in words:
        print("-no_submit given, not submitting DAG to HTCondor. You can do this with:\n"
              f'"condor_submit {files.submit_file}"')
        print(LINE)
        return 0
    remote = ["-remote", words["remote"]] if words.get("remote") else []
    submit = [sys.executable, "-m", "condor_actors.tools.jobs.submit"]
    done = subprocess.run([*submit, *remote, files.submit_file], check=False)
    if done.returncode:
        raise ToolError("ERROR: condor_submit failed; aborting.")
    print(LINE)
    return 0



if __name__ == "__main__":
    sys.exit(main())
