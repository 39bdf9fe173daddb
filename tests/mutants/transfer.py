"""Bugs of the files that travel."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

_FRAMES = "tests/unit/transfer/test_numbered_frames.py"
_RESUMABLE = "tests/unit/machine/standard/test_resumable.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "file-sink-does-not-sync", "condor_actors/transfer/sinks.py",
        "        os.fsync(self._stream.fileno())\n",
        "",
        why="an output that was reported as received is empty after a power cut",
        killed_by=("tests/unit/transfer/test_sinks.py::test_what_was_committed_is_on_the_disk",)),
    Mutation(
        "file-sink-does-not-sync-its-name", "condor_actors/transfer/sinks.py",
        "        sync_folder(os.path.dirname(self._target))\n",
        "",
        why="an output that was reported as received is not there after a power cut",
        killed_by=("tests/unit/transfer/test_sinks.py::test_what_was_committed_is_on_the_disk",)),
    Mutation(
        "file-sink-does-not-verify", "condor_actors/transfer/sinks.py",
        "self.offset != self._size_bytes or self._hash.hexdigest() != self._digest",
        "self.offset != self._size_bytes",
        why="a file that changed while it was sent is taken for whole",
        killed_by=("tests/unit/transfer/test_sinks.py::test_what_was_not_announced_is_not_kept",)),
    Mutation(
        "file-sink-takes-more", "condor_actors/transfer/sinks.py",
        "if self.offset + len(data) > self._size_bytes:",
        "if self.offset > self._size_bytes:",
        why="the other side fills the disk",
        killed_by=("tests/unit/transfer/test_sinks.py::test_no_more_is_written_than_was_announced",)),
    Mutation(
        "blob-is-not-verified", "condor_actors/transfer/blob_store.py",
        "if self.offset != self.size_bytes or self._hash.hexdigest() != self.digest:",
        "if self.offset != self.size_bytes:",
        why="one user's bytes are kept under the name of another's content",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_wrong_content_is_not_kept",)),
    Mutation(
        "damaged-blob-is-given-out", "condor_actors/transfer/blob_store.py",
        'hashlib.file_digest(stream, "sha256").hexdigest() != bare_digest(digest):',
        'hashlib.file_digest(stream, "sha256").hexdigest() == "":',
        why="a job computes with an input that the disk has damaged",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_a_blob_damaged_on_disk_is_found_out_and_dropped",)),
    Mutation(
        "partial-begins-anew-with-old-bytes", "condor_actors/transfer/blob_store.py",
        "            self._hash.update(chunk)\n",
        "",
        why="no transfer that broke can ever be completed",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_a_partial_blob_is_taken_up_by_the_next_process",)),
    Mutation(
        "two-writers-of-one-partial", "condor_actors/transfer/blob_store.py",
        "        except BlockingIOError:\n            stream.close()\n            return None\n",
        "        except BlockingIOError:\n            pass\n",
        why="two shadows that send the same file write into one another's",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_two_writers_of_one_blob_do_not_meet",)),
    Mutation(
        "pinned-blobs-go", "condor_actors/transfer/blob_store.py",
        "if digest not in pinned)",
        "if digest)",
        why="the input of a run that is about to begin is forgotten",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_the_quota_forgets_what_was_used_longest_ago_and_spares_pins",)),
    Mutation(
        "newest-blobs-go-first", "condor_actors/transfer/blob_store.py",
        "oldest = sorted(",
        "oldest = list(",
        why="the cache keeps what nobody wants",
        killed_by=("tests/unit/transfer/test_blob_store.py::test_the_quota_forgets_what_was_used_longest_ago_and_spares_pins",)),
    Mutation(
        "path-that-leads-out", "condor_actors/transfer/manifest.py",
        ' or path.split("/", 1)[0] == ".."',
        "",
        why="an execute machine writes into its submitter's home directory",
        killed_by=("tests/unit/transfer/test_manifest.py::test_hostile_manifests_are_refused",)),
    Mutation(
        "link-that-leads-out", "condor_actors/transfer/manifest.py",
        'upwards > entry.path.count("/")',
        'upwards > entry.path.count("/") + 1',
        why="as above, through a symbolic link",
        killed_by=("tests/unit/transfer/test_manifest.py::test_hostile_manifests_are_refused",)),
    Mutation(
        "file-below-a-link", "condor_actors/transfer/manifest.py",
        'if kinds.get(parent, "directory") != "directory":',
        'if kinds.get(parent, "directory") not in ("directory", "link"):',
        why="as above, through a link of the same manifest",
        killed_by=("tests/unit/transfer/test_manifest.py::test_hostile_manifests_are_refused",)),
    Mutation(
        "setuid-bits-travel", "condor_actors/transfer/manifest.py",
        "if entry.mode & ~0o777:",
        "if entry.mode & ~0o7777:",
        why="an output becomes a set-user-ID program in its owner's home",
        killed_by=("tests/unit/transfer/test_manifest.py::test_hostile_manifests_are_refused",)),
    Mutation(
        "inline-content-is-believed", "condor_actors/transfer/manifest.py",
        "len(entry.inline) != entry.size_bytes or digest_bytes(entry.inline) != entry.digest",
        "len(entry.inline) != entry.size_bytes",
        why="content that is not what the manifest says",
        killed_by=("tests/unit/transfer/test_manifest.py::test_hostile_manifests_are_refused",)),
    Mutation(
        "link-in-the-way-is-followed", "condor_actors/transfer/layout.py",
        "                os.unlink(target)\n",
        "                os.unlink(os.path.realpath(target))\n",
        why="an output replaces the file that a link of its name leads to",
        killed_by=("tests/unit/transfer/test_manifest.py::test_a_link_in_the_way_is_replaced_not_followed",)),
    Mutation(
        "any-blob-of-the-store", "condor_actors/transfer/service.py",
        "if grant.store is None or digest not in grant.readable:",
        "if grant.store is None:",
        why="a run reads the files of every other run whose digest it knows",
        killed_by=("tests/unit/transfer/test_service.py::test_a_run_reads_its_own_blobs_only",)),
    Mutation(
        "any-blob-may-be-put", "condor_actors/transfer/service.py",
        "if grant.store is None or (grant.writable is not None and digest not in grant.writable):",
        "if grant.store is None:",
        why="a shadow fills a machine's store with what no run wants",
        killed_by=("tests/unit/transfer/test_service.py::test_a_run_is_given_what_it_wants_only",)),
    Mutation(
        "key-of-a-run-that-is-over", "condor_actors/transfer/service.py",
        "        if self._service.grant(self._key) is not self._grant:\n",
        "        if self._service is None:\n",
        why="a transfer goes on after its run was ended",
        killed_by=("tests/unit/transfer/test_service.py::test_a_transfer_ends_with_its_run",)),
    Mutation(
        "pieces-are-believed", "condor_actors/transfer/image_pieces.py",
        "if len(data) != piece.length or hashlib.sha256(data).digest() != piece.digest:",
        "if len(data) != piece.length:",
        why="a program goes on from memory that someone changed",
        killed_by=("tests/unit/transfer/test_image_pieces.py::test_pieces_that_lie_are_refused",)),
    Mutation(
        "old-image-is-believed", "condor_actors/transfer/image_pieces.py",
        "if have is not None and hashlib.sha256(data).digest() == piece.digest:",
        "if have is not None:",
        why="a program goes on from an image that the disk has damaged",
        killed_by=("tests/unit/transfer/test_image_pieces.py::test_an_old_image_that_is_not_what_its_list_says_is_not_used",)),
    Mutation(
        "frame-is-forgotten-early", "condor_actors/transfer/numbered_frames.py",
        "        for _ in range(new):\n",
        "        for _ in range(new + 1 if len(self._kept) > new else new):\n",
        why="a call of a standard-universe job is lost with the connection that broke, and its program waits forever",
        killed_by=(f"{_FRAMES}::test_what_has_not_arrived_is_kept_in_order",)),
    Mutation(
        "acknowledgement-goes-back", "condor_actors/transfer/numbered_frames.py",
        "        if not 0 <= new <= len(self._kept):\n",
        "        if not new <= len(self._kept):\n",
        why="the other end says that it has lost what it had, and gets other frames under the old numbers",
        killed_by=(f"{_FRAMES}::test_no_more_arrives_than_was_sent_and_nothing_goes_back",)),
    Mutation(
        "stream-is-never-full", "condor_actors/transfer/numbered_frames.py",
        "        return self._kept_bytes >= WINDOW_BYTES\n",
        "        return False\n",
        why="a line that is cut fills the memory of the shadow host",
        killed_by=(f"{_FRAMES}::test_it_is_full_until_something_arrives",)),
    Mutation(
        "resumed-stream-sends-nothing-again", "condor_actors/machine/standard/resumable.py",
        "        for frame in numbers.unacknowledged:\n            self._write(frame)\n",
        "",
        why="what was on its way when the connection broke is lost",
        killed_by=(f"{_RESUMABLE}::test_every_frame_comes_once_and_in_order_wherever_connections_break",)),
    Mutation(
        "old-connection-is-read", "condor_actors/machine/standard/resumable.py",
        "        if line is self._line:\n            super().dataReceived(data)\n",
        "        super().dataReceived(data)\n",
        why="what comes late over the connection before is taken for the new one's, and calls are done twice",
        killed_by=(f"{_RESUMABLE}::test_what_comes_late_over_the_connection_before_comes_once",)),
    Mutation(
        "half-a-frame-survives", "condor_actors/machine/standard/resumable.py",
        "        self._reader = ss.StreamReader()\n",
        "",
        why="half a frame of the connection that broke is put before the first of the next one",
        killed_by=(f"{_RESUMABLE}::test_every_frame_comes_once_and_in_order_wherever_connections_break",)),
    Mutation(
        "ended-stream-is-silent", "condor_actors/machine/standard/resumable.py",
        "        self._write(ss.frame(ss.OVER))\n",
        "",
        why="a machine waits for the whole lease of a job that was removed",
        killed_by=(f"{_RESUMABLE}::test_one_that_is_ended_does_not_wait_at_the_other_end",)),
)
