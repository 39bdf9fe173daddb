"""What a run is launched with: its standard files, its environment, and the plan that the launcher carries out."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, Expr
from condor_actors.classads.language.expressions import stored
from condor_actors.cores.output_destinations import STDERR, STDOUT
from condor_actors.cores.starter.run_events import StartFailed
from condor_actors.cores.starter.run_spec import NULL, STDIN, environment_of
from condor_actors.daemons.starter.container_launch import contained, prepare_layers, seen_as, volumes_of
from condor_actors.daemons.starter.hooks.job_wrapper import wrapped, wrapper_of
from condor_actors.daemons.starter.interactive.tool_daemon import make_executable
from condor_actors.machine.run.job_manifest import record_inputs
from condor_actors.machine.run.launch import LaunchPlan
from condor_actors.machine.run.process_tree import MARK
from condor_actors.messages.codes import HoldCode

if TYPE_CHECKING:
    from condor_actors.daemons.starter.run_inputs import RunInputs
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["make_places", "niceness_of", "open_standard", "plan_of", "said_of", "start_failed",
           "starts_at_once", "variables_of"]

LACKS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.EROFS)
INPUT, OUTPUT, ERROR = "standard input", "standard output", "standard error"


class UnopenedFile(OSError):
    """A standard file that cannot be opened; ``hold_code``: of a job that is held for it."""

    def __init__(self, error: OSError, path: str, what: str, user: str) -> None:
        super().__init__(error.errno or 0, error.strerror or str(error), path)
        self.hold_code = HoldCode.UNABLE_TO_OPEN_INPUT if what == INPUT else HoldCode.UNABLE_TO_OPEN_OUTPUT
        self._what, self._user = what, user

    def __str__(self) -> str:
        return f"{self._user} cannot open {self.filename} as {self._what}: {self.strerror} (errno {self.errno})"


def start_failed(slot_name: str, error: BaseException | None) -> StartFailed:
    """The word on a program that could not be started on a slot, with why.

    What the machine lacks (room, descriptors, memory) is no fault of the job: it is tried elsewhere, and not held.
    """
    said = f"Error from {slot_name}: {error}"
    if isinstance(error, UnopenedFile):
        return StartFailed(said, error.hold_code, error.errno or 0)
    if isinstance(error, OSError) and error.errno in LACKS:
        return StartFailed(said, 0)
    return StartFailed(said)


def make_places(starter: Starter) -> None:
    """The last that is done in the scratch directory before it is the job's.

    Raises:
        OSError: there is no room, or something that came with the inputs is in the way.
    """
    spec, sandbox, edges, held = starter.spec, starter.sandbox, starter.edges, starter.held
    assert sandbox is not None
    edges.make_places(sandbox, spec)
    if spec.tool is not None and spec.transfers:
        make_executable(sandbox, spec.tool.program)
    if spec.manifest and not starter.core.checkpoints:
        record_inputs(sandbox, spec.manifest, variables_of(starter))
    if held.image is not None:
        prepare_layers(spec, sandbox, held.places.seen(held.image.path), volumes_of(edges, starter.job_ad))
    starter.chirp.leave_address(sandbox)
    starter.tokens.leave(sandbox)
    sandbox.lend()


def starts_at_once(starter: Starter, inputs: RunInputs) -> bool:
    """Whether nothing before the launch can wait for a file system or another process: a thread costs more.

    Its standard files are none, or in a scratch directory that has only what the pool has laid out there.
    """
    spec, sandbox, settings = starter.spec, starter.sandbox, starter.edges.settings
    assert sandbox is not None
    if (not sandbox.lends_at_once or starter.core.checkpoints or starter.held.image is not None or spec.manifest
            or spec.standard or spec.tool is not None or settings.hooks.hooks or starter.tokens.are_wanted):
        return False
    if spec.own_folders or (settings.private_folders and not spec.transfers):  # paths of the job's are followed
        return False
    files = {spec.stdin, spec.stdout, spec.stderr} - {NULL}
    return not files or (spec.transfers and inputs.are_plain and files <= {STDIN, STDOUT, STDERR})


def open_standard(starter: Starter, opened: list[int]) -> tuple[int, int, int]:
    """In a worker: open standard input, output and error.

    Args:
        opened: gets each descriptor that was opened, for a caller that has to close them.

    Raises:
        UnopenedFile: one of them cannot be opened.
    """
    spec, sandbox = starter.spec, starter.sandbox
    assert sandbox is not None
    user = (starter.account or starter.edges.host.own_account).name
    folder = sandbox.path if spec.transfers else spec.iwd

    def opening(path: str, what: str, function: Callable[[str], int]) -> int:
        if path == NULL:
            return starter.edges.host.null
        try:
            descriptor = function(os.path.join(folder, path))
        except OSError as error:
            raise UnopenedFile(error, os.path.join(folder, path), what, user) from error
        opened.append(descriptor)
        return descriptor

    stdin = opening(spec.stdin, INPUT, sandbox.open_input)
    goes_on = spec.appends

    def writing(path: str) -> int:
        return sandbox.open_output(path, goes_on)

    stdout = opening(spec.stdout, OUTPUT, writing)
    stderr = stdout if spec.stderr == spec.stdout else opening(spec.stderr, ERROR, writing)
    return stdin, stdout, stderr


def variables_of(starter: Starter) -> dict[str, str]:
    """All variables of a run's processes, the mark of the run among them."""
    spec, claim, sandbox, edges = starter.spec, starter.claim, starter.sandbox, starter.edges
    assert sandbox is not None
    account = starter.account or edges.host.own_account
    seen = seen_as(spec, sandbox)
    variables = environment_of(
        spec, edges.settings.run, scratch=seen, slot_name=claim.slot_name, cpus=claim.cpus, assigned=claim.assigned,
        devices=claim.devices, user=account.name, home=account.home)
    variables = starter.tokens.variables(starter.chirp.variables(variables, seen), seen)
    variables[MARK] = f"{edges.root.path}:{starter.run_id}"
    return variables


