"""``condor_annex slurm | list | stop``: machines of a Slurm cluster as members of the pool, for a time.

Theory: an annex is a job array in Slurm, of an ordinary user.  Each element starts a startd of ours that joins the pool
with a token of its own and leaves before its time is over (:mod:`condor_actors.tools.admin.annex_script`).  Nothing is
installed there and nobody is root; what lies in the annex's folder is all there is to it.

**Source**: Frey et al., "Condor-G: A Computation Management Agent for Multi-Institutional Grids", section 6 (glide-in).
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from condor_actors.own_files import stranger_in
from condor_actors.tools.admin.annex_script import AnnexPlan, script_of
from condor_actors.tools.lib.command import framed
from condor_actors.tools.manual.described_parser import DescribedParser
from condor_actors.tools.pool.owner import span_s

if TYPE_CHECKING:
    from condor_actors.config import Config

__all__ = ["main"]

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
LEAST_S = 60.0
MOST = 1000
TOKEN = "condor_pool token --roles master,startd --stay 9h"
LATE_S = 600.0
"""A machine's certificate outlives its time by so much: it has to say goodbye."""
COMMAND_S = 60.0


class AnnexError(Exception):
    """Why not, for the person at the terminal."""


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_annex``; the exit status."""
    from condor_actors.config import ConfigError, load_config
    from condor_actors.tools.admin.pool import PoolToolError
    from condor_actors.wire.certificates.authority import AuthorityError
    from condor_actors.wire.nodes import BadNode
    from condor_actors.wire.tokens import BadToken

    options = command_parser().parse_args(words)
    commands = {"slurm": _slurm, "list": _list, "stop": _stop}
    try:
        commands[options.command](options, load_config(subsystem="TOOL"))
    except (AnnexError, AuthorityError, BadNode, BadToken, ConfigError, PoolToolError) as error:
        print(f"condor_annex: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"condor_annex: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def command_parser() -> argparse.ArgumentParser:
    """The reader of its words."""
    parser = DescribedParser(prog="condor_annex")
    commands = parser.add_subparsers(dest="command", required=True, metavar="slurm|list|stop")
    text = "have Slurm start machines that join the pool, run its jobs for a time, and leave"
    slurm = commands.add_parser("slurm", help=text, description=text)
    slurm.add_argument("--count", type=_count, default=1, metavar="N", help="how many (default 1)")
    slurm.add_argument("--lifetime", type=_span, default=8 * 3600.0, metavar="TIME",
                       help="how long each stays, from its start on (default 8h)")
    slurm.add_argument("--name", type=_name, metavar="NAME", help="of the annex (default annex1, annex2 …)")
    slurm.add_argument("--cpus", type=_count, default=1, metavar="N", help="of each machine (default 1)")
    slurm.add_argument("--memory", metavar="SIZE", help="of each machine, as sbatch takes it (4G)")
    slurm.add_argument("--partition", metavar="NAME", help="of Slurm's")
    slurm.add_argument("--account", metavar="NAME", help="who pays in Slurm")
    slurm.add_argument("--tokens", type=Path, metavar="FILE",
                       help="tokens for it, one a line (condor_pool token --roles master,startd --stay TIME); - reads "
                       "them from standard input; without this they are made here, by the pool's authority")
    slurm.add_argument("--wait", type=_span, default=86400.0, metavar="TIME",
                       help="tokens made here count for so long, until which Slurm must have begun (default 24h)")
    text = "show the annexes of yours, and what Slurm says of their machines"
    _in(slurm)
    _in(commands.add_parser("list", help=text, description=text))
    text = "have an annex's machines leave now: jobs are vacated, with their checkpoints"
    stop = commands.add_parser("stop", help=text, description=text)
    stop.add_argument("name", metavar="NAME", type=_name, help="of the annex")
    _in(stop)
    return parser


def _in(command: argparse.ArgumentParser) -> None:
    command.add_argument("--folder", type=Path, default=Path("~/.condor-annex"), metavar="DIR",
                         help="where annexes' scripts, tokens and logs are, on a file system that the machines of "
                         "Slurm see under the same path (default ~/.condor-annex)")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:6]) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MOST}")
    return int(text)


def _span(text: str) -> float:
    seconds = span_s(text)
    if seconds is None or not LEAST_S <= seconds <= 365 * 86400.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time of 1m or more; expected 8h, 90m or 2d")
    return seconds


def _name(text: str) -> str:
    if NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no name: up to 30 small letters, digits and hyphens")
    return text


# ---- slurm


def _lending(config: Config) -> str:
    """What a machine has to know so that it runs jobs of partners, too: as this one's configuration says it."""
    known = ((name, config.text(name)) for name in ("FLOCK_FROM", "GATEWAY_HOST"))
    return "".join(f"{name} = {' '.join(value.split())}\n" for name, value in known if value)


