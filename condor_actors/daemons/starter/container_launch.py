"""How a job is launched whose root directory is an image."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, is_true
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.machine.containers.checked_places import BY_NAME
from condor_actors.machine.containers.image_store import Image
from condor_actors.machine.containers.root_folder import LAYERS, make_layers, place_in
from condor_actors.machine.run.launch import LaunchPlan
from condor_actors.machine.run.tree_removal import remove_tree

if TYPE_CHECKING:
    from condor_actors.daemons.starter.run_resources import RunResources
    from condor_actors.daemons.starter.starter_edges import StarterEdges, Volume
    from condor_actors.machine.run.sandbox import Sandbox

__all__ = ["contained", "found_in", "in_image", "isolation_of", "prepare_layers", "seen_as", "volumes_of"]

OWN_FOLDERS = ("/proc", "/sys", "/dev", "/tmp", "/var/tmp")
NAME_FILES = ("/etc/resolv.conf", "/etc/hosts")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def isolation_of(spec: RunSpec) -> tuple[str, ...]:
    """Namespaces of a job in an image: that of users gives its launcher the right to mount."""
    assert spec.container is not None
    alone = () if spec.networking and spec.container.network else ("net",)
    return (*(() if os.geteuid() == 0 else ("user",)), "mount", "pid", "ipc", "uts", *alone)


def seen_as(spec: RunSpec, sandbox: Sandbox) -> str:
    """Where the job sees its scratch directory."""
    return spec.container.target or sandbox.path if spec.container is not None else sandbox.path


def prepare_layers(spec: RunSpec, sandbox: Sandbox, root: str, volumes: tuple[Volume, ...]) -> None:
    """Make the layers and the places to mount at, before the scratch directory is the job's.

    Args:
        root: where the image is found.

    Raises:
        OSError: the disk, or the image has a file where a folder is mounted.
    """
    folder = os.path.join(sandbox.path, LAYERS)
    with sandbox.rights():
        if os.path.lexists(folder):  # of the program before it took a checkpoint
            remove_tree(folder)
        places = [*OWN_FOLDERS, seen_as(spec, sandbox), *((spec.iwd,) if not spec.transfers else ())]
        files = [path for path in NAME_FILES if os.path.exists(path)]
        for volume in volumes:
            (places if os.path.isdir(volume.source) else files).append(volume.target)
        make_layers(folder, root, places, files)


def volumes_of(edges: StarterEdges, job: bytes) -> tuple[Volume, ...]:
    """The administrator's mounts that this job gets."""
    ad = ClassAd.from_bytes(job)
    return tuple(volume for volume in edges.settings.volumes
                 if volume.condition is None or is_true(volume.condition.evaluate(ad, ClassAd())))


def in_image(spec: RunSpec, variables: Mapping[str, str], scratch: str, image: Image | None) -> dict[str, str]:
    """A job's variables: the image's below its own; of the machine's, paths mean nothing there."""
    said = dict(each.partition("=")[::2] for each in image.facts.environment) if image is not None else {}
    found = said | dict(variables)
    if "PATH" not in spec.environment:
        found["PATH"] = said.get("PATH", DEFAULT_PATH)
    if "HOME" not in spec.environment:
        found["HOME"] = scratch
    return found


def found_in(image: str, word: str, path: str) -> str:
    """The program that a word means in an image, by its PATH; the word itself where there is none."""
    if "/" in word:
        return word
    for folder in path.split(":"):
        with contextlib.suppress(OSError):  # links lead round there
            parts, there = place_in(image, f"{folder}/{word}")
            if folder.startswith("/") and there == len(parts):
                return f"{folder}/{word}"
    return word


def contained(plan: LaunchPlan, spec: RunSpec, sandbox: Sandbox, held: RunResources, volumes: tuple[Volume, ...],
              filtered: str) -> LaunchPlan:
    """The launch of an ordinary job in its image.

    Args:
        plan: as it would be without one.
        held: by the run: its image, and what it was allowed of the machine.
        volumes: as for ``prepare_layers``; filtered: the filter of system calls.
    """
    image = held.image
    assert spec.container is not None and image is not None  # noqa: PT018
    layers, target = os.path.join(sandbox.path, LAYERS), seen_as(spec, sandbox)
    binds = [(f"{layers}/tmp", "/tmp"), (f"{layers}/vartmp", "/var/tmp"), (sandbox.path, target)]  # noqa: S108
    checked = dict.fromkeys((image.path, layers, *(source for source, _ in binds)), BY_NAME) | held.places.all()
    if not spec.transfers:
        binds.append((held.directory, spec.iwd))
    shut = [(path, path) for path in NAME_FILES if os.path.exists(path)]
    for volume in volumes:
        (shut if volume.read_only else binds).append((volume.source, volume.target))
    variables, program = in_image(spec, plan.environment, target, image), os.path.join(target, spec.program)
    words = [*image.facts.entrypoint, program, *plan.arguments] if spec.container.by_entrypoint else []
    if len(words) > 1 + len(plan.arguments):
        program = found_in(held.places.seen(image.path), words[0], variables.get("PATH", ""))
        plan = attrs.evolve(plan, arguments=words[1:])
    if image.facts.enter:
        plan = attrs.evolve(plan, arguments=[*image.facts.enter[1:], program, *plan.arguments])
        program = image.facts.enter[0]
    return attrs.evolve(
        plan, program=program, environment=variables,
        isolate=isolation_of(spec), binds=binds,
        read_only_binds=shut, layers=layers, image=image.path, checked=checked, filter=filtered,
        directory=target if spec.transfers else spec.iwd)
