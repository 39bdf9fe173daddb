"""Unpacks a container image from a tar or SIF file, as the job's account, in a process of its own.

Theory: an image is as hostile as its job.  The starter host opens the tar file and an empty folder and starts this
module by the launcher; what it is to do comes over standard input.  Nothing in an image
is named by a path of the machine: names are followed part by part inside the folder, links as if it were the root.  No
device, pipe or socket is made, nobody's rights come with a file (setuid, setgid), and sizes, entries and time are
counted while it is read, so that a small file cannot become a full disk.  What went wrong, or what the image says of
itself, comes over standard error.

==================  ========================================================================
docker-archive      ``manifest.json`` names the layers and the configuration
oci-archive         ``index.json`` leads to a manifest in ``blobs/``, and that to the same
SIF, squashfs       an image of Apptainer or Singularity (:mod:`.sif`)
anything else       a tar of the root directory itself
==================  ========================================================================
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import lzma
import os
import re
import signal
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import attrs
import zstandard

from condor_actors.machine.containers import sif
from condor_actors.machine.containers.image_tree import FOLDER, BadImage, NoRoom, TooLong, Tree, parts_of
from condor_actors.machine.containers.zstd_stream import ZstdStream, is_zstd
from condor_actors.machine.run.users import Account

__all__ = [
    "REPORT_BYTES", "Budget", "ImageFacts", "UnpackOrder", "account_of", "apply_layer", "carry_out", "facts_of",
    "understood", "unpack",
]

MOST_ENTRIES = 2_000_000
MOST_LAYERS = 256
MOST_JSON_BYTES = 4 << 20
MOST_HEADER_BYTES = 1 << 20
"""Of what stands before an entry: a long name, attributes."""
MOST_MEMBERS = 10_000
"""Of an archive of layers, which has a few for each."""
ENTRY_BYTES = 4096
BLOCK_BYTES = 1 << 20
REPORT_BYTES = 32 * 1024
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
COMPRESSIONS = (bz2, gzip, lzma)
"""What tarfile would look for on the disk later, where the account may see nothing."""
CHECKED = (gzip.GzipFile, bz2.BZ2File, lzma.LZMAFile, ZstdStream)
NO_WORD = re.compile("[\0\ud800-\udfff]")
"""What no variable and no argument has: it has no bytes."""
HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
           tarfile.SOLARIS_XHDTYPE)


@attrs.frozen(kw_only=True)
class UnpackOrder:
    """What one process is to do.

    Attributes:
        archive, folder: the numbers of the open tar file, and of the empty folder.
        account: whom it becomes; None: it is that account already.
        most_bytes, most_s: more is given up.
    """

    archive: int
    folder: int
    account: Account | None
    most_bytes: int
    most_s: float

    def encode(self) -> bytes:
        """As it goes through the pipe."""
        account = attrs.asdict(self.account) if self.account is not None else None
        return json.dumps(attrs.asdict(self) | {"account": account}).encode()


@attrs.frozen(kw_only=True)
class ImageFacts:
    """What an image says of itself, and how large it is.

    Attributes:
        environment: ``NAME=VALUE``.
        entrypoint: words before the job's program in the docker universe; enter: those before every program.
        size_bytes: unpacked, as counted.
    """

    environment: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    enter: tuple[str, ...] = ()
    size_bytes: int = 0

    def encode(self) -> bytes:
        """As it is reported."""
        return json.dumps(attrs.asdict(self)).encode()


@attrs.define
class Budget:
    """What is left to be used; every entry costs something."""

    left_bytes: int
    left_entries: int = MOST_ENTRIES
    used_bytes: int = 0

    def take(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes + ENTRY_BYTES
        self.left_entries -= 1
        if self.used_bytes > self.left_bytes:
            raise NoRoom(f"unpacked it has more than the {self.left_bytes >> 20:,} MB there is room for "
                           "(CONTAINER_IMAGE_LIMIT, or the disk)")
        if self.left_entries < 0:
            raise BadImage(f"it has more than {MOST_ENTRIES:,} entries")


class _Entry(tarfile.TarInfo):
    """An entry whose header was looked at before anything is read by it.

    Theory: the library takes a negative size, and seeks back with it to what it has read, endlessly; and it reads all
    of a long name or of attributes into memory, whatever their size.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Entry:
        """An entry by its block.

        Raises:
            BadImage: it is larger than such an entry may be.
        """
        entry = super().frombuf(buf, encoding, errors)
        checked(entry)
        if entry.type in HEADERS and entry.size > MOST_HEADER_BYTES:
            raise BadImage(f"the header of an entry has {entry.size:,} bytes")
        return entry


def checked(entry: tarfile.TarInfo) -> None:
    """What its attributes say of its size may be no less than nothing either.

    Raises:
        BadImage: it is.
    """
    if entry.size < 0:
        raise BadImage(f"its entry {entry.name[:200]!r} has the size {entry.size}")


