"""The core of the schedd: every message and event it can get, and which of its parts answers.

Theory: a turn is a message in, effects out.  The parts (submissions, actions, claims, runs, hosts, policies, notices,
demand) share the queue; after each turn the rows of changed jobs, the notices that became due and the demand that
changed are added to what the part decided.  The table is total over what can arrive: the rest is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs

from condor_actors.classads import ClassAdSyntaxError
from condor_actors.classads.evaluation.budget import TooCostly
from condor_actors.cores.flocking import home_name
from condor_actors.cores.schedd import job_query
from condor_actors.cores.schedd.claims.claim_table import ClaimTable
from condor_actors.cores.schedd.claims.request_pages import RequestPages
from condor_actors.cores.schedd.entering.entry import EntryRest
from condor_actors.cores.schedd.factories.factories import Factories
from condor_actors.cores.schedd.factories.query import factories_page
from condor_actors.cores.schedd.factories.reception import FactoryReception
from condor_actors.cores.schedd.interactive_relay import InteractiveRelay
from condor_actors.cores.schedd.job_actions import ActionRest, JobActions
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_policy import JobPolicy
from condor_actors.cores.schedd.job_status import ALIVE
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import QueueSnapshot
from condor_actors.cores.schedd.runs.run_table import RunTable
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.schedd.sets.query import sets_page
from condor_actors.cores.schedd.shadow_host_table import HostChecked, HostStarted
from condor_actors.cores.schedd.shadow_hosts import ShadowHosts
from condor_actors.cores.schedd.submission import Submissions
from condor_actors.cores.schedd.submitter_advertiser import SubmitterAdvertiser
from condor_actors.cores.site_programs.programs import SiteAdsTold
from condor_actors.effects import Answer, Effect, Persist
from condor_actors.messages.claim import ClaimRevoked, ClaimsKept
from condor_actors.messages.envelope import Delivery, Identity, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.interactive import ConnectToJob, ConnectToPort, PortData, ShellData, TailJob
from condor_actors.messages.negotiate import MatchesMade, NegotiateRequests, RequestCycle, RequestsRejected
from condor_actors.messages.pool import PartnersKnown
from condor_actors.messages.queue import ActOnJobs, EditJobs, QueryJobs, QueryTotals, RunNow
from condor_actors.messages.shadow_host import NoticesWritten, RunEnded, RunUpdated, SetJobAttributes, ShadowHostHello
from condor_actors.messages.spool import FinishSpooling
from condor_actors.messages.submission import ReserveCluster, SubmitItems, SubmitPage
from condor_actors.messages.watch import QueryChanges
from condor_actors.numerals import job_numbers

__all__ = ["AtRest", "Finish", "HostHello", "Stop", "ScheddCore"]

CREDENTIAL_RENEWAL_S = 6 * 3600.0


@attrs.frozen
class HostHello:
    """Event: a shadow host said hello; ``birth`` tells its process from others."""

    message: ShadowHostHello
    birth: str


@attrs.frozen
class Stop:
    """Event: the schedd is to end; take no new claims and give back what is idle."""

    graceful: bool


@attrs.frozen
class Finish:
    """Event: the schedd is to end when the jobs that run have finished; begin no others."""


@attrs.frozen
class AtRest(Effect):
    """Nothing runs any more, as `Finish` asked."""


class ScheddCore:
    """Decides everything that a schedd does: each message and event goes to the part that answers it.

    Args:
        settings: the configuration.
        snapshot: what the store had.
        random: the only source of chance.
        started_s: when the process began.
        version: for the ads.
    """

    def __init__(self, settings: ScheddSettings, snapshot: QueueSnapshot, random: Random, started_s: float,
                 version: str) -> None:
        context = self.context = ScheddContext(settings, random)
        context.now_s = started_s
        self.notices = JobNotices(context)
        self.transitions = JobTransitions(context, self.notices)
        self.demand = SubmitterAdvertiser(context, started_s, version)
        self.claims = ClaimTable(context, self.transitions, self.demand.flock)
        self.requests = RequestPages(context, self.transitions, self.demand.flock, self.claims.unreachable,
                                     lambda: self.claims.room, self.claims.gathering)
        self.hosts = ShadowHosts(context)
        self.policy = JobPolicy(context, self.transitions)
        self.runs = RunTable(context, self.transitions, self.notices, self.claims, self.hosts, self.policy)
        self.claims.runs = self.runs
        self.policy.runs = self.runs
        self.submissions = Submissions(context, self.transitions, self.notices)
        self.reception = FactoryReception(context, self.notices, self.submissions)
        self.factories = Factories(context, self.transitions, self.notices, self.reception.check_made)
        self.actions = JobActions(context, self.transitions, self.runs, self.factories)
        self.claims.unreachable.wish_cycle = self.demand.wish_cycle
        self.demand.flocked = self.claims.flocked
        self.submissions.rules.schedd_ad = self.runs.locals.schedd_ad = self.demand.schedd_ad
        self.relays = InteractiveRelay(context, self.hosts)
        self.runs.run_lost = self.relays.run_lost
        self._finishing = False
        self._restore(snapshot)
        self._table = self._messages()
        self._timers = self._timer_table()

    def _restore(self, snapshot: QueueSnapshot) -> None:
        self.context.checkpoint_key = snapshot.checkpoint_key
        self.context.queue.restore(snapshot)
        self.claims.restore(snapshot.claims)
        self.runs.restore(snapshot.runs)
        self.hosts.restore(snapshot.hosts)
        self.notices.restore(snapshot.notices)
        for _, cluster in sorted(self.context.queue.clusters.items()):
            for job in cluster.jobs.values():
                if job.status in ALIVE and not job.run_id:
                    self.transitions.requeue(job)
            self.transitions.offer_all(cluster, cluster.jobs.values())
        self.context.out.clear()

    def take_settings(self, settings: ScheddSettings) -> None:
        """The configuration has changed."""
        self.context.settings = settings
        self.transitions.local.changed = True
        self.factories.look_again()
        self.demand.flock.configure(settings.flock)

    def _messages(self) -> dict[type, Callable[[Any, Delivery], None]]:
        return {
            ReserveCluster: self.submissions.reserve,
            SubmitPage: self._submit,
            SubmitItems: self.reception.page,
            FinishSpooling: self.submissions.finish_spooling,
            EntryRest: self._enter,
            QueryJobs: self._query,
            QueryTotals: self._query,
            QueryChanges: self._query,
            ActOnJobs: self.actions.act,
            EditJobs: self.actions.edit,
            RunNow: self.runs.promises.run_now,
            ActionRest: lambda rest, _: self.actions.go_on(rest),
            TailJob: self.relays.tail,
            ConnectToJob: self.relays.connect,
            ConnectToPort: self.relays.connect_to_port,
            ShellData: self.relays.shell_data,
            PortData: self.relays.shell_data,
            NegotiateRequests: self._requests,
            MatchesMade: lambda message, delivery: self.claims.matched(message, delivery.identity.realm),
            RequestsRejected: self._rejected,
            RequestCycle: lambda _, __: self.demand.reschedule(),
            ClaimRevoked: lambda message, delivery: self.claims.revoked(message, delivery.identity),
            ClaimsKept: lambda message, delivery: self.claims.reconcile(message, delivery.identity),
            HostHello: self._host_hello,
            RunUpdated: self._from_host(self.runs.updated),
            RunEnded: self._from_host(self.runs.ended),
            SetJobAttributes: self._from_host(lambda message, owner: self.runs.set_attributes(
                message.run_id, message.attributes, owner)),
            NoticesWritten: self._from_host(self._written),
            HostChecked: lambda message, _: self._host_event(message.host_id, message),
            HostStarted: lambda message, _: self.hosts.process_started(message),
            PartnersKnown: lambda message, _: self.demand.know_partners(message.partners),
            PeerUp: lambda _, __: None,
            PeerDown: self._peer_down,
            Stop: self._stop,
            Finish: self._finish_runs,
            SiteAdsTold: lambda told, _: self.demand.site_told(told),
        }

    def _timer_table(self) -> dict[str, Callable[..., None]]:
        return {
            "advertise": self.demand.say,
            "advertise-all": self.demand.everything,
            "again": self._again,
            "materialize": self.factories.begin,
            "materialize-again": self.factories.full_again,
            "offer-anew": self._offer_anew,
            "scheduled": self._wake,
            "flock": self.demand.out_of_patience,
            "flock-again": self.demand.say_abroad,
            "flock-aside": self.demand.flock.take_back,
            "starts": self.claims.starts_again,
            "starts-of": self.claims.owner_starts_again,
            "renew": self.claims.renew,
            "gang": self.claims.gang_timeout,
            "locals": self.runs.locals.again,
            "idle-claim": self.claims.idle_timeout,
            "release-again": self.claims.released.tell,
            "probe-startd": self.claims.unreachable.probe,
            "aside-startd": self.claims.unreachable.aside_over,
            "policy": self.policy.round,
            "policy-slice": self.policy.slice,
            "submit-log": self.submissions.answer,
            "confirmed": self.notices.forget_confirmed,
            "notices": lambda: None,  # more of them leave with every turn
            "host-start": lambda host_id: self._host_event(host_id, TimerFired(key="host-start")),
            "host-return": lambda host_id: self._host_event(host_id, TimerFired(key="host-return")),
            "host-check": lambda host_id: self._host_event(host_id, TimerFired(key="host-check")),
            "idle-hosts": self._dismiss_idle_hosts,
            "host-again": self.runs.take_up,
            "spares": self.hosts.keep_spares,
            "credentials": self._renew_credentials,
        }

    def validate(self) -> None:
        """Check what holds between two turns, in the queue, of the claims, the shadow hosts and the runs.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        self.context.queue.validate()
        self.claims.validate()
        self.hosts.validate()
        self.runs.validate()

    # ---- turns

    def start(self, now_s: float, my_address: str) -> tuple[Effect, ...]:
        """The first turn: the process listens at ``my_address``."""
        self.context.now_s = now_s
        self.context.my_address = my_address
        self.hosts.started()
        for owner in sorted({*self.runs.orphans(), *(self.notices.owners() - self.hosts.by_owner.keys())}):
            self.runs.take_up(owner)
        self.claims.started()
        self.policy.started()
        self.transitions.scheduled.started()
        self.factories.started()
        self.demand.started()
        self.context.timer(("credentials",), CREDENTIAL_RENEWAL_S)
        return self._finish()

    def handle(self, event: Delivery, now_s: float) -> tuple[Effect, ...]:
        """What follows from a delivery at ``now_s``."""
        context = self.context
        context.now_s = now_s
        context.delivery = event
        message = event.message
        if type(message) is TimerFired:
            self._timers[message.key[0]](*message.key[1:])
        elif type(message) is Answer:
            self._answer(message)
        else:
            act = self._table.get(type(message))
            if act is None:
                context.reply(Refused(code="unknown-actor", text=f"a schedd does not take {type(message).__name__}"))
            else:
                act(message, event)
        return self._finish()

    def _finish(self) -> tuple[Effect, ...]:
        """Add what follows from changed jobs, and end the turn."""
        context = self.context
        self.factories.plan()
        if self.factories.took_made() and self.claims.has_idle:
            self.claims.offer_idle()
        if self.transitions.local and self.claims.accepting:
            self.runs.locals.round()
        self.claims.gathering.check()
        changed = context.queue.take_dirty()
        if changed:
            context.out += [Persist(operation) for operation in changed]
        self.runs.give_orders(self.notices.take_due())
        if self.actions.is_regrouped:  # no more is wanted than before, but something else
            self.actions.is_regrouped = False
            self.demand.wish_cycle()
        self.demand.plan()
        if self._finishing and not self.runs.runs and not self.notices.in_hand:
            self._finishing = False
            self.notices.forget_confirmed()
            context.out.append(AtRest())
        self.notices.end_turn()
        out, context.out = context.out, []
        context.delivery = None
        return tuple(out)

    def _answer(self, answer: Answer) -> None:
        kind = answer.tag[0]
        if kind == "join":
            self.claims.joined.answered(answer.tag[1], answer.message)
        elif kind == "claim":
            self.claims.answered(answer.tag[1], answer.message)
        elif kind == "renewed":
            self.claims.renewed(answer.tag[1], answer.message)
        elif kind == "probed":
            self.claims.unreachable.probed(answer.tag[1], answer.message)
        elif kind == "released":
            self.claims.released.answered(answer.tag[1], answer.message)
        elif kind == "flocked":
            self.demand.advertised(answer.tag[1], answer.tag[2], answer.message)
        elif kind == "relay":
            self.relays.answered(answer.tag[1], answer.message)

    # ---- queue

    def _submit(self, message: SubmitPage, delivery: Delivery) -> None:
        self.submissions.page(message, delivery)
        if message.last and self.claims.has_idle:
            self.claims.offer_idle()

    def _enter(self, rest: EntryRest, _: Delivery) -> None:
        if self.submissions.go_on(rest) and self.claims.has_idle:
            self.claims.offer_idle()

    def look_up(self, message: QueryJobs | QueryTotals | QueryChanges, identity: Identity, now_s: float) -> Any:
        """The answer to a query about the queue; it changes nothing."""
        sight = self.context.sight(identity)
        try:
            if isinstance(message, QueryChanges):
                return job_query.changes(self.context.queue, message, self.context.strangers_sight(), now_s)
            if isinstance(message, QueryTotals):
                return job_query.totals(self.context.queue, message, sight, now_s)
            if message.source == "autoclusters":
                return job_query.autoclusters_page(self.context.queue, self.context.autoclusters, message, sight,
                                                   now_s)
            if message.source == "jobsets":
                return sets_page(self.context.queue.sets, message, now_s)
            if message.source == "factories":
                return factories_page(self.context.queue, message, sight, now_s, self.context.settings.spool)
            return job_query.page(self.context.queue, message, sight, now_s)
        except ClassAdSyntaxError as error:
            return Refused(code="invalid", text=job_query.syntax_error(error, getattr(message, "constraint", "")))
        except TooCostly as error:
            return Refused(code="invalid", text=str(error))
        except ValueError:
            return Refused(code="invalid", text=f"{getattr(message, 'cursor', '')!r} is not a cursor")

    def _query(self, message: QueryJobs | QueryTotals | QueryChanges, delivery: Delivery) -> None:
        self.context.reply(self.look_up(message, delivery.identity, self.context.now_s))

    def keep_claims(self, now_s: float) -> tuple[Effect, ...]:
        """The leases of our claims start anew; for a schedd that can do nothing else now."""
        context = self.context
        context.now_s = now_s
        self.claims.renew()
        out, context.out = context.out, []
        return tuple(out)

    def _requests(self, message: NegotiateRequests, delivery: Delivery) -> None:
        if not delivery.identity.realm:
            self.demand.negotiators[delivery.identity.bearer] = delivery.sender
        self.context.reply(self.requests.page(message, delivery.identity.realm))

    def _again(self, cluster: int, proc: int) -> None:
        job = self.context.queue.job(cluster, proc)
        if job is not None:
            self.transitions.offer(job)
            if self.claims.has_idle:
                self.claims.offer_idle()
            if job.order is not None:
                self.demand.wish_cycle()

    def _offer_anew(self) -> None:
        if not self.transitions.offer_anew():
            self.demand.wish_cycle()
        if self.claims.has_idle:
            self.claims.offer_idle()

    def _wake(self) -> None:
        if self.transitions.wake():
            self.demand.wish_cycle()
        if self.claims.has_idle:
            self.claims.offer_idle()

    def _rejected(self, message: RequestsRejected, delivery: Delivery) -> None:
        for rejection in message.rejections:
            numbers = job_numbers(rejection.job_id)
            job = self.context.queue.job(*numbers) if numbers is not None else None
            if job is not None and job.ready:
                if job.ad.find("lastrejmatchreason") != rejection.reason:
                    self.context.remember(job, "no match", f"no match: {rejection.reason}")
                job.ad.store("LastRejMatchReason", rejection.reason)
                job.ad.store("LastRejMatchTime", int(self.context.now_s))
        realm = delivery.identity.realm
        submitter = home_name(message.submitter, realm)
        self.demand.unserved(submitter, realm)
        if message.rejections and submitter in self.requests.cut:
            self.requests.cut.discard(submitter)
            self.demand.wish_cycle()

    # ---- shadow hosts

    def _from_host(self, act: Callable[[Any, str], None]) -> Callable[[Any, Delivery], None]:
        """Only what comes over the link of an owner's host counts, and for that owner's runs."""

        def checked(message: Any, delivery: Delivery) -> None:
            owner = self.hosts.owner_at(delivery.sender.node)
            if owner:
                act(message, owner)
            else:
                who = delivery.identity.name
                self.context.note(f"{type(message).__name__} from {who}, who is no shadow host", "warn")

        return checked

    def _host_hello(self, message: HostHello, delivery: Delivery) -> None:
        host = self.hosts.hello(message.message, delivery, message.birth)
        if host is None:
            return
        self.runs.host_said_hello(message.message, host.owner)

    def _written(self, message: NoticesWritten, owner: str) -> None:
        known = self.notices.known(message.notice_ids, owner)
        (self.notices.wait if message.waiting else self.notices.written)(known, owner)
        self.submissions.logged(known)

    def _host_event(self, host_id: str, event: HostChecked | TimerFired) -> None:
        owner = self.hosts.lives_or_dies(host_id, event)
        if owner:
            self.runs.host_lost(owner)

    def _peer_down(self, message: PeerDown, delivery: Delivery) -> None:
        self.relays.link_lost(message.node)
        self.hosts.link_lost(message.node)
        self.submissions.link_lost(message.node)

    def _dismiss_idle_hosts(self) -> None:
        self.hosts.dismiss_idle({run.owner for run in self.runs.runs.values()} | self.notices.owners())

    def renew_credentials(self, now_s: float) -> tuple[Effect, ...]:
        """Every owner's host gets its next credential now."""
        self.context.now_s = now_s
        self._renew_credentials()
        return self._finish()

    def _renew_credentials(self) -> None:
        self.hosts.renew()
        self.context.timer(("credentials",), CREDENTIAL_RENEWAL_S)

    # ---- the end

    def _finish_runs(self, message: Finish, delivery: Delivery) -> None:
        self._finishing = True
        self.claims.accepting = False
        self.claims.release_idle("the schedd ends when its jobs have finished")

    def _stop(self, message: Stop, delivery: Delivery) -> None:
        self.claims.accepting = False
        self.claims.release_idle("the schedd is stopping")
        if message.graceful:
            for run in tuple(self.runs.runs.values()):
                self.runs.stop(run.job, "vacate", "the schedd is stopping")
        self.demand.farewell()
