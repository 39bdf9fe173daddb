"""``condor_personal start [--dir DIR] [--slots N] [--config FILE] | env | status | stop``: a pool of one's own.

Separate daemons under one folder (``~/.condor/personal``), on loopback only, with certificates of their own. ``start``
waits until every daemon answers and the slots are in the collector: the master says so through ``NOTIFY_SOCKET``, the
collector through a subscription. ``stop`` leaves no process behind, be the master alive or not.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from condor_actors.config import ConfigError
from condor_actors.machine.supervisor.process_marks import (
    all_processes,
    command_line,
    environment_of,
    marked_processes,
    start_ticks,
)
from condor_actors.machine.supervisor.process_titles import ROOM
from condor_actors.own_files import open_own
from condor_actors.tools.lib.command import framed
from condor_actors.tools.lib.personal_setup import PersonalFiles, Setup, SetupError, default_folder
from condor_actors.tools.lib.ready_channel import ReadyChannel
from condor_actors.tools.manual.described_parser import DescribedParser
from condor_actors.wire.blocking import Client, WireError, connect

__all__ = ["main"]

START_S: Final = 90.0
ANSWER_S: Final = 10.0
PATIENCE: Final = 3
"""How often in a row a daemon may die while the pool starts."""

NOT_RUNNING: Final = 3
"""The exit status of ``status`` when no pool runs there."""


class PersonalError(Exception):
    """Why it did not work; one or more lines for the user."""


@framed
def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status is returned."""
    options = command_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    files = PersonalFiles(Path(options.dir).expanduser().absolute() if options.dir else default_folder())
    try:
        files.check_whose()
        if options.command == "start":
            return start(files, options.slots, options.config)
        if options.command == "env":
            return environment(files)
        if options.command == "status":
            return status(files)
        return stop(files, fast=options.fast)
    except (PersonalError, SetupError, ConfigError) as error:
        print(f"condor_personal: {error}", file=sys.stderr)
        return 1


