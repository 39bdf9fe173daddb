"""Jobs that go to machines of other pools: which pools, when, and what a pool believes of another's.

Theory: a submitter's jobs are offered to the own pool first.  When its negotiator leaves some of them unserved, they
are offered to the first of the default pools as well, when that one leaves some unserved to the second, and so on.  So
they are when they wait for a while and no negotiator says anything, as one without machines does.  Once nothing is idle
any more, the next job begins at home again.  Pools that are no defaults, which jobs name themselves, come after these,
and get none but these jobs (:mod:`condor_actors.cores.flock_lists`).

What another pool says is said in its own names.  They are marked with that pool's name as they come in
(:mod:`condor_actors.messages.realm`), so nobody there can be taken for a user, a machine or an accounting group here.

**Source**: Epema et al., "A worldwide flock of Condors", section 5; HTCondor's manual, "Connecting pools with
flocking".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from condor_actors.classads import ClassAd
from condor_actors.cores.flock_lists import DEFAULT, FlockLists, named_pools
from condor_actors.cores.flock_terms import Judge
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import abroad, node_abroad, parted

MOST_SILENT = 5
"""So many offers in a row of which nobody answers for the machine have a pool set aside."""
MOST_LOOKED_AT = 1_000
"""So many kinds of a submitter's jobs, the best first, are looked at for the pools that they name."""

__all__ = ["FlockLevels", "foreign_job", "foreign_slot", "foreign_submitter", "home_name"]


def home_name(name: str, realm: str) -> str:
    """A submitter as its own schedd has it, from what another pool's negotiator calls it."""
    return parted(name)[0] if realm else name


def foreign_submitter(ad: ClassAd, realm: str) -> None:
    """Mark the names and addresses in the ad of another pool's submitter with that pool's."""
    for attribute in ("Name", "Machine", "ScheddName"):
        ad[attribute] = abroad(ad.get_str(attribute), realm)
    for attribute in ("MyAddress", "ScheddIpAddr"):
        ad[attribute] = node_abroad(ad.get_str(attribute), realm)
    ad["FlockFrom"] = realm


def foreign_job(ad: ClassAd, submitter: str) -> None:
    """Say in a job's ad whose it is, where its submitter is of another pool; that pool's word on it counts for nothing.

    Args:
        ad: as policies are evaluated with it here.
        submitter: as it is called here.
    """
    account, realm = parted(submitter)
    if not realm:
        return
    user, _, domain = account.rpartition("@")
    ad["Owner"] = abroad(user.rpartition(".")[2] or user, realm)
    ad["User"] = submitter
    ad["FlockFrom"] = realm
    ad["NTDomain"] = ad["UidDomain"] = abroad(domain, realm)
    ad["AccountingGroup"] = ad["AcctGroup"] = ad["AcctGroupUser"] = submitter


def foreign_slot(text: bytes, realm: str) -> bytes:
    """The ad of another pool's slot, with that pool behind the slot's name and address.

    Args:
        text: the ad.
        realm: the pool; empty: this one, and the ad stays as it is.
    """
    if not realm:
        return text
    ad = ClassAd.from_bytes(text)
    ad["Name"] = abroad(ad.get_str("Name"), realm)
    for attribute in ("MyAddress", "StartdIpAddr"):
        if ad.find(attribute.lower()) is not None:
            ad[attribute] = node_abroad(ad.get_str(attribute), realm)
    return ad.to_bytes()


