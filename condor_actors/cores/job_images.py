"""What a job says of its image, and both sides of a run read: at which ports it serves, and when a registry is asked.

Theory: the submit side refuses names and ports that cannot be, the execute side reads them again, and the shadow
believes a machine's word about these names only; all by this one place.

===================== ====================================================================
attribute             what it says
===================== ====================================================================
ContainerServiceNames the names, separated by commas or blanks
NAME_ContainerPort    the port at which the job listens, in its image
NAME_HostPort         the port of the machine that leads there, while the job runs
===================== ====================================================================
"""

from __future__ import annotations

from condor_actors.addresses import MOST_PORT
from condor_actors.classads import ClassAd
from condor_actors.patterns import late

__all__ = ["CONTAINER_PORT", "HOST_PORT", "SERVICES", "BadService", "asks_always", "service_names", "services_of"]

SERVICES = "ContainerServiceNames"
CONTAINER_PORT, HOST_PORT = "_ContainerPort", "_HostPort"
"""What follows a service's name in the names of attributes."""
MOST_SERVICES = 16
_NAME = late(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


class BadService(ValueError):
    """A service cannot be had; the text says which, and why."""


def service_names(text: str) -> tuple[str, ...]:
    """The names in a list, each once.

    Raises:
        BadService: one of them cannot be a name, or there are too many.
    """
    found: dict[str, str] = {}
    for name in text.replace(",", " ").split():
        if not _NAME.match(name):
            raise BadService(f"{name[:100]!r} is no name of a service: a letter, then letters, digits and _, "
                             "at most 64")
        found.setdefault(name.lower(), name)
    if len(found) > MOST_SERVICES:
        raise BadService(f"{len(found)} services are too many; a job may have {MOST_SERVICES}")
    return tuple(found.values())


def services_of(job: ClassAd) -> tuple[tuple[str, int], ...]:
    """The services of a job: name and port.

    Raises:
        BadService: its ad names none that can be.
    """
    names, found = job.evaluate(SERVICES), dict[int, str]()
    for name in service_names(names) if isinstance(names, str) else ():
        port = job.evaluate(f"{name}{CONTAINER_PORT}")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port <= MOST_PORT:
            raise BadService(f"the service {name} has no port: {name}{CONTAINER_PORT} is a whole number from 1 to "
                             f"{MOST_PORT}")
        if port in found:
            raise BadService(f"the services {found[port]} and {name} have the same port {port}")
        found[port] = name
    return tuple((name, port) for port, name in found.items())


def asks_always(job: ClassAd) -> bool:
    """Whether each run of a job is to ask what the name of its image means, and none is bound by an earlier one."""
    return job.get_str("DockerPullPolicy").lower() == "always"