def command_parser() -> argparse.ArgumentParser:
    """The reader of its words."""
    parser = DescribedParser(prog="condor_personal")
    commands = parser.add_subparsers(dest="command", required=True, metavar="start|env|status|stop")
    for name, text in (
        ("start", "start the pool, or find that it runs"),
        ("env", 'print the environment: eval "$(condor_personal env)"'),
        ("status", "say what runs; exit status 3 when nothing does"),
        ("stop", "stop the pool; its queue stays for the next start"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--dir", "-dir", metavar="DIR", help="the pool's folder (default ~/.condor/personal)")
        if name == "start":
            command.add_argument("--slots", "-slots", type=int, metavar="N", help="how many slots (one a core)")
            command.add_argument("--config", "-config", type=Path, metavar="FILE", help="more settings to keep")
        if name == "stop":
            command.add_argument("--fast", "-fast", action="store_true", help="do not let running jobs save anything")
    return parser


# ---- start


def start(files: PersonalFiles, slots: int | None, extra: Path | None) -> int:
    """Start the pool and wait until it serves."""
    began_s = time.monotonic()
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PersonalError(f"cannot make {files.folder}: {error.strerror}") from None
    with _alone(files):
        master = _master_pid(files)
        running = master is not None
        if master is not None and not _answers(files):
            raise PersonalError(f"the master (pid {master}) of the pool in {files.folder} runs, but does not answer; "
                                "the pool is left as it is. condor_personal stop ends it.")
        if not running:
            Setup(files=files, slots=slots, extra=extra, inhabited=bool(_left(files))).make()
            _check(files)
            print(f"Starting a personal pool in {files.folder}", flush=True)
            _start_master(files, began_s + START_S)
        count = _wait_for_slots(files, began_s + START_S)
    if running:
        print(f"The personal pool in {files.folder} runs already, with {count} slots.")
        if slots is not None and slots != count:
            print(f"To give it {slots} slots, stop it first.")
    else:
        print(f"It serves {count} slots, {time.monotonic() - began_s:.1f} s after the start.")
    chosen = "" if files.folder == default_folder() else f" --dir {shlex.quote(str(files.folder))}"
    if files.page:
        print(f"Its page:               {files.page}")
    print(f'Point the tools at it:  eval "$(condor_personal env{chosen})"')
    print("Then for example:       condor_submit job.sub; condor_q; condor_status")
    print(f"Stop it:                condor_personal stop{chosen}")
    return 0


def _check(files: PersonalFiles) -> None:
    """Refuse a configuration that daemons would refuse, before any is started."""
    config = files.load()
    problems = config.problems()
    if problems:
        raise PersonalError("the configuration cannot be used:\n" + "\n".join(f"  {each}" for each in problems))
    for slip in config.slips():
        if slip.nearest:
            print(f"Warning: {slip}", file=sys.stderr)


def _start_master(files: PersonalFiles, until_s: float) -> None:
    """Start a master and wait until it has started, or taken up, every daemon.

    When that fails, or is interrupted, what it has started goes; daemons that ran before, with their jobs, go on.
    """
    before = _left(files)
    with ReadyChannel("condor-personal") as channel:
        errors = files.log / "MasterLog.stderr"
        environ = {**os.environ, "CONDOR_CONFIG": str(files.config), "NOTIFY_SOCKET": channel.address}
        environ.pop("CONDOR_MASTER_SOCKET", None)
        with open(open_own(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "condor_actors.services", "master", *ROOM], env=environ, cwd="/",
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )
        try:
            _hear_ready(channel, process, files, until_s)
        except BaseException:
            if before:
                process.kill()  # asked to stop, it would stop all that it has taken up
                process.wait()
                _end({pid: name for pid, name in _left(files).items() if pid not in before}, signal.SIGTERM, 10.0)
            else:
                process.terminate()
                _stop_everything(files, fast=True)
            raise


def _hear_ready(channel: ReadyChannel, process: subprocess.Popen[bytes], files: PersonalFiles, until_s: float) -> None:
    """Show what the master says until it is ready."""
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            for line in channel.lines(descriptor, until_s):
                if line == "READY=1":
                    return
                if line.startswith("STATUS="):
                    print(f"  {line[7:]}", flush=True)
                elif line.startswith("X_FAILURES=") and int(line[11:]) >= PATIENCE:
                    raise PersonalError(f"a daemon does not start\n{_tails(files)}")
    except ProcessLookupError:
        raise PersonalError(f"the master did not start\n{_tails(files)}") from None
    except TimeoutError:
        raise PersonalError(f"the daemons did not answer within {START_S:g} s\n{_tails(files)}") from None
    finally:
        os.close(descriptor)


def _wait_for_slots(files: PersonalFiles, until_s: float) -> int:
    """Have the collector tell of slots until there are as many as were asked for."""
    from condor_actors.messages.advertise import AdKind, AdsChanged, SubscribeAds

    wanted = files.load().integer("NUM_SLOTS") if _serves_static_slots(files) else 1
    names: set[str] = set()
    try:
        with connect(files.socket("collector")) as client:
            client.tell("collector", SubscribeAds(ad_kinds=(AdKind.SLOT,), subscriber="tool"))
            while len(names) < wanted:
                message = client.receive(max(until_s - time.monotonic(), 0.001))
                if not isinstance(message, AdsChanged):
                    continue
                if message.snapshot:
                    names.clear()
                for change in message.changes:
                    (names.add if change.ad else names.discard)(change.name)
    except WireError as error:
        raise PersonalError(
            f"{len(names)} of {wanted} slots came into the pool before this: {error}\n{_tails(files)}"
        ) from None
    return len(names)


def _serves_static_slots(files: PersonalFiles) -> bool:
    """Whether nothing but NUM_SLOTS says how the machine is divided."""
    config = files.load()
    slots = config.text("PERSONAL_SLOTS")
    own = slots is not None and slots == config.text("NUM_SLOTS") and config.text("NUM_SLOTS_TYPE_1") is None
    return own and "STARTD" in (config.text("DAEMON_LIST") or "").upper()


def _tails(files: PersonalFiles) -> str:
    """The ends of what the daemons wrote."""
    parts = []
    for path in sorted(files.log.glob("*Log*")):
        lines = path.read_text(errors="replace").splitlines()[-8:]
        if lines:
            parts += [f"--- {path}", *lines]
    return "\n".join(parts)


# ---- env, status


def environment(files: PersonalFiles) -> int:
    """Print what points the tools at the pool."""
    if not files.config.exists():
        raise PersonalError(f"there is no pool in {files.folder}; condor_personal start makes one")
    print(f"export CONDOR_CONFIG={shlex.quote(str(files.config))};")
    tools = str(Path(sys.argv[0]).absolute().parent)
    known = os.environ.get("PATH", "").split(os.pathsep)
    if os.path.exists(os.path.join(tools, "condor_submit")) and tools not in known:
        print(f"export PATH={shlex.quote(os.pathsep.join([tools, *known]))};")
    return 0


def status(files: PersonalFiles) -> int:
    """Print what runs."""
    left = _left(files)
    if _master_pid(files) is None:
        print(f"No personal pool runs in {files.folder}.")
        if left:
            print(f"Daemons without a master: {_listed(left)}. condor_personal start takes them up, stop ends them.")
        return NOT_RUNNING
    from condor_actors.classads import ClassAd
    from condor_actors.messages.admin import Ping

    print(f"A personal pool runs in {files.folder}.")
    try:
        with connect(files.socket("master")) as client:
            pong = client.ask("admin", Ping())
    except WireError as error:
        raise PersonalError(f"its master does not answer: {error}") from None
    ad = ClassAd.from_bytes(pong.ad)
    print(f"  {'MASTER':<12}{'up':<10}pid {pong.pid}")
    for name in ad.get_str("DaemonList").split()[1:]:
        state = ad.get_str(f"{name}_State", "off")
        pid = ad.get_int(f"{name}_Pid", 0)
        print(f"  {name:<12}{state:<10}" + (f"pid {pid}" if pid else ""))
    if files.page:
        print(f"Its page: {files.page}")
    return 0


def _listed(processes: dict[int, str]) -> str:
    return ", ".join(f"{name} (pid {pid})" for pid, name in sorted(processes.items()))


# ---- stop


def stop(files: PersonalFiles, *, fast: bool) -> int:
    """Stop the pool, its master alive or not."""
    if not files.folder.is_dir():
        print(f"No personal pool runs in {files.folder}.")
        return 0
    with _alone(files):
        ran = _stop_everything(files, fast=fast)
    print(f"The personal pool in {files.folder} has stopped." if ran else f"No personal pool runs in {files.folder}.")
    return 0


def _stop_everything(files: PersonalFiles, *, fast: bool) -> bool:
    """End the master, then whatever is left; False when nothing ran."""
    master = _master_pid(files)
    if master is not None:
        _end({master: "MASTER"}, signal.SIGQUIT if fast else signal.SIGTERM, 60.0)
    ran = master is not None
    for number, patience_s in ((signal.SIGTERM, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
        left = _left(files)
        if not left:
            break
        ran = True
        _end(left, number, patience_s)
    left = _left(files)
    if left:
        raise PersonalError(f"these do not end: {_listed(left)}")
    return ran


def _end(processes: dict[int, str], number: int, patience_s: float) -> None:
    """Send a signal to processes and wait until all are gone, or until patience ends."""
    descriptors = []
    try:
        for pid in processes:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            descriptors.append(descriptor)
            try:
                signal.pidfd_send_signal(descriptor, number)
            except (ProcessLookupError, PermissionError):
                continue
        waiting = list(descriptors)
        until_s = time.monotonic() + patience_s
        while waiting and time.monotonic() < until_s:
            ended, _, _ = select.select(waiting, [], [], max(until_s - time.monotonic(), 0))
            waiting = [descriptor for descriptor in waiting if descriptor not in ended]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


# ---- what runs


def _master_pid(files: PersonalFiles) -> int | None:
    """The process id of the pool's living master."""
    try:
        client: Client = connect(files.socket("master"), timeout_s=5.0)
    except WireError:
        return next((pid for pid, name in _ours(files).items() if name == "master"), None)
    with client:
        from condor_actors.messages.admin import Ping

        try:
            pid = int(client.ask("admin", Ping(), timeout_s=ANSWER_S).pid)
        except WireError:
            pid = 0
        if client.local_peer() in ((pid, 0), (pid, os.geteuid())):  # others write to the folder of root's sockets
            return pid
        return next((pid for pid, name in _ours(files).items() if name == "master"), None)


def _answers(files: PersonalFiles) -> bool:
    """Whether the pool's master answers."""
    from condor_actors.messages.admin import Ping

    try:
        with connect(files.socket("master"), timeout_s=5.0) as client:
            client.ask("admin", Ping(), timeout_s=ANSWER_S)
    except WireError:
        return False
    return True


def _left(files: PersonalFiles) -> dict[int, str]:
    """Living processes of the pool, and what each is."""
    found = {**marked_processes(str(files.record)), **_ours(files)}
    return {pid: name for pid, name in found.items() if start_ticks(pid) is not None}


def _ours(files: PersonalFiles) -> dict[int, str]:
    """Processes of our services that were pointed at this pool's configuration."""
    wanted = b"CONDOR_CONFIG=" + os.fsencode(files.config)
    found = {}
    for pid in all_processes():
        words = command_line(pid)
        if "condor_actors.services" in words and wanted in environment_of(pid):
            found[pid] = words[words.index("condor_actors.services") + 1]
    return found


@contextmanager
def _alone(files: PersonalFiles) -> Iterator[None]:
    """Keep others from starting or stopping the same pool meanwhile."""
    with files.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