def plan_of(starter: Starter, stdin: int, stdout: int, stderr: int) -> LaunchPlan:
    """How the program is started: as whom, where, with which limits, and how far shut in.

    Raises:
        OSError: this machine cannot do what the job or the settings want.
    """
    spec, claim, sandbox, edges = starter.spec, starter.claim, starter.sandbox, starter.edges
    assert sandbox is not None
    account = starter.account or edges.host.own_account
    program, directory = os.path.join(sandbox.path, spec.program), sandbox.path if spec.transfers else spec.iwd
    bare = LaunchPlan(
        program=program, arguments=spec.arguments, environment=variables_of(starter), directory=directory, stdin=stdin,
        stdout=stdout, stderr=stderr, account=starter.account,
        cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
        limits=edges.limits(spec, claim, account), nice=niceness_of(starter))
    image = starter.held.image
    if image is not None:
        bare = attrs.evolve(bare, devices=claim.devices.files)
        volumes = volumes_of(edges, starter.job_ad)
        plan = contained(bare, spec, sandbox, starter.held, volumes, edges.filter_of(("pid",)))
        directory = plan.directory
    else:
        wrapper = wrapper_of(starter)
        needs = (wrapper,) if wrapper else ()
        plan = wrapped(edges.confined(bare, spec, sandbox, claim.devices.others, needs), wrapper, sandbox.path)
    elsewhere = spec.remote_directory  # after the confinement: it opens nothing that is shut
    plan = attrs.evolve(plan, directory=os.path.join(directory, elsewhere)) if elsewhere else plan
    return starter.held.visits.tool.arranged(plan) if starter.held.visits is not None else plan


def niceness_of(starter: Starter) -> int:
    """How nice a run is, by its own word and JOB_RENICE_INCREMENT."""
    renice = starter.edges.settings.run.renice
    if renice is None or not isinstance(stored(renice), Expr):  # a number: no need to read the ads for it
        return starter.spec.niceness(renice, ClassAd(), ClassAd())
    job, slot = ClassAd.from_bytes(starter.job_ad), ClassAd.from_bytes(starter.claim.slot_ad)
    return starter.spec.niceness(renice, job, slot)


def said_of(plan: LaunchPlan) -> str:
    """What a log says of a launch."""
    words = (f"as {plan.account.name}" if plan.account is not None else "", f"in {plan.directory}",
             f"niceness {plan.nice}" if plan.nice else "",
             f"apart in {', '.join(plan.isolate)}" if plan.isolate else "")
    return (f"launches {os.path.basename(plan.program)} with {len(plan.arguments)} arguments "
            f"{', '.join(word for word in words if word)}")
