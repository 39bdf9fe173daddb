"""Runs, shadow hosts and events for their tables: the diagrams are drawn from what they do, and the tests walk them."""

from __future__ import annotations

import errno
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd import shadow_host_table as hosts
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow import shadow_events as sh
from condor_actors.cores.shadow import standard_run as st
from condor_actors.cores.shadow.grid_run import GridRun
from condor_actors.cores.shadow.shadow_checkpoint import CheckpointAside, CheckpointHome
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.shadow.slurm_jobs import SLURM
from condor_actors.cores.starter import run_events as jr
from condor_actors.cores.starter.job_run import JobRun
from condor_actors.cores.starter.run_spec import read_spec
from condor_actors.effects import Answer
from condor_actors.messages import run as m
from condor_actors.messages.envelope import Address, AskFailed, Identity, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.shadow_host import StartRun

RUN, NODE = "1.0#1@s", "<e:1>"
JOB = 'Cmd = "/bin/x"\nOwner = "alice"\nUser = "alice@dom"\nClusterId = 1\nProcId = 0\nShouldTransferFiles = "YES"\n'
SMALL, LARGE = (FileEntry(path=name, size_bytes=size) for name, size in (("small", 10), ("large", 9 << 20)))

STARTER_EVENTS: tuple[Any, ...] = (
    m.InputsSent(run_id=RUN), jr.Prepared(), jr.PrepareFailed("no room", 13, 2), jr.Began(77, "/scratch"),
    jr.StartFailed("no such program"), jr.ProgramEnded(0, -1, False), jr.ProgramEnded(85, -1, False),
    jr.ProgramEnded(-1, 9, True), jr.ProgramEnded(1, -1, False),
    jr.TreeGone(m.Usage(user_cpu_s=1.0)), jr.TreeGone(m.Usage(), oom=True),
    jr.Gathered(entries=(SMALL,)), jr.Gathered(missing=("b",)), jr.Gathered(error="unreadable"),
    jr.Measured(m.Usage(user_cpu_s=2.0)), jr.Measured(m.Usage(disk_kib=9), "too much disk", 104),
    *(m.StopRun(run_id=RUN, how=how, reason="asked") for how in ("vacate", "fast", "remove", "hold")),
    *(jr.CloseRun(grace_s=grace_s, reason="the owner", hold=hold, hold_code=21) for grace_s in (0.0, 30.0)
      for hold in (False, True)),
    m.SuspendRun(run_id=RUN), m.ContinueRun(run_id=RUN), jr.OwnerSuspends(), jr.OwnerContinues(),
    m.OutputsReceived(run_id=RUN), m.ReattachRun(claim_id="c", secret="s", run_id=RUN), jr.LinkLost(), jr.Abandon(),
    m.CheckpointRun(run_id=RUN), m.CheckpointKept(run_id=RUN, number=1), jr.StillFetched(),
    m.CheckpointKept(run_id=RUN, number=1, problem="the disk is full"),
    *(TimerFired(key=key) for key in ("grace", "again", "lease", "keep", "deferral")),
)

_EXITED = m.RunExited(run_id=RUN, cause="exited", usage=m.Usage(user_cpu_s=3.0), when_s=1.0, exit_code=0)
_REFUSED = Refused(code="not-found", text="no such run")

