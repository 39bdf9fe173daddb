"""What of a job's files goes into a schedd's spool, under which names, and what of the spool is no result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from condor_actors.classads import ClassAd
from condor_actors.cores.transfer_plugins import plugin_files
from condor_actors.messages.references.urls import local_path, travels_as_url
from condor_actors.messages.spool import SpoolChunk

__all__ = ["CHUNK_BYTES", "chunks_of", "inputs_of", "sent_names"]

CHUNK_BYTES = 256 * 1024


def _listed(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


def inputs_of(ad: ClassAd) -> Iterator[tuple[str, str]]:
    """(path here, name in the spool) of every input file of a job; folders are given file by file."""
    iwd = ad.get_str("Iwd")
    names = _listed(ad.get_str("TransferInput"))
    if ad.get_bool("TransferExecutable", True) and ad.get_str("Cmd"):
        names.insert(0, ad.get_str("Cmd"))
    if ad.get_bool("TransferIn", True) and ad.get_str("In") not in ("", "/dev/null"):
        names.append(ad.get_str("In"))
    names += plugin_files(ad.get_str("TransferPlugins"))
    proxy = ad.get_str("x509userproxy")
    if proxy:
        names.append(proxy)
    for name in names:
        if travels_as_url(name):
            continue
        path = os.path.join(iwd, local_path(name))
        if not os.path.isdir(path):
            yield path, os.path.basename(path)
            continue
        top = "" if name.endswith("/") else os.path.basename(path.rstrip("/"))
        for folder, _, files in os.walk(path):
            below = os.path.relpath(folder, path)
            for file in files:
                yield os.path.join(folder, file), os.path.normpath(os.path.join(top, below, file))


def chunks_of(file: BinaryIO, cluster_id: int, proc_id: int, name: str) -> Iterator[SpoolChunk]:
    """The messages that put an open file into the spool of a job; one for a file that is empty."""
    mode = os.fstat(file.fileno()).st_mode & 0o777
    offset = 0
    while True:
        data = file.read(CHUNK_BYTES)
        if not data and offset:
            return
        yield SpoolChunk(cluster_id=cluster_id, proc_id=proc_id, path=name, offset=offset, data=data, mode=mode)
        offset += len(data)
        if len(data) < CHUNK_BYTES:
            return


def sent_names(ad: ClassAd) -> set[str]:
    """Names in the spool that were sent there and are no results: they would overwrite what may be newer at home."""
    names = {os.path.basename(ad.get_str(f"{prefix}Cmd")) for prefix in ("", "SUBMIT_")}
    for prefix in ("", "SUBMIT_"):
        given = [ad.get_str(f"{prefix}{attribute}") for attribute in ("TransferInput", "In", "x509userproxy")]
        names |= {os.path.basename(name.strip()) for text in given for name in text.split(",")}
        names |= {os.path.basename(path) for path in plugin_files(ad.get_str(f"{prefix}TransferPlugins"))}
    wanted = {name.strip().rstrip("/") for name in ad.get_str("TransferOutput").split(",")}
    return names - wanted - {""}
