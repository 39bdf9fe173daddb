"""Files of a run that transfer plugins bring or take: one program after the other, as the job's account, in its folder.

Theory: a plugin, a job's own above all, is confined like the job, runs in its control group, and has hardly any
environment.  It works in the scratch directory, so that is lent to the job's account while it runs, and taken back when
none of its processes is left: what is looked at afterwards nobody changes.  What it says of itself is read like
anything that a job has left there.  It may use as much disk as the job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.cores.transfer_plugins import Plugin, PluginTable, failure_of, orders_of, words_for
from condor_actors.daemons.starter.own_program import ProgramEnd, launch_for, sentence
from condor_actors.machine.run.launch import LaunchPlan
from condor_actors.machine.run.plugin_query import SEALED_PATH
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.sandbox import PLUGIN_FILES, Sandbox
from condor_actors.messages.references.urls import shown_url

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["PluginTransfers", "plugins_of"]

MOST_RESULTS_BYTES = 4 << 20
MOST_SAID_BYTES = 8192
STRAGGLER_S = (0.01, 0.05, 0.2, 1.0)
TOLD, TELLS, SAID = PLUGIN_FILES
Files = list[tuple[str, str]]
"""(URL, path in the scratch directory) of each."""


def plugins_of(starter: Starter) -> PluginTable:
    """The plugins of the machine, and those of the job before them."""
    return starter.edges.plugins.table.with_own(starter.spec.plugins)


class PluginTransfers:
    """Brings files, or takes them.

    Args:
        starter: whose run it is.
        files: (plugin, URL, absolute path here) of each.
        upload: they are taken.
        wanted: whether the run still is where it wants them.
        done: called with a reason and the exit status of the plugin that failed; with an empty one when all are there.
    """

    def __init__(self, starter: Starter, files: Sequence[tuple[Plugin, str, str]], *, upload: bool,
                 wanted: Callable[[], bool], done: Callable[[str, int], None]) -> None:
        self._starter, self._upload = starter, upload
        self._wanted, self._done = wanted, done
        self._calls: list[tuple[Plugin, Files]] = []
        self._tries = 0
        self._late, self._over = False, ""
        together: dict[str, Files] = {}
        for plugin, url, path in files:
            if plugin.several and plugin.path in together:
                together[plugin.path].append((url, path))
                continue
            made = [(url, path)]
            self._calls.append((plugin, made))
            if plugin.several:
                together[plugin.path] = made

    def go_on(self) -> None:
        """Start the next plugin, beside the reactor up to its launch."""
        if not self._wanted():
            return
        if not self._calls:
            self._done("", 0)
            return
        plugin, files = self._calls[0]
        sandbox = self._sandbox()
        starter = self._starter
        self._tries, self._late, self._over = 0, False, ""

        def ready() -> int:
            sandbox.clear_files(PLUGIN_FILES)
            starter.edges.make_places(sandbox, self._spec(plugin))
            told = sandbox.make_file(TOLD, 0o600)
            try:
                with open(told, "wb", closefd=False) as stream:
                    stream.write(orders_of(files))
            finally:
                os.close(told)
            said = sandbox.make_file(SAID, 0o600)
            try:
                sandbox.lend()
            except BaseException:
                os.close(said)
                raise
            return said

        starter.context.defer_to_turn(starter.held.in_thread(ready), self._ready)

    def _sandbox(self) -> Sandbox:
        sandbox = self._starter.sandbox
        assert sandbox is not None
        return sandbox

    def _ready(self, result: Any) -> None:
        plugin, files = self._calls[0]
        if isinstance(result, Failure):
            result.trap(OSError)
            self._fail(f"{shown_url(files[0][0])}: {plugin.path} cannot be started: {result.value}", -1)
            return
        try:
            if self._wanted():
                launch_for(self._starter, self._plan(plugin, files, result), self._ended)
                self._watch_disk()
                run = self._starter.edges.settings.run
                self._starter.held.deadline = self._starter.edges.reactor.callLater(
                    run.fetch_s, self._starter.context.as_turn(self._too_late))
        except OSError as error:
            self._look_back(f"{shown_url(files[0][0])}: {plugin.path} cannot be started: {error}", -1)
        finally:
            os.close(result)

    def _plan(self, plugin: Plugin, files: Files, said: int) -> LaunchPlan:
        starter, edges, folder = self._starter, self._starter.edges, self._sandbox().path
        spec = self._spec(plugin)
        account = starter.account or edges.host.own_account
        environment = {name: value for name, value in spec.environment.items()
                       if plugin.name and name.upper().startswith(f"{plugin.name}_")}
        environment |= {
            "PATH": SEALED_PATH, "HOME": folder, "TMPDIR": folder, "USER": account.name, "LOGNAME": account.name,
            "_CONDOR_JOB_AD": f"{folder}/.job.ad", "_CONDOR_MACHINE_AD": f"{folder}/.machine.ad",
            "_CONDOR_SCRATCH_DIR": folder, MARK: f"{edges.root.path}:{starter.run_id}"}
        program = os.path.join(folder, plugin.path)
        words = words_for(plugin, files, upload=self._upload, told=f"{folder}/{TOLD}", tells=f"{folder}/{TELLS}")
        claim = starter.claim
        bare = LaunchPlan(
            program=program, arguments=words, environment=environment, directory=folder, stdin=edges.host.null,
            stdout=said, stderr=said, account=starter.account,
            cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
            limits=edges.limits(spec, claim, account) | {"core": "0"})
        return edges.confined(bare, spec, self._sandbox(), claim.devices.others)

    def _spec(self, plugin: Plugin) -> RunSpec:
        """How it is confined: like the job, without its image; the machine's own plugins always have the network."""
        spec = self._starter.spec
        return attrs.evolve(spec, container=None, networking=spec.networking or not plugin.own)

    def _watch_disk(self) -> None:
        starter, bound = self._starter, self._starter.claim.disk
        if bound.watched:
            starter.edges.disk.begin(
                starter.run_id, bound, self._sandbox(), pids=starter.pids, stands=lambda _: None,
                used=starter.context.as_turn(lambda used_kib: self._too_much(bound.exceeded(used_kib))),
                makes_room=starter.context.as_turn(
                    lambda used_kib, floor_kib: self._too_much(bound.takes_room(used_kib, floor_kib)[0])))

    def _too_much(self, reason: str) -> None:
        if reason and not self._over:
            self._over = reason
            self._starter.held.kill()

    def _too_late(self) -> None:
        self._late = True
        self._starter.held.kill()

    def _ended(self, end: ProgramEnd) -> None:
        """The plugin has ended: what it has left running does not outlive it."""
        self._starter.held.end_deadline()
        if not self._wanted():
            return
        if self._starter.held.kill():
            delay_s = STRAGGLER_S[min(self._tries, len(STRAGGLER_S) - 1)]
            self._tries += 1
            self._starter.edges.reactor.callLater(delay_s, self._starter.context.as_turn(lambda: self._ended(end)))
            return
        self._starter.edges.disk.end(self._starter.run_id)
        plugin, files = self._calls[0]
        if self._over:
            self._look_back(f"{shown_url(files[0][0])}: {plugin.path}: {self._over}", -1)
        elif self._late:
            limit_s = self._starter.edges.settings.run.fetch_s
            self._look_back(f"{shown_url(files[0][0])}: {plugin.path} took more than {limit_s:g} s "
                            "(MAX_FILE_TRANSFER_PLUGIN_LIFETIME)", -1)
        elif end.reason:
            self._look_back(f"{shown_url(files[0][0])}: {plugin.path}: {end.reason}", -1)
        else:
            self._look_back("", end.status)

    def _look_back(self, reason: str, status: int) -> None:
        """Take the folder back, and read what the plugin says."""
        sandbox = self._sandbox()
        plugin, files = self._calls[0]

        def read() -> str:
            sandbox.take_back()
            said, results = _last(sandbox, SAID, MOST_SAID_BYTES), _last(sandbox, TELLS, MOST_RESULTS_BYTES)
            sandbox.clear_files(PLUGIN_FILES)
            why = reason or failure_of(plugin, files, status, results, said)
            if not why and not self._upload:
                gone = [path for _, path in files if not _is_there(sandbox, path)]
                if gone:
                    name = os.path.relpath(gone[0], sandbox.path)
                    why = f"{plugin.path} says that it has brought {name}, which is not there"
            return why

        self._starter.context.defer_to_turn(
            self._starter.held.in_thread(read), lambda result: self._looked_back(result, status))

    def _looked_back(self, result: Any, status: int) -> None:
        if isinstance(result, Failure):
            result.trap(OSError, ValueError)
            self._fail(f"what {self._calls[0][0].path} has left cannot be read: {result.value}", status)
        elif result:
            self._fail(result, status)
        else:
            self._calls.pop(0)
            self.go_on()

    def _fail(self, reason: str, status: int) -> None:
        self._calls.clear()
        if self._wanted():
            self._done(sentence(reason.encode(errors="replace")), status)


def _last(sandbox: Sandbox, name: str, most_bytes: int) -> str:
    """The end of a file that a plugin has written; empty: it has not."""
    try:
        return sandbox.read(name, -1, most_bytes)[1].decode(errors="replace")
    except FileNotFoundError:
        return ""


def _is_there(sandbox: Sandbox, path: str) -> bool:
    try:
        os.close(sandbox.open_own(path))
    except OSError:
        return False
    return True