SHADOW_EVENTS: tuple[Any, ...] = (
    sh.InputsReady((SMALL,)), sh.InputsReady(()), sh.InputsReady((LARGE,)), sh.InputsFailed("no such file"),
    sh.OutputsNewer(),
    Answer("activate", m.Activated(run_id=RUN)), Answer("activate", m.Activated(run_id=RUN, missing=("d",))),
    Answer("activate", _REFUSED), Answer("reattach", _REFUSED), Answer("reattach", Refused(code="busy", text="later")),
    *(Answer(tag, AskFailed(reason=reason, text=text, question=None)) for tag in ("activate", "reattach")
      for reason, text in (("timeout", "no answer"), ("unreachable", "no route"), ("unreachable", "Refused"))),
    *(Answer("reattach", m.Reattached(run_id=RUN, pid=pid, ended=ended)) for pid in (0, 7) for ended in (False, True)),
    m.Activated(run_id=RUN, missing=("d",)), m.Activated(run_id=RUN), sh.BlobsSent(),
    sh.BlobsFailed("no room", True), sh.BlobsFailed("the link broke", False),
    m.RunBegan(run_id=RUN, when_s=1.0, pid=7, scratch_dir="/scratch"),
    *(m.RunProgress(run_id=RUN, usage=m.Usage(memory_kib=kib), state=state, streams=streams)
      for kib, state, streams in ((0, "", ()), (9000, "suspended", ()), (9000, "continued", (("out", 0, b"x"),)))),
    _EXITED, attrs.evolve(_EXITED, outputs=(SMALL,)), attrs.evolve(_EXITED, outputs=(LARGE,)),
    attrs.evolve(_EXITED, cause="evicted", outputs=(SMALL,), exit_code=-1, claim_open=False),
    attrs.evolve(_EXITED, cause="hold", hold_code=34, exit_code=-1), attrs.evolve(_EXITED, cause="start-failed"),
    attrs.evolve(_EXITED, exit_code=-1, exit_signal=9),
    sh.OutputsHome(10), sh.OutputsFailed("not writable"), sh.OutputsFailed("the link broke", remote=True),
    sh.OutputsFailed("no room", errno.ENOSPC),
    m.SuspendRun(run_id=RUN), m.ContinueRun(run_id=RUN),
    *(m.StopRun(run_id=RUN, how=how, reason="asked") for how in ("vacate", "fast", "remove", "hold", "lost")),
    PeerUp(node=NODE, identity=Identity(name="execute@e")),
    PeerDown(node=NODE, reason="reset"), sh.Settled(), sh.ScheddBack(),
    m.RunCheckpointed(run_id=RUN, number=1, usage=m.Usage()), CheckpointHome(1, "", 5), CheckpointHome(1, "no room"),
    CheckpointAside(1), CheckpointAside(0), CheckpointAside(0, "no room"),
    *(TimerFired(key=key) for key in ("update", "lease", "reattach", "room")),
)

_FACTS = st.CheckpointFacts(digest="d", generation="1.1", size_bytes=9, stored_bytes=8, sent_bytes=7,
                           cpu_level=3, threads=1, took_s=0.5)

STANDARD_EVENTS: tuple[Any, ...] = (
    *SHADOW_EVENTS, st.HomeOpen(False), st.HomeOpen(True), st.HomeFailed("no checkpoint"),
    st.HomeFailed("no such file", 13), m.CheckpointRun(run_id=RUN), st.Checkpointed(_FACTS),
    st.Checkpointed(_FACTS, last=True), st.NotTaken(11, "helpers run"), st.NotTaken(5, "no room"),
    st.ProgramExited(0), st.ProgramExited(0, 2, "no such program"), st.HomeEnded("the stream broke"),
    st.HomeProblem("/u/out: a write failed"),
    st.HomeStatistics(calls=4, local_cpu_s=0.5, by_name=(("read", 4),)),
    *(TimerFired(key=key) for key in ("checkpoint", "home", "word")),
)


def starters() -> list[JobRun]:
    """Runs as they begin at a starter: with and without inputs on the way, transfer, and checkpoints of their own."""
    runs = []
    for extra, missing in (("", False), ("", True), ('ShouldTransferFiles = "NO"\n', False), (
            'DeferralTime = 1000\n', False), (
            'SuccessCheckpointExitCode = 85\nWhenToTransferOutput = "ON_EXIT_OR_EVICT"\nTransferCheckpoint = "c"\n',
            False)):
        run = JobRun(RUN, read_spec(ClassAd.from_text(JOB + extra)), lease_s=2400.0)
        run.start(0.0, missing=missing)
        runs.append(run)
    return runs


