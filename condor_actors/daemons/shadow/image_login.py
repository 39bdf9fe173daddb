"""Shows a registry its owner's login for a job's private image (docker_send_credentials).

Theory: the file with the login is read here, as its owner, and its name and password go to the registry alone.  The
starter gets what the registry gave for them: a token that opens this image for reading, for some minutes.  A registry
without tokens (``Basic``) leaves no choice but the name and the password.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.registry_logins import LOGIN_FILE, MOST_BYTES, BadLogins, Login, login_for
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.daemons.shadow.file_trouble import FileTrouble, file_trouble
from condor_actors.daemons.shadow.shadow_edges import RegistryAccess
from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.machine.containers.pull import trusted
from condor_actors.machine.containers.registry import Repository, Unreachable
from condor_actors.messages.credentials import FetchImageLogin, ImageLogin
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.references.image_reference import (
    OF_APPTAINER,
    SCHEME,
    BadReference,
    ImageReference,
    check_proxy,
    registry_for,
)

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["bring_login"]

WANTED = "DockerSendCredentials"


def bring_login(shadow: Shadow, question: Delivery) -> None:
    """Answer a starter that is to fetch its job's image: what is shown, and where, follows from the job's ad here."""
    asked: FetchImageLogin = question.message
    context, core, edges = shadow.context, shadow.core, shadow.edges

    def refuse(text: str, code: str = "invalid") -> None:
        context.reply(question, Refused(code=code, text=text))

    if asked.run_id != core.order.run_id or core.state is ShadowState.ENDED:
        refuse("the run is over, or another's")
        return
    job = core.job
    if not job.get_bool(WANTED):
        refuse("the job does not say docker_send_credentials = true")
        return
    try:
        reference = _reference(job)
        check_proxy(edges.registries.proxy)
    except BadReference as error:
        refuse(str(error))
        return

    def read(login: Any) -> None:
        if isinstance(login, Failure):
            login.trap(FileTrouble, NoAnswer)
            refuse(str(login.value))
        else:
            context.defer_to_turn(deferToThread(_shown, reference, login, edges.registries), shown)

    def shown(result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(BadImage, Unreachable)
            refuse(str(result.value), "busy" if result.check(Unreachable) else "invalid")
        else:
            context.reply(question, ImageLogin(authorization=result))

    context.defer_to_turn(edges.in_thread(_read, job.get_str(LOGIN_FILE), reference), read)


def _reference(job: ClassAd) -> ImageReference:
    name = job.get_str("DockerImage" if job.get_bool("WantDocker") else "ContainerImage")
    return ImageReference.read(name if name.startswith((SCHEME, OF_APPTAINER)) else f"{SCHEME}{name}")


def _read(path: str, reference: ImageReference) -> Login:
    """The login in a user's file.  Blocks.

    Raises:
        FileTrouble: there is none.
    """
    if not path.startswith("/"):
        raise FileTrouble(f"the job's {LOGIN_FILE} names no file with the login for {reference.registry}: submit it "
                          "with docker_send_credentials = true, after docker login or podman login")
    try:
        touching(path)
        with os.fdopen(open_plain(path), "rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise file_trouble(f"cannot read the login for {reference.registry}", path, error) from None
    try:
        if len(content) > MOST_BYTES:
            raise BadLogins(f"it has more than {MOST_BYTES:,} bytes")
        found = login_for(content, reference)
    except BadLogins as error:
        raise FileTrouble(f"the file {path} has no login for {reference.registry}: {error}") from None
    if found is None:
        raise FileTrouble(f"the file {path} has no login for {reference.registry}: docker login {reference.registry} "
                          "or podman login makes one")
    return found


def _shown(reference: ImageReference, login: Login, access: RegistryAccess) -> str:
    """What the registry gives for the login.  Blocks.

    Raises:
        BadImage: it gives nothing. Unreachable: it does not answer.
    """
    registry = registry_for(reference.registry, access.allowed)
    if registry is None:
        raise BadImage(f"{reference.registry} is shown no login from this submit machine (CONTAINER_REGISTRIES)")
    asked = Repository(registry, reference.name, trusted(access.authorities), proxy=access.proxy, login=login)
    return asked.authorized(reference.digest or reference.tag)