def _opened(stream: IO[bytes]) -> tarfile.TarFile:
    """A tar file at the beginning of a stream that can be sought in, compressed or not."""
    if is_zstd(stream):
        return tarfile.open(fileobj=cast("IO[bytes]", ZstdStream(stream)), mode="r:", tarinfo=_Entry)
    return tarfile.open(fileobj=stream, mode="r:*", tarinfo=_Entry)


def _apply(archive: tarfile.TarFile, tree: Tree, budget: Budget, *, layer: bool) -> None:
    """Put all entries of a tar into the tree."""
    for member in archive:
        checked(member)
        budget.take(member.size if member.isreg() else 0)
        parts = parts_of(member.name)
        if not parts:
            continue
        name = parts[-1]
        if layer and name == OPAQUE:
            tree.empty(parts[:-1])
        elif layer and name.startswith(WHITEOUT):
            tree.clear([*parts[:-1], *parts_of(name.removeprefix(WHITEOUT))])
        else:
            _put(archive, member, parts, tree)
        archive.members = []  # type: ignore[attr-defined]  # it would keep them all
    _finish(archive)


def _finish(archive: tarfile.TarFile) -> None:
    """Read a compressed stream whose tar file is over to its end, where its checksum is compared."""
    if isinstance(archive.fileobj, CHECKED):
        while archive.fileobj.read(BLOCK_BYTES):
            pass


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, parts: list[str], tree: Tree) -> None:
    folder, name = tree.folder(parts[:-1]), parts[-1]
    if member.isdir():
        try:
            if not _is_folder(name, folder):
                raise FileNotFoundError
        except FileNotFoundError:
            tree.clear(parts)
            folder = tree.folder(parts[:-1])
            os.mkdir(name, 0o755, dir_fd=folder)
        here = os.open(name, FOLDER, dir_fd=folder)
        os.fchmod(here, member.mode & 0o1777 | 0o700)
        os.close(here)
        return
    if not (member.isreg() or member.issym() or member.islnk()):
        return  # devices, pipes: a job has its own /dev
    tree.clear(parts)
    folder = tree.folder(parts[:-1])
    if member.issym():
        os.symlink(member.linkname, name, dir_fd=folder)
    elif member.islnk():
        _link(parts_of(member.linkname), folder, name, tree)
    else:
        _copy(archive, member, folder, name)


def _is_folder(name: str, folder: int) -> bool:
    import stat

    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _link(source: list[str], folder: int, name: str, tree: Tree) -> None:
    kept = os.dup(folder)
    try:
        above = tree.folder(source[:-1])
        os.link(source[-1], name, src_dir_fd=above, dst_dir_fd=kept, follow_symlinks=False)
    except (OSError, IndexError) as error:
        raise BadImage(f"its entry {name[:200]!r} is a link to a file that is not there: {error}") from None
    finally:
        os.close(kept)


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: int, name: str) -> None:
    source = archive.extractfile(member)
    if source is None:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    target = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        while block := source.read(BLOCK_BYTES):
            view = memoryview(block)
            while view:
                view = view[os.write(target, view):]
        os.fchmod(target, member.mode & 0o777 | 0o400)
    finally:
        os.close(target)


# ---- what an archive is


def _json(archive: tarfile.TarFile, name: str) -> Any:
    try:
        member = archive.getmember(name)
    except KeyError:
        raise BadImage(f"it has no {name}") from None
    stream = archive.extractfile(member) if member.size <= MOST_JSON_BYTES else None
    if stream is None:
        raise BadImage(f"its {name[:200]} cannot be read")
    return json.loads(stream.read(MOST_JSON_BYTES))


def _blob(digest: Any) -> str:
    kind, _, value = str(digest).partition(":")
    if not kind.isalnum() or not value.isalnum():
        raise BadImage(f"it names a blob {str(digest)[:100]!r}")
    return f"blobs/{kind}/{value}"


