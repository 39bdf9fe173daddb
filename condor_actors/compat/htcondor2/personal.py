"""``htcondor2.personal``: a pool of one's own from a program, as ``condor_personal`` makes it."""

from __future__ import annotations

import atexit
import enum
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condor_actors.compat import htcondor2
from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.errors import HTCondorException

__all__ = ["PersonalPool", "PersonalPoolState", "SetCondorConfig"]


class PersonalPoolState(str, enum.Enum):
    """What a pool is doing."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZED = "INITIALIZED"
    STARTING = "STARTING"
    READY = "READY"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"


class SetCondorConfig:
    """In its block, a configuration file is the one in force."""

    def __init__(self, config_file: Path) -> None:
        self.config_file = Path(config_file)
        self.previous_value: str | None = None

    def set(self) -> None:
        """Put it in force."""
        self.previous_value = os.environ.get("CONDOR_CONFIG")
        os.environ["CONDOR_CONFIG"] = str(self.config_file)
        htcondor2.reload_config()

    def unset(self) -> None:
        """Put the one before in force again."""
        if self.previous_value is None:
            os.environ.pop("CONDOR_CONFIG", None)
        else:
            os.environ["CONDOR_CONFIG"] = self.previous_value
        htcondor2.reload_config()

    def __enter__(self) -> SetCondorConfig:
        self.set()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.unset()


class PersonalPool:
    """A pool in a folder; it is stopped when the program ends, unless it is detached.

    Args:
        local_dir: where it lies; ``~/.condor/personal`` unless given.
        config: settings of it.
        raw_config: more of them, as the text of a configuration.
        detach: leave it running.
        use_config: have this whole program mean this pool.
    """

    def __init__(self, local_dir: Path | None = None, config: Mapping[str, str] | None = None,
                 raw_config: str | None = None, detach: bool = False, use_config: bool = True) -> None:
        self.local_dir = Path(local_dir or Path.home() / ".condor" / "personal").absolute()
        self.config_file = self.local_dir / "condor_config"
        self._state = PersonalPoolState.UNINITIALIZED
        self._settings = "".join(f"{name} = {value or ''}\n" for name, value in (config or {}).items())
        self._settings += raw_config or ""
        self._detach = detach
        atexit.register(self.stop)
        if use_config:
            self.initialize()
            self.use_config().set()

    @property
    def state(self) -> PersonalPoolState:
        """What the pool is doing."""
        return self._state

    @state.setter
    def state(self, state: PersonalPoolState) -> None:
        self._state = state

    def __repr__(self) -> str:
        return f"{type(self).__name__}(local_dir={self.local_dir}, state={self.state})"

    def _run(self, *words: str) -> str:
        done = subprocess.run([sys.executable, "-P", "-m", "condor_actors.tools.admin.personal", words[0], "--dir",
                               str(self.local_dir), *words[1:]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise HTCondorException((done.stderr or done.stdout).strip())
        return done.stdout

    def use_config(self) -> SetCondorConfig:
        """The pool's configuration, for a block."""
        return SetCondorConfig(self.config_file)

    def initialize(self, overwrite_config: bool = True) -> PersonalPool:
        """Make the folder; the configuration comes when the pool starts."""
        if self.state is PersonalPoolState.UNINITIALIZED:
            self.local_dir.mkdir(parents=True, exist_ok=True)
            self.state = PersonalPoolState.INITIALIZED
        return self

    def start(self) -> PersonalPool:
        """Start the pool, and wait until it can run jobs.

        Raises:
            HTCondorException: it does not start; the text says why.
        """
        if self.state is PersonalPoolState.READY:
            return self
        self.initialize()
        self.state = PersonalPoolState.STARTING
        with tempfile.NamedTemporaryFile("w", prefix="condor-personal-") as extra:
            extra.write(self._settings)
            extra.flush()
            try:
                self._run("start", "--config", extra.name)
            except BaseException:
                self.stop()
                raise
        self.state = PersonalPoolState.READY
        htcondor2.reload_config()
        return self

    def stop(self) -> None:
        """Stop the pool, unless it is detached."""
        if self._detach or self.state not in (PersonalPoolState.STARTING, PersonalPoolState.READY):
            return
        self.state = PersonalPoolState.STOPPING
        self._run("stop")
        self.state = PersonalPoolState.STOPPED

    def __enter__(self) -> PersonalPool:
        self.start()
        self._outside = self.use_config()
        self._outside.set()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()
        self._outside.unset()

    @property
    def collector(self) -> htcondor2.Collector:
        """The pool's collector."""
        with self.use_config():
            return htcondor2.Collector()

    @property
    def schedd(self) -> htcondor2.Schedd:
        """The pool's schedd."""
        with self.use_config():
            return htcondor2.Schedd()

    def who(self) -> ClassAd:
        """The ad of the pool's master."""
        with self.use_config():
            return htcondor2.Collector().directQuery(htcondor2.DaemonType.Master)

    def run_command(self, args: Sequence[Any], stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE,
                    universal_newlines: bool = True, **kwargs: Any) -> subprocess.CompletedProcess[Any]:
        """Run a command that means this pool."""
        with self.use_config():
            done = subprocess.run(list(map(str, args)), stdout=stdout, stderr=stderr, check=False,
                                  text=universal_newlines, **kwargs)
        done.stdout, done.stderr = (text and text.rstrip() for text in (done.stdout, done.stderr))
        return done

    def get_config_val(self, macro: str, default: str | None = None) -> Any:
        """A setting of the pool.

        Raises:
            KeyError: it is not set, and there is no default.
        """
        with self.use_config():
            value = htcondor2.param.get(macro, default)
        if value is None:
            raise KeyError(macro)
        return value

    @classmethod
    def attach(cls, local_dir: Path | None = None) -> PersonalPool:
        """A pool that runs already.

        Raises:
            HTCondorException: none runs there.
        """
        pool = cls(local_dir=local_dir)
        pool._run("status")
        pool.state = PersonalPoolState.READY
        return pool

    def detach(self) -> PersonalPool:
        """Leave the pool running when the program ends."""
        self._detach = True
        return self