class FlockLevels:
    """How far each submitter's jobs are offered.

    Args:
        lists: which pools jobs may go to, which of them are defaults, and how fast they are offered there.

    Attributes:
        targets: the pools of FLOCK_TO that are partners, the default ones first.
        aside: those that have granted nothing of what they offered, which get no jobs for a while.
    """

    def __init__(self, lists: FlockLists) -> None:
        self._lists = lists
        self._partners: tuple[KnownPartner, ...] = ()
        self.targets: tuple[KnownPartner, ...] = ()
        self._default: tuple[KnownPartner, ...] = ()
        self._offered: dict[str, tuple[str, ...]] = {}
        """The names of the pools to which each submitter's jobs are offered, the last one last."""
        self._known: tuple[FlockLists, tuple[KnownPartner, ...]] = (FlockLists(), ())
        self._judges: dict[str, Judge] = {}
        self._silent: dict[str, int] = {}
        self.aside: set[str] = set()

    def configure(self, lists: FlockLists) -> None:
        """Take a new configuration."""
        self._lists = lists
        self.learn(self._partners)

    def learn(self, partners: Sequence[KnownPartner]) -> bool:
        """These pools are partners now; returns whether that is new, or the configuration is."""
        if self._known == (self._lists, tuple(partners)):
            return False
        self._known = self._lists, tuple(partners)
        self._partners = tuple(partners)
        self._judges = {each.name: Judge(each.terms) for each in partners}
        permitted = self._called(self._lists.permitted)
        self._default = tuple(each for each in self._called(self._lists.default) if each in permitted)
        self.targets = tuple(dict.fromkeys((*self._default, *permitted)))
        return True

    def _called(self, words: Sequence[str]) -> tuple[KnownPartner, ...]:
        """The partners that words mean, in that order."""
        found = (next((each for each in self._partners if each.is_called(word)), None) for word in words)
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def unknown(self) -> tuple[str, ...]:
        """What FLOCK_TO names that is no partner."""
        return tuple(word for word in self._lists.permitted
                     if not any(each.is_called(word) for each in self._partners))

    def not_permitted(self) -> tuple[str, ...]:
        """Partners that FLOCK_COLLECTOR_HOSTS names and FLOCK_TO does not: no jobs go there."""
        permitted = self._called(self._lists.permitted)
        return tuple(each.name for each in self._called(self._lists.default) if each not in permitted)

    def pools(self, submitter: str) -> tuple[KnownPartner, ...]:
        """The pools that a submitter's jobs are offered to beside its own."""
        return tuple(each for each in self._offers(submitter) if self._may_go(submitter, each))

    def _offers(self, submitter: str) -> tuple[KnownPartner, ...]:
        """The same, with those that the terms shut to this submitter."""
        first = self._default[:self._lists.least] if self._lists.is_default else ()
        by_name = {each.name: each for each in self.targets}
        later = (by_name[name] for name in self._offered.get(submitter, ()) if name in by_name)
        return tuple(dict.fromkeys((*first, *later)))

    def _may_go(self, submitter: str, pool: KnownPartner) -> bool:
        return pool.name not in self.aside and self._judges[pool.name].sends_of(submitter)

    def sends(self, realm: str, job: ClassAd, now_s: float) -> bool:
        """Whether a job may go to a pool, by the lists and by the terms for it; to the own one (``""``) it may."""
        if not realm:
            return True
        judge = self._judges.get(realm)
        return self._names(realm, job) and (judge is None or judge.sends(job, now_s))

    def _names(self, realm: str, job: ClassAd) -> bool:
        """Whether a pool is one of the defaults and they are meant, or the job names it."""
        said = named_pools(job.find("flockto"))
        if (self._lists.is_default or DEFAULT in said) and any(each.name == realm for each in self._default):
            return True
        return bool(said) and any(each.name == realm and any(map(each.is_called, said)) for each in self.targets)

    def attributes(self, realm: str) -> frozenset[str]:
        """What of a job decides on that, in small letters."""
        judge = self._judges.get(realm)
        return frozenset() if judge is None else judge.send_attributes()

    def answered(self, realm: str, is_answer: bool) -> bool:
        """A machine that a pool has offered says something, or nothing; whether that pool is set aside for it now."""
        if is_answer or not realm:
            self._silent.pop(realm, None)
            return False
        self._silent[realm] = self._silent.get(realm, 0) + 1
        if self._silent[realm] < MOST_SILENT or realm in self.aside:
            return False
        self.aside.add(realm)
        return True

    def take_back(self, realm: str) -> None:
        """A pool that was set aside is believed again."""
        self.aside.discard(realm)
        self._silent[realm] = MOST_SILENT - 1

    def reaches(self, submitter: str, realm: str) -> bool:
        """Whether a submitter's jobs are offered to a pool; the own one is ``""``."""
        return not realm or any(each.name == realm for each in self.pools(submitter))

    def goes_on(self, submitter: str) -> bool:
        """Whether there are pools left to which a submitter's jobs are not offered."""
        return len(self._offers(submitter)) < len(self.targets)

    def unserved(self, submitter: str, realm: str | None = None, jobs: Iterable[ClassAd] = ()) -> bool:
        """Some of a submitter's jobs found nothing.

        Args:
            submitter: whose they are.
            realm: the pool whose negotiator says so; None: time has passed.
            jobs: those that wait, one of each kind, the best first: the pools that they name come after the defaults.

        Returns:
            Whether they are offered to further pools from now on.
        """
        offered = self._offers(submitter)
        last = offered[-1].name if offered else ""
        if realm not in (None, last) or not self.goes_on(submitter):
            return False
        left = [each for each in self._wanted(jobs) if each not in offered][:self._lists.step]
        self._offered[submitter] = (*(each.name for each in offered), *(each.name for each in left))
        return bool(left)

    def _wanted(self, jobs: Iterable[ClassAd]) -> tuple[KnownPartner, ...]:
        """The pools that some of the jobs may go to, in the order in which they are asked."""
        if self._lists.is_default and len(self._default) == len(self.targets):
            return self.targets
        said = {word for job in islice(jobs, MOST_LOOKED_AT) for word in named_pools(job.find("flockto"))}
        default = self._default if self._lists.is_default or DEFAULT in said else ()
        return tuple(each for each in self.targets if each in default or any(map(each.is_called, said)))

    def served(self, submitter: str) -> tuple[KnownPartner, ...]:
        """Nothing of a submitter's is idle any more; the pools to which its jobs were offered."""
        offered = self._offers(submitter)
        self._offered.pop(submitter, None)
        return offered