def _layers(archive: tarfile.TarFile, names: set[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Members with the layers, lowest first, and the configuration; None: the archive is the root itself."""
    if "manifest.json" in names:
        (image,) = _json(archive, "manifest.json")
        return [str(each) for each in image["Layers"]], _json(archive, str(image["Config"]))
    if "oci-layout" not in names or "index.json" not in names:
        return None
    manifest = _json(archive, "index.json")
    for _ in range(3):
        if "layers" in manifest:
            break
        manifest = _json(archive, _blob(manifest["manifests"][0]["digest"]))
    return [_blob(each["digest"]) for each in manifest["layers"]], _json(archive, _blob(manifest["config"]["digest"]))


def _listed(archive: tarfile.TarFile) -> set[str]:
    """Read all entries, of which the first are kept; which files there are that say of what kind the archive is."""
    names, kept = set(), []
    for count, member in enumerate(archive):
        checked(member)
        if count >= MOST_ENTRIES:
            raise BadImage(f"it has more than {MOST_ENTRIES:,} entries")
        if count < MOST_MEMBERS:
            kept.append(member)
        archive.members = []  # type: ignore[attr-defined]
        if member.name in ("manifest.json", "oci-layout", "index.json"):
            names.add(member.name)
    _finish(archive)
    archive.members = kept  # type: ignore[attr-defined]
    return names


def unpack(stream: IO[bytes], top: int, most_bytes: int) -> ImageFacts:
    """Unpack an image.

    Args:
        stream: the tar file, compressed or not; it can be sought in.
        top: an open empty folder.
        most_bytes: of all its files.

    Raises:
        BadImage: it cannot be used.
        OSError: the disk.
    """
    budget = Budget(most_bytes)
    with understood(), contextlib.closing(Tree(top)) as tree:
        if sif.is_sif(stream):
            sif.unpack_sif(stream, tree, budget)
            return ImageFacts(enter=sif.ENTER, size_bytes=budget.used_bytes)
        with contextlib.closing(_opened(stream)) as archive:
            names = _listed(archive)
            found = _layers(archive, names) if names & {"manifest.json", "oci-layout"} else None
            if found is not None:
                return facts_of(_apply_layers(archive, found, tree, budget), budget)
        stream.seek(0)
        with contextlib.closing(_opened(stream)) as archive:
            _apply(archive, tree, budget, layer=False)
        return ImageFacts(size_bytes=budget.used_bytes)


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """What the reading of an image raises that is none is a :class:`BadImage`."""
    try:
        yield
    except MemoryError:
        raise BadImage("it takes more memory to be read than an image may") from None
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError,
            gzip.BadGzipFile) as error:
        raise BadImage(f"it is no tar file that can be read: {error}") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise BadImage(f"its manifest cannot be understood: {type(error).__name__}: {error}") from None


def _apply_layers(archive: tarfile.TarFile, found: tuple[list[str], dict[str, Any]], tree: Tree,
                  budget: Budget) -> dict[str, Any]:
    layers, configuration = found
    if len(layers) > MOST_LAYERS:
        raise BadImage(f"it has more than {MOST_LAYERS} layers")
    for name in layers:
        stream = archive.extractfile(name)
        if stream is None:
            raise BadImage(f"its layer {name[:200]!r} is not in it")
        apply_layer(stream, tree, budget)
    return configuration


def apply_layer(stream: IO[bytes], tree: Tree, budget: Budget) -> None:
    """Put one layer over those below it.

    Raises:
        BadImage: it cannot be used; see also :func:`understood`.
        OSError: the disk.
    """
    with contextlib.closing(_opened(stream)) as layer:
        _apply(layer, tree, budget, layer=True)


def facts_of(configuration: dict[str, Any], budget: Budget) -> ImageFacts:
    said = configuration.get("config") or {}

    def words(name: str) -> Iterator[str]:
        for each in said.get(name) or ():
            if not isinstance(each, str) or NO_WORD.search(each):
                raise BadImage(f"its {name} is no list of words")
            yield each

    return ImageFacts(environment=tuple(each for each in words("Env") if "=" in each),
                      entrypoint=tuple(words("Entrypoint")), size_bytes=budget.used_bytes)


# ---- the process


def _become(account: Account) -> None:
    os.setgroups(account.groups or (account.gid,))
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)


def carry_out(account: Account | None, most_s: float, work: Callable[[], bytes]) -> None:
    """Become the account for good, do the work in time, and report what it returns.

    Raises:
        BadImage, OSError: it cannot be done.
    """
    if account is not None and os.geteuid() == 0:
        _become(account)

    def too_long(number: int, frame: object) -> None:
        raise TooLong(f"it takes more than {most_s:g} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, most_s)
    os.umask(0)
    report = work()
    if len(report) > REPORT_BYTES:
        raise BadImage("its configuration is too long")
    os.write(sys.stderr.fileno(), report)


def account_of(said: Any) -> Account | None:
    """An account as an order has it."""
    return Account(**said | {"groups": tuple(said["groups"])}) if said else None


def main() -> int:
    """Carry out the order on standard input."""
    said = json.loads(sys.stdin.buffer.read())
    order = UnpackOrder(**said | {"account": account_of(said["account"])})

    sif.load()

    def work() -> bytes:
        with open(order.archive, "rb") as stream:
            return unpack(stream, order.folder, order.most_bytes).encode()

    try:
        carry_out(order.account, order.most_s, work)
    except (BadImage, OSError) as error:
        os.write(sys.stderr.fileno(), str(error).encode(errors="replace")[:2000])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