def _slurm(options: argparse.Namespace, config: Config) -> None:
    """Write the folder, and hand the array to Slurm."""
    if os.geteuid() == 0:
        raise AnnexError(f"root's jobs in Slurm would run as root: make {options.count} tokens here ({TOKEN}), and "
                         "give them with --tokens as an ordinary user")
    tokens = _tokens(options, config)
    root = _own_folder(options.folder)
    folder = root / (options.name or _free_name(root))
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        raise AnnexError(f"{folder} exists: there is an annex of that name (condor_annex stop {folder.name})") from None
    plan = AnnexPlan(name=folder.name, folder=folder, python=sys.executable, lifetime_s=options.lifetime,
                     lending=_lending(config))
    try:
        (folder / "tokens").mkdir(0o700)
        for index, token in enumerate(tokens, 1):
            with os.fdopen(os.open(folder / "tokens" / str(index), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
                           "w", encoding="ascii") as file:
                file.write(token + "\n")
        script = folder / "machine.sh"
        script.write_text(script_of(plan), encoding="utf-8")
        number = _run(config, "sbatch", *_sbatch(options, plan), str(script)).partition(";")[0].strip()
        (folder / "slurm-job").write_text(f"{number}\n", encoding="ascii")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    print(f"{plan.name}: {options.count} machines for {options.lifetime / 3600:g} hours each, as job {number} of Slurm")
    print(f"condor_status -constraint 'AnnexName == \"{plan.name}\"' shows those that have joined; "
          f"condor_annex stop {plan.name} has them leave; their logs are in {folder}.")


def _sbatch(options: argparse.Namespace, plan: AnnexPlan) -> list[str]:
    words = ["--parsable", f"--job-name=condor-annex.{plan.name}", f"--array=1-{options.count}", "--nodes=1",
             "--ntasks=1", f"--cpus-per-task={options.cpus}", f"--time={math.ceil(options.lifetime / 60.0)}",
             "--no-requeue", f"--output={plan.folder}/log.%a", "--open-mode=append", "--chdir=/"]
    for name in ("memory", "partition", "account"):
        if getattr(options, name):
            words.append(f"--{'mem' if name == 'memory' else name}={getattr(options, name)}")
    return words


def _tokens(options: argparse.Namespace, config: Config) -> list[str]:
    """One token for each machine: given, or made.

    Raises:
        AnnexError: too few are given.
        AuthorityError: this is not where the pool's authority is.
    """
    from condor_actors.tools.admin.pool import make_token
    from condor_actors.wire.certificates.authority import PoolFiles
    from condor_actors.wire.tokens import Token

    files = PoolFiles.of(config)
    if options.tokens is None:
        if not files.ca_key.exists():
            raise AnnexError(f"the pool's authority is not here ({files.ca_key}): make {options.count} tokens on the "
                             f"central manager ({TOKEN}), and give them with --tokens")
        return [make_token(config, files, roles=("master", "startd"), life_s=options.wait,
                           stay_s=options.lifetime + LATE_S).text() for _ in range(options.count)]
    text = sys.stdin.read(1 << 20) if str(options.tokens) == "-" else options.tokens.read_text(encoding="ascii")
    found = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    for line in found:
        Token.parse(line)
    if len(found) < options.count:
        raise AnnexError(f"{options.tokens} has {len(found)} different tokens for {options.count} machines: each needs "
                         "one of its own")
    return found[:options.count]


def _own_folder(folder: Path) -> Path:
    """The folder of all annexes, which must be the user's own: who writes there has the tokens and runs programs."""
    folder = folder.expanduser().absolute()
    folder.mkdir(0o700, parents=True, exist_ok=True)
    problem = stranger_in(folder) or ("" if folder.stat().st_uid == os.geteuid() else f"{folder} is root's")
    if problem:
        raise AnnexError(f"{problem}, and with it what your machines in Slurm run; name another folder with --folder")
    return folder


def _free_name(root: Path) -> str:
    return next(name for number in range(1, 1_000_000) if not (root / (name := f"annex{number}")).exists())


def _run(config: Config, command: str, *words: str) -> str:
    """A command of Slurm's.

    Raises:
        AnnexError: it is not there, has failed, or does not answer.
    """
    where = config.text("SLURM_BINPATH")
    path = os.path.join(where, command) if where else shutil.which(command)
    if path is None or not os.access(path, os.X_OK):
        raise AnnexError(f"{command} is not in {where or 'PATH'} (SLURM_BINPATH names the folder of Slurm's commands)")
    environment = {name: value for name, value in os.environ.items() if name not in ("CONDOR_CONFIG", "SBATCH_EXPORT")}
    if config.text("SLURM_CONF"):
        environment["SLURM_CONF"] = str(config.text("SLURM_CONF"))
    try:
        done = subprocess.run([path, *words], env=environment, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=COMMAND_S)
    except subprocess.TimeoutExpired:
        raise AnnexError(f"{command} has not answered in {COMMAND_S:.0f} s; whether it has done it, "
                         "squeue tells") from None
    if done.returncode != 0:
        raise AnnexError(f"{command}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout


# ---- list, stop


def _list(options: argparse.Namespace, config: Config) -> None:
    """Each annex with what Slurm says."""
    root = options.folder.expanduser()
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        number = _number_of(folder)
        if number:
            unused = len(list((folder / "tokens").glob("*")))
            print(f"{folder.name:<24} Slurm job {number:<10} {_states(config, number):<30} {unused} not joined yet")


def _states(config: Config, number: str) -> str:
    """How many machines are in which state; those that Slurm has forgotten are over."""
    try:
        said = _run(config, "squeue", "--noheader", "--array", f"--jobs={number}", "--format=%T").split()
    except AnnexError as error:
        return "over" if "nvalid job id" in str(error) else f"unknown: {error}"
    counted = {state: said.count(state) for state in sorted(set(said))}
    return ", ".join(f"{count} {state.lower()}" for state, count in counted.items()) or "over"


def _number_of(folder: Path) -> str:
    """The number of an annex's job in Slurm; empty: this is no annex's folder."""
    try:
        text = (folder / "slurm-job").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if text.isdecimal() else ""


def _stop(options: argparse.Namespace, config: Config) -> None:
    """Those that wait are cancelled; those that run leave; the folder goes when Slurm has none of them any more."""
    folder = options.folder.expanduser() / options.name
    number = _number_of(folder)
    if not number:
        raise AnnexError(f"there is no annex {options.name} in {folder.parent} (condor_annex list)")
    for token in (folder / "tokens").glob("*"):
        token.unlink(missing_ok=True)
    state = _states(config, number)
    if state.startswith("unknown"):
        raise AnnexError(f"{state.partition(': ')[2]}; its tokens are gone, so no more machines join")
    if state == "over":
        shutil.rmtree(folder)
        print(f"{options.name}: it is over; its folder is removed")
        return
    _run(config, "scancel", "--quiet", "--state=PENDING", number)
    _run(config, "scancel", "--quiet", "--batch", "--signal=TERM", number)
    print(f"{options.name}: its machines leave, and vacate what runs on them; say this once more when they are gone to "
          "remove its folder")


if __name__ == "__main__":
    sys.exit(main())
