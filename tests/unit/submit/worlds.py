"""A submit machine that exists in memory."""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Mapping, Sequence
from itertools import count

import attrs

from condor_actors.classads import ClassAd
from condor_actors.submit import Description, Environment, Options
from condor_actors.submit.description import evaluate_text

evaluate = evaluate_text

SETTINGS = {
    "JOB_DEFAULT_REQUESTMEMORY": "128",
    "JOB_DEFAULT_REQUESTDISK": "DiskUsage",
    "JOB_DEFAULT_REQUESTCPUS": "1",
    "FILESYSTEM_DOMAIN": "submit.example",
}


@attrs.define
class World:
    """Files (path and size in bytes), folders, texts and settings of the machine."""

    cwd: str = "/home/alice"
    files: dict[str, int] = attrs.Factory(lambda: {"/bin/sleep": 43_000, "/bin/true": 30_000})
    folders: set[str] = attrs.Factory(lambda: {"/home/alice", "/home/alice/runs"})
    texts: dict[str, str] = attrs.Factory(dict)
    outputs: dict[str, str] = attrs.Factory(dict)
    environ: Mapping[str, str] = attrs.Factory(dict)
    settings: Mapping[str, str] = attrs.Factory(lambda: dict(SETTINGS))

    def environment(self) -> Environment:
        return Environment(
            cwd=self.cwd, environ=self.environ, user="root", now_s=1_000_000, arch="X86_64", opsys="LINUX",
            files=self, setting=self.settings.get, version="$CondorVersion: 25.14.0 x $", platform="$p$",
            automatic={"OPSYSANDVER": "Debian12"}, random=random.Random(1),
        )  # fmt: skip

    def read_text(self, path: str) -> str:
        if path not in self.texts:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.texts[path]

    def run(self, command: str) -> str:
        if command not in self.outputs:
            raise OSError(127, "command not found")
        return self.outputs[command]

    def glob(self, pattern: str) -> Sequence[tuple[str, bool]]:
        names = [(path, False) for path in self.files] + [(path, True) for path in self.folders]
        return sorted((name, folder) for name, folder in names if fnmatch.fnmatchcase(name, pattern))

    def size_kib(self, path: str) -> int:
        return (self.files.get(path, 0) + 1023) // 1024

    def is_folder(self, path: str) -> bool:
        return path in self.folders

    def access_problem(self, path: str, mode: str) -> str:
        return "" if path in self.files or (mode == "w") else "No such file or directory"

    def preflight(self, path: str) -> tuple[bool, str, tuple[str, ...]]:
        """Nothing is known of programs here."""
        return True, "can run", ()

    def first_line(self, path: str) -> bytes:
        return self.texts.get(path, "").encode()[:100]


def described(text: str, world: World | None = None, **options: object) -> Description:
    """A description that has been read."""
    world = World() if world is None else world
    numbers = count(5)
    made = Description(world.environment(), lambda: next(numbers), Options(**options))  # type: ignore[arg-type]  # tests name real ones
    made.read(text, "job.sub")
    return made


def jobs_of(text: str, world: World | None = None, **options: object) -> list[ClassAd]:
    """The ads of all its jobs, cluster and proc merged."""
    out = []
    for cluster in described(text, world, **options).clusters:
        common = ClassAd.from_bytes(cluster.ad)
        for number, differs in enumerate(cluster.procs):
            ad = ClassAd.from_bytes(differs)
            ad.parent = common
            ad["ProcId"] = number
            out.append(ad.flat())
    return out
