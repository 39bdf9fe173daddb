"""The section about ports of a job in an image: container_service_names and the port of each."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.job_images import (
    CONTAINER_PORT,
    SERVICES,
    BadService,
    service_names,
    services_of,
)
from condor_actors.submit.build_context import BuildContext, unquoted
from condor_actors.submit.errors import SubmitError

__all__ = ["ports"]

COMMAND = "container_service_names"
PORT = "_container_port"


def ports(context: BuildContext) -> None:
    """ContainerServiceNames, and NAME_ContainerPort of each."""
    given = context.text(COMMAND, SERVICES)
    try:
        names = service_names(unquoted(given or ""))
    except BadService as error:
        raise SubmitError(f"{COMMAND}: {error}", command=COMMAND) from None
    if not names:
        return
    if not context.topping:
        raise SubmitError(f"{COMMAND} is about a job in an image, and this one has none", command=COMMAND,
                          remedy="name a container_image, or let the job listen on a free port of the machine")
    made = ClassAd({SERVICES: ",".join(names)})
    for name in names:
        command = f"{name.lower()}{PORT}"
        port = context.integer(command, f"{name}{CONTAINER_PORT}")
        if port is None:
            raise SubmitError(f"{COMMAND} names {name}, and there is no {name}{PORT}", command=COMMAND,
                              remedy=f"say {name}{PORT} = PORT, where the job listens")
        made[f"{name}{CONTAINER_PORT}"] = port
    try:
        services_of(made)
    except BadService as error:
        raise SubmitError(str(error), command=COMMAND) from None
    for name in made:
        context.set(made.spelling(name), made.evaluate(name))
    if context.text("docker_network_type", "DockerNetworkType") is None:
        context.warn(
            f"a job with {COMMAND} has a network of its own, in which it reaches nothing else; with "
            "docker_network_type = host it has the machine's, where two such jobs cannot have the same port")