def _order(reattach: bool) -> StartRun:
    return StartRun(run_id=RUN, job_ad=b"", claim_id="c", secret="s", starter_node=NODE, slot_name="slot1@e",
                      slot_ad=b"", lease_s=300.0, reattach=reattach)


def shadows(kind: type[ShadowRun] = ShadowRun) -> list[ShadowRun]:
    """Runs as they begin at a shadow: new ones, and one that another shadow began."""
    runs = []
    for extra, reattach in (("", False), ("MaxTransferInputMB = 1\nMaxTransferOutputMB = 1\n", False), ("", True)):
        run = kind(_order(reattach), ClassAd.from_text(JOB + extra), "key")
        run.start(0.0)
        runs.append(run)
    return runs


def standards() -> list[ShadowRun]:
    """The same of the standard universe, and one of whose exit a former shadow host has left a note."""
    noted = st.StandardRun(_order(True), ClassAd.from_text(JOB), "key", 0)
    noted.start(0.0)
    return [*shadows(st.StandardRun), noted]


_HERE, _BEGUN = gr.FolderRecord(prepared=True), gr.FolderRecord(prepared=True, claim="7", began_s=5.0)
_DONE = gr.FolderRecord(prepared=True, claim="7", began_s=5.0, status=0)

GRID_EVENTS: tuple[Any, ...] = (
    gr.Prepared(), gr.FilesFailed("no such file", 13, 2), gr.Submitted("7"),
    gr.SubmitFailed("no answer", transient=True), gr.SubmitFailed("no such partition", transient=False),
    *(gr.Looked(found, record) for record in (gr.FolderRecord(), _HERE, _BEGUN, _DONE)
      for found in ((), (gr.BatchJob("7", "PENDING"),), (gr.BatchJob("7", "RUNNING"),))),
    *(gr.Looked((gr.BatchJob("7", state),), _BEGUN) for state in ("CANCELLED", "NODE_FAIL")),
    gr.Unavailable("down"), gr.Unavailable("down", _BEGUN), gr.Unavailable("down", _DONE),
    gr.Withdrawn(), gr.Withdrawn("7"), gr.Brought(), gr.Cancelled(True), gr.Cancelled(False),
    m.StopRun(run_id=RUN, how="remove", reason="asked"), sh.ScheddBack(), sh.Settled(),
    *(TimerFired(key=key) for key in ("look", "cancel")),
)


def grids() -> list[GridRun]:
    """Runs as they begin at a grid manager: a new one, and one that another grid manager began."""
    runs = []
    for reattach in (False, True):
        run = GridRun(_order(reattach), ClassAd.from_text(JOB), gr.GridSettings(retries=1), SLURM)
        run.start(0.0)
        runs.append(run)
    return runs


_LINK = Address("in:1", "shadow-host")

HOST_EVENTS: tuple[Any, ...] = (
    hosts.HostStarted("h", 7, "boot"), hosts.HostIntroduced(_LINK, ""), hosts.HostIntroduced(_LINK, "alice"),
    hosts.OwnerWants("alice"), hosts.HostLinkLost(), hosts.ScheddStarted(), hosts.HostChecked("h", alive=True),
    hosts.HostChecked("h", alive=False), hosts.IdleCheck(busy=True), hosts.IdleCheck(busy=False),
    hosts.CredentialDue(), *(TimerFired(key=f"host-{key}") for key in ("start", "check", "return")),
)


def shadow_hosts() -> list[hosts.Host]:
    """One that starts for nobody, one that starts for an owner, an owner's that has long been idle."""
    return [hosts.Host("h", ""), hosts.Host("h", "alice"),
            hosts.Host("h", "alice", hosts.HostState.READY, _LINK, 7, "boot", assigned=True, hello_s=-5000.0)]
