"""What messages do that is written down: for the audit log, by kind.

Theory: a change to others' property, or a gain of rights by a message, leaves a line with the action and its object.
One table says which kinds these are, what the action is called and which fields name its object; nothing else of a
message is ever shown, so that no secret of one gets into a log.  A kind that is in neither table has no action: it
asks, answers, or is part of the conversation of a run that began with one that has.
"""

from __future__ import annotations

from typing import Any

from condor_actors import records

__all__ = ["AUDITED_ACTIONS", "QUIET", "AuditedAction", "audited_action_of"]

FIELD_CHARS = 300


@records.frozen
class AuditedAction:
    """What a kind of message does.

    Attributes:
        action: its name; ``{field}`` stands for a field.
        fields: those that name its object.
    """

    action: str
    fields: tuple[str, ...] = ()


_TABLE = """
condor.queue.ActOnJobs                 {action}-jobs        ids constraint reason
condor.queue.EditJobs                  edit-jobs            ids constraint
condor.queue.RunNow                    run-job-now          job vacate
condor.submission.ReserveCluster       reserve-cluster
condor.submission.SubmitPage           submit               cluster_id page
condor.submission.SubmitItems          submit               cluster_id page repeat
condor.spool.SpoolChunk                spool-input          cluster_id proc_id path offset
condor.spool.ReadSpool                 read-spool           cluster_id proc_id path offset
condor.spool.FinishSpooling            finish-spooling      cluster_id
condor.interactive.TailJob             tail-job             cluster_id proc_id path
condor.interactive.ConnectToJob        shell                cluster_id proc_id
condor.interactive.ConnectToPort       connect-to-port      cluster_id proc_id port
condor.interactive.OpenShell           open-shell           run_id
condor.interactive.OpenPort            open-port            run_id port
condor.interactive.ReadRunFile         read-run-file        run_id path
condor.run.ActivateClaim               activate-claim       claim_id run_id
condor.run.ReattachRun                 reattach-run         claim_id run_id
condor.run.StopRun                     stop-run             run_id how
condor.run.SuspendRun                  suspend-run          run_id
condor.run.ContinueRun                 continue-run         run_id
condor.claim.RequestClaim              request-claim        slot_name owner submitter schedd_name
condor.claim.JoinClaims                join-claims
condor.claim.DeclineMatch              decline-match        slot_name submitter
condor.claim.ReleaseClaim              release-claim        claim_id reason
condor.claim.ClaimRevoked              revoke-claim         claim_id reason final
condor.claim.ClaimsKept                move-claims          startd
condor.claim.StarterHostHello          starter-host         node pid
condor.claim.OpenClaim                 open-claim           claim_id slot_name owner
condor.claim.CloseClaim                close-claim          claim_id reason
condor.shadow_host.ShadowHostHello     shadow-host          owner
condor.credentials.StoreCredential     store-credential     service handle
condor.credentials.DeleteCredential    delete-credential    user service handle everything
condor.credentials.QueryCredentials    list-credentials     user
condor.credentials.FetchTokens         fetch-tokens         wanted
condor.admin.Reconfigure               reconfigure
condor.admin.Shutdown                  shutdown             how
condor.admin.DaemonCommand             {command}-daemons    daemons how
condor.admin.SetConfig                 set-config           name persistent
condor.admin.VacateSlots               vacate               slots fast finish reason
condor.admin.Drain                     drain                how on_completion reason
condor.admin.CancelDrain               cancel-drain         request_id
condor.owner.PauseMachine              pause-machine        duration_s how
condor.owner.ResumeMachine             resume-machine
condor.negotiate.SetPriority           set-priority         submitter what value duration_s
condor.negotiate.MakeReservation       make-reservation     name submitter machines
condor.negotiate.CancelReservation     cancel-reservation   name
condor.pool.EnrolMachine               enrol-machine        token_id hosts
condor.pool.RenewMachine               renew-machine
condor.pool.BorrowCertificate          borrow-certificate
condor.tokens.FetchToken               fetch-token          levels lifetime_s key_id
condor.tokens.ApproveTokenRequest      approve-token        request_id
condor.tokens.AutoApproveTokenRequests auto-approve-tokens  netblock lifetime_s
condor.tokens.RevokeTokens             revoke-tokens        ids expressions
"""

AUDITED_ACTIONS: dict[str, AuditedAction] = {
    kind: AuditedAction(action, tuple(fields))
    for kind, action, *fields in (line.split() for line in _TABLE.splitlines() if line.strip())}
"""The table, by kind."""

QUIET = frozenset({
    "condor.advertise.InvalidateAd", "condor.advertise.UpdateAd", "condor.advertise.SubscribeAds",
    "condor.advertise.OfflineMatched",
    "condor.admin.DaemonStarted", "condor.admin.IdleReading", "condor.negotiate.RequestCycle",
    "condor.negotiate.NegotiateRequests", "condor.negotiate.MatchesMade", "condor.negotiate.RequestsRejected",
    "condor.negotiate.MatchNotice", "condor.claim.RenewClaims", "condor.claim.ClaimActivity", "condor.spool.ListSpool",
    "condor.claim.CheckpointClaim", "condor.claim.SuspendClaim", "condor.claim.ContinueClaim",
    "condor.claim.LowerClaim", "condor.tokens.VerifyToken", "condor.credentials.CheckServices",
})
"""Kinds above READ that have no action: daemons say them all day, about themselves or as part of a match or a claim.
When one is refused at the door that is written down all the same."""


def audited_action_of(message: Any) -> tuple[str, str] | None:
    """What a message does, and to what (``field=value`` and so on); None when that is not written down."""
    audited = AUDITED_ACTIONS.get(getattr(message, "KIND", ""))
    if audited is None:
        return None
    action = audited.action
    if action.startswith("{"):
        name, _, rest = action[1:].partition("}")
        action = f"{_shown(getattr(message, name, ''))}{rest}"
    values = [(name, getattr(message, name, "")) for name in audited.fields]
    return action, " ".join(f"{name}={_shown(value)}" for name, value in values if value not in ("", ()))


def _shown(value: Any) -> str:
    """A value in a few words; what is long is cut, job ids are written as ``1.0`` and ``1`` for a cluster."""
    if isinstance(value, tuple):
        many = [_shown(each) if not _is_job(each) else _job(each) for each in value[:20]]
        return ",".join(many)[:FIELD_CHARS] + (f",… ({len(value)})" if len(value) > len(many) else "")
    text = str(getattr(value, "value", value))
    return text if len(text) <= FIELD_CHARS else f"{text[:FIELD_CHARS]}…"


def _is_job(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, int) for each in value)


def _job(value: tuple[int, int]) -> str:
    return f"{value[0]}.{value[1]}" if value[1] >= 0 else str(value[0])
