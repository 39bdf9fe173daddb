"""What the configuration finds out from the machine it is read on: ``$(HOSTNAME)``, ``$(DETECTED_CPUS)`` and so on.

Each is worked out only when something asks for it, since most tools need none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from condor_actors import accounts

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Detected", "home_of_condor"]


def home_of_condor() -> str | None:
    """The home folder of the user ``condor``, None when there is no such user."""
    try:
        found = accounts.named("condor")
    except accounts.NotYet:
        return None
    return found.home if found is not None else None


@cache
def _full_hostname() -> str:
    import _socket as socket  # the module ``socket`` around it takes 7 ms to import

    name = socket.gethostname()
    if "." in name:
        return name
    try:
        # as bytes, for which Python loads no tables of international names
        first, others, _ = socket.gethostbyaddr(os.fsencode(name))  # type: ignore[arg-type]
    except OSError:
        return name
    full = next((each for each in (first, *others) if "." in each), first)
    return full if full.split(".")[0] == name and full != "localhost" else name


def _ip_address(far_away: str) -> str | None:
    """The address the machine would use to reach one far away; nothing is sent to find out."""
    import socket

    family = socket.AF_INET6 if ":" in far_away else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far_away, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _ipv4() -> str | None:
    return _ip_address("192.0.2.1")


def _ipv6() -> str | None:
    return _ip_address("2001:db8::1")


def _address() -> str:
    return _ipv4() or _ipv6() or "127.0.0.1"


def _physical_cores() -> int:
    from pathlib import Path

    seen = set()
    for topology in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
        try:
            seen.add(((topology / "physical_package_id").read_text(), (topology / "core_id").read_text()))
        except OSError:
            continue
    return len(seen) or (os.cpu_count() or 1)


def _cpu_limit() -> int:
    limits = [os.cpu_count() or 1]
    for name in ("OMP_THREAD_LIMIT", "SLURM_CPUS_ON_NODE"):
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            limits.append(int(value))
    return min(limits)


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


def _user() -> str:
    try:
        found = accounts.numbered(os.geteuid())
    except accounts.NotYet:
        found = None
    return found.name if found is not None else str(os.geteuid())


@cache
def _release() -> dict[str, str]:
    """``/etc/os-release`` as a table."""
    found = {}
    try:
        with open("/etc/os-release", encoding="utf-8", errors="replace") as file:
            content = file.read()
    except OSError:
        return {}
    for line in content.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name.strip()] = value.strip().strip("\"'")
    return found


def _major_version() -> str:
    return _release().get("VERSION_ID", "0").split(".")[0]


def _distribution() -> str:
    names = {
        "debian": "Debian",
        "ubuntu": "Ubuntu",
        "fedora": "Fedora",
        "rhel": "RedHat",
        "centos": "CentOS",
        "almalinux": "AlmaLinux",
        "rocky": "Rocky",
        "opensuse-leap": "openSUSE",
        "arch": "Arch",
    }
    identity = _release().get("ID", "linux")
    return names.get(identity, identity.capitalize())


def _architecture() -> str:
    machine = os.uname().machine
    return {"x86_64": "X86_64", "amd64": "X86_64", "i686": "INTEL", "i386": "INTEL"}.get(machine, machine)


_SOURCES: dict[str, Callable[[], str | None]] = {
    "FULL_HOSTNAME": _full_hostname,
    "HOSTNAME": lambda: _full_hostname().split(".")[0],
    "IP_ADDRESS": _address,
    "IPV4_ADDRESS": _ipv4,
    "IPV6_ADDRESS": _ipv6,
    "IP_ADDRESS_IS_V6": lambda: str(":" in _address()),
    "TILDE": home_of_condor,
    "ARCH": _architecture,
    "OPSYS": lambda: "LINUX",
    "OPSYS_VER": _major_version,
    "OPSYSVER": lambda: f"{_major_version()}00",
    "OPSYSMAJORVER": _major_version,
    "OPSYS_AND_VER": lambda: _distribution() + _major_version(),
    "OPSYSANDVER": lambda: _distribution() + _major_version(),
    "OPSYS_NAME": _distribution,
    "UNAME_ARCH": lambda: os.uname().machine,
    "UNAME_OPSYS": lambda: os.uname().sysname,
    "DETECTED_CORES": lambda: str(os.cpu_count() or 1),
    "DETECTED_PHYSICAL_CPUS": lambda: str(_physical_cores()),
    "DETECTED_CPUS": lambda: str(os.cpu_count() or 1),
    "DETECTED_CPUS_LIMIT": lambda: str(_cpu_limit()),
    "DETECTED_MEMORY": lambda: str(_memory_mib()),
    "PID": lambda: str(os.getpid()),
    "PPID": lambda: str(os.getppid()),
    "USERNAME": _user,
    "REAL_UID": lambda: str(os.getuid()),
    "REAL_GID": lambda: str(os.getgid()),
}


class Detected(Mapping[str, str]):
    """Facts of this machine by macro name, each worked out at most once.

    Args:
        known: values that the caller knows already: ``SUBSYSTEM``, ``LOCALNAME``, ``CONFIG_ROOT``.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known: dict[str, str | None] = dict(known)

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = _SOURCES[name]()
        value = self._known[name]
        if value is None:
            raise KeyError(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping; most names that are asked for are none of these."""
        if name not in self._known and name not in _SOURCES:
            return default
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        for name in dict.fromkeys([*self._known, *_SOURCES]):
            if name in self:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def add(self, name: str, value: str) -> None:
        """Make one more value known."""
        self._known[name] = value
