"""Spool: input files go to a schedd (condor_submit -spool), output files come back from it (condor_transfer_data)."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import FileName, message


@message
@records.frozen(kw_only=True)
class SpoolChunk:
    """condor_submit -spool: bytes of an input file for the job's spool directory, in order.  Answer: Done."""

    KIND: ClassVar[str] = "condor.spool.SpoolChunk"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int
    path: FileName
    offset: int
    data: bytes
    mode: int = 0o644


@message
@records.frozen(kw_only=True)
class FinishSpooling:
    """All inputs of the cluster are spooled: release its jobs.  Answer: Done."""

    KIND: ClassVar[str] = "condor.spool.FinishSpooling"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int


@message
@records.frozen(kw_only=True)
class ListSpool:
    """condor_transfer_data: which output files lie in the spool of a job?  Answer: :class:`SpoolListing`."""

    KIND: ClassVar[str] = "condor.spool.ListSpool"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int


@message
@records.frozen(kw_only=True)
class SpoolListing:
    """(path, size, mode) of each file, and where it belongs at home (``iwd``)."""

    KIND: ClassVar[str] = "condor.spool.SpoolListing"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    iwd: FileName
    files: tuple[tuple[FileName, int, int], ...]


@message
@records.frozen(kw_only=True)
class ReadSpool:
    """A piece of a spooled file.  Answer: :class:`SpoolBytes`."""

    KIND: ClassVar[str] = "condor.spool.ReadSpool"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int
    path: FileName
    offset: int
    max_bytes: int = 262144


@message
@records.frozen(kw_only=True)
class SpoolBytes:
    """Answer to :class:`ReadSpool`."""

    KIND: ClassVar[str] = "condor.spool.SpoolBytes"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    data: bytes
