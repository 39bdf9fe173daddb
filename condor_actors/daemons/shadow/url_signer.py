"""Signs URLs of object stores for a job, with keys in files that only its owner need be able to read.

The keys never leave the submit machine; :mod:`condor_actors.cores.object_store` says what does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.checkpoints.destination import destination_of, url_below
from condor_actors.cores.object_store import AccessKeys, BadObject, is_object, signed_url
from condor_actors.cores.output_destinations import OutputUrls
from condor_actors.cores.output_names import OutputNames
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.daemons.shadow.file_trouble import FileTrouble, file_trouble
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.references.urls import shown_url
from condor_actors.messages.run import SignUploads, UploadsSigned
from condor_actors.transfer.manifest import BadManifest, check_path

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["UrlSigner", "sign_uploads"]

VALID_S = 86_400
"""How long a signed URL is good: many and large files come one after another."""
MOST_KEY_BYTES = 16 * 1024
KEY_ID, SECRET, SESSION = "EC2AccessKeyId", "EC2SecretAccessKey", "EC2SessionToken"
_COMMANDS = {KEY_ID: "s3_access_key_id_file", SECRET: "s3_secret_access_key_file", SESSION: f"+{SESSION}"}


class UrlSigner:
    """Signs the URLs of one job; its keys are read when the first has to be signed.  Blocks.

    Args:
        job: its ad; now_s: seconds since the epoch.
    """

    def __init__(self, job: ClassAd, now_s: float) -> None:
        self._job = job
        self._now_s = now_s
        self._keys: AccessKeys | None = None

    def signed(self, url: str, method: str) -> str:
        """The URL that an execute machine gets: of an object store a signed one, any other as it is.

        Args:
            method: ``GET``, ``PUT`` or ``DELETE``.

        Raises:
            FileTrouble: the job names no keys, they cannot be read, or the URL names no object.
        """
        if not is_object(url):
            return url
        if self._keys is None:
            self._keys = AccessKeys(key_id=self._read(KEY_ID), secret=self._read(SECRET),
                                    region=self._job.get_str("AWSRegion"),
                                    session=self._read(SESSION) if self._job.get_str(SESSION) else "")
        try:
            return signed_url(url, method, self._keys, self._now_s, VALID_S)
        except BadObject as error:
            raise FileTrouble(str(error)) from None

    def _read(self, attribute: str) -> str:
        command, name = _COMMANDS[attribute], self._job.get_str(attribute)
        if not name:
            raise FileTrouble(f"{command} is missing, which object stores are asked with")
        path = os.path.join(self._job.get_str("Iwd", "/"), name)
        try:
            touching(path)
            with os.fdopen(open_plain(path), "rb") as stream:
                data = stream.read(MOST_KEY_BYTES + 1)
        except OSError as error:
            raise file_trouble(f"cannot read {command}", path, error) from None
        text = data.decode(errors="replace").strip()
        if len(data) > MOST_KEY_BYTES or not text.isascii() or not text.isprintable() or " " in text or not text:
            raise FileTrouble(f"{command} {path} has to have the key on one line and nothing else")
        return text


def _signed(job: ClassAd, urls: dict[str, str], now_s: float) -> tuple[str, ...]:
    """Where outputs are sent to; ``urls``: path in the sandbox to the URL that the job names for it.  Blocks.

    Raises:
        FileTrouble: see :meth:`UrlSigner.signed`; names the file.
    """
    signer, found = UrlSigner(job, now_s), []
    for path, url in urls.items():
        try:
            found.append(signer.signed(url, "PUT"))
        except FileTrouble as trouble:
            raise FileTrouble(f"{path} cannot be sent to {shown_url(url)}: {trouble}", trouble.subcode) from None
    return tuple(found)


def sign_uploads(shadow: Shadow, question: Delivery) -> None:
    """Answer a starter that has outputs to send: it names files, and the job's own ad says where each goes."""
    asked: SignUploads = question.message
    context, core = shadow.context, shadow.core
    if asked.run_id != core.order.run_id or core.state is ShadowState.ENDED:
        context.reply(question, Refused(code="invalid", text="the run is over, or another's"))
        return
    destinations, names = OutputUrls(core.job), OutputNames(core.job)
    checkpoints = destination_of(core.job) if asked.checkpoint else None
    try:
        if asked.checkpoint and checkpoints is None:
            raise BadManifest("the job names no destination for checkpoints")
        for path in asked.paths:
            if not names.have(check_path(path)) and checkpoints is None:
                raise BadManifest(f"{path[:200]!r} is no output of the job")
    except BadManifest as error:
        context.reply(question, Refused(code="invalid", text=str(error)))
        return
    base = checkpoints.base(core.order.run_id, asked.checkpoint) if checkpoints is not None else ""
    urls = {path: url_below(base, path) if base else destinations.of(path) for path in asked.paths}

    def signed(result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(FileTrouble, NoAnswer)
            context.reply(question, UploadsSigned(problem=str(result.value)))
        else:
            context.reply(question, UploadsSigned(urls=result))

    context.defer_to_turn(shadow.edges.in_thread(_signed, core.job, urls, context.now_s()), signed)
