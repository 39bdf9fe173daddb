"""What a job says of files that are at URLs: whether all that they need has been said."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.object_store import is_object
from condor_actors.cores.output_destinations import OutputUrls, remaps_of
from condor_actors.cores.transfer_plugins import BadPlugin, job_plugins
from condor_actors.messages.codes import Universe
from condor_actors.messages.references.urls import shown_url, travels_as_url
from condor_actors.submit.build_context import BuildContext, unquoted
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import check_file, files_are_checked

__all__ = ["KEY_FILES", "check_urls", "own_plugins", "urls_of"]

KEY_FILES = (
    ("EC2AccessKeyId", ("s3_access_key_id_file", "aws_access_key_id_file", "gs_access_key_id_file")),
    ("EC2SecretAccessKey", ("s3_secret_access_key_file", "aws_secret_access_key_file", "gs_secret_access_key_file")),
)
_WITHOUT = (Universe.GRID, Universe.LOCAL, Universe.SCHEDULER, Universe.STANDARD)


def urls_of(context: BuildContext) -> list[str]:
    """The URLs that the execute machine fetches from or sends to."""
    names = str(context.get("TransferInput") or "").split(",")
    names += [str(context.get(name) or "") for name in ("OutputDestination", "CheckpointDestination", "Out", "Err")]
    names += remaps_of(str(context.get("TransferOutputRemaps") or "")).values()
    return [name.strip() for name in names if travels_as_url(name.strip())]


def check_urls(context: BuildContext) -> None:
    """Refuse what could not be done when the job ends: then it would be late.

    Raises:
        SubmitError: no keys for an object store, output that is streamed to a URL, or a job that sends nothing.
    """
    destination = str(context.get("OutputDestination") or "")
    if destination and not travels_as_url(destination) and "$$(" not in destination:
        raise SubmitError(f"output_destination = {destination} is no URL (scheme://host/folder)",
                          command="output_destination", remedy="name a folder of this machine with output_directory")
    _check_checkpoints(context)
    _check_plugins(context)
    _check_streams(context)
    _check_sender(context)
    objects = [url for url in urls_of(context) if is_object(url)]
    if objects:
        _check_keys(context, shown_url(objects[0]))


def _check_checkpoints(context: BuildContext) -> None:
    destination = str(context.get("CheckpointDestination") or "")
    if not destination:
        return
    if not travels_as_url(destination) and "$$(" not in destination:
        raise SubmitError(f"checkpoint_destination = {destination} is no URL (scheme://host/folder)",
                          command="checkpoint_destination",
                          remedy="drop it: checkpoints then go to the spool folder of this machine's schedd")
    if context.universe in _WITHOUT:
        raise SubmitError("jobs of this universe are not run by a starter that sends their checkpoints to a URL",
                          command="checkpoint_destination", remedy="drop it, or use universe = vanilla")
    if context.get("SuccessCheckpointExitCode") is None:
        raise SubmitError("checkpoint_destination has no effect without checkpoint_exit_code, by which the program "
                          "says that it has saved its work", command="checkpoint_destination",
                          remedy="say both, or drop it")
    if context.get("ShouldTransferFiles") == "NO":
        raise SubmitError("checkpoint_destination concerns files that are transferred, but should_transfer_files is NO",
                          command="checkpoint_destination", remedy="drop one of the two")


def own_plugins(context: BuildContext) -> dict[str, str]:
    """The job's own transfer plugins: method to path.

    Raises:
        SubmitError: transfer_plugins cannot be read.
    """
    try:
        return job_plugins(str(context.get("TransferPlugins") or ""))
    except BadPlugin as error:
        raise SubmitError(f"transfer_plugins: {error}", command="transfer_plugins",
                          remedy='say transfer_plugins = METHOD=PATH; METHOD=PATH') from None


def _check_plugins(context: BuildContext) -> None:
    plugins = own_plugins(context)
    if not plugins:
        return
    if context.universe in _WITHOUT:
        raise SubmitError("jobs of this universe are not run by a starter that starts transfer plugins",
                          command="transfer_plugins", remedy="drop it, or use universe = vanilla")
    if context.get("ShouldTransferFiles") == "NO":
        raise SubmitError("transfer_plugins transfer files, but should_transfer_files is NO",
                          command="should_transfer_files", remedy="drop one of the two")
    for path in dict.fromkeys(plugins.values()):
        if files_are_checked(context):
            check_file(context, path, "r", "transfer_plugins")


def _check_streams(context: BuildContext) -> None:
    for attribute, stream, command in (("Out", "StreamOut", "stream_output"), ("Err", "StreamErr", "stream_error")):
        if context.get(stream) is True and travels_as_url(str(context.get(attribute) or "")):
            raise SubmitError(f"{command} has no effect on a file that is sent to a URL when the job has ended",
                              command=command, remedy="drop one of the two")


def _check_sender(context: BuildContext) -> None:
    named = ClassAd({name: str(context.get(name) or "") for name in ("OutputDestination", "Out", "Err")})
    named["TransferOutputRemaps"] = unquoted(context.text("transfer_output_remaps", "TransferOutputRemaps") or "")
    urls = OutputUrls(named)
    if not urls:
        return
    if context.universe in _WITHOUT:
        raise SubmitError("output goes to a URL, and jobs of this universe are not run by a starter that sends it",
                          remedy="send it in the job, or use universe = vanilla")
    if context.get("ShouldTransferFiles") == "NO":
        raise SubmitError("output goes to a URL, but should_transfer_files is NO", command="should_transfer_files",
                          remedy="drop it: files that go nowhere else still need no transfer")


def _check_keys(context: BuildContext, shown: str) -> None:
    for attribute, commands in KEY_FILES:
        given = context.text(*commands, attribute)
        if given is None:
            raise SubmitError(f"{shown} is in an object store, which is asked with a key, and {commands[0]} is missing",
                              remedy="name the files with s3_access_key_id_file and s3_secret_access_key_file, or give "
                                     "a https URL")
        if context.spool:
            raise SubmitError(f"{commands[0]} stays on this machine, and the job's files are spooled on another",
                              command=commands[0], remedy="submit without -spool or -remote, on that machine")
        if files_are_checked(context):
            check_file(context, given.strip('"'), "r", commands[0])
