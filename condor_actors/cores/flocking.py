"""Jobs that go to machines of other pools: which pools, when, and what a pool believes of another's.

Theory: a submitter's jobs are offered to the own pool first.  When its negotiator leaves some of them unserved, they
are offered to the first pool of FLOCK_TO as well, when that one leaves some unserved to the second, and so on.  So they
are when they wait for a while and no negotiator says anything, as one without machines does.  Once nothing is idle any
more, the next job begins at home again.

What another pool says is said in its own names.  They are marked with that pool's name as they come in
(:mod:`condor_actors.messages.realm`), so nobody there can be taken for a user, a machine or an accounting group here.

**Source**: Epema et al., "A worldwide flock of Condors", section 5; HTCondor's manual, "Connecting pools with
flocking".
"""

from __future__ import annotations

from collections.abc import Sequence

from condor_actors.classads import ClassAd
from condor_actors.cores.flock_terms import Judge
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import abroad, node_abroad, parted

MOST_SILENT = 5
"""So many offers in a row of which nobody answers for the machine have a pool set aside."""

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
        wanted: FLOCK_TO: names of partners, or hosts of their central managers, in the order in which they are asked.
        step: FLOCK_INCREMENT: so many pools more at a time.

    Attributes:
        targets: the pools of ``wanted`` that are partners.
        aside: those that have granted nothing of what they offered, which get no jobs for a while.
    """

    def __init__(self, wanted: Sequence[str], step: int = 1) -> None:
        self._wanted = tuple(wanted)
        self._step = step
        self._partners: tuple[KnownPartner, ...] = ()
        self.targets: tuple[KnownPartner, ...] = ()
        self._levels: dict[str, int] = {}
        self._known: tuple[tuple[str, ...], tuple[KnownPartner, ...]] = ((), ())
        self._judges: dict[str, Judge] = {}
        self._silent: dict[str, int] = {}
        self.aside: set[str] = set()

    def configure(self, wanted: Sequence[str], step: int) -> None:
        """Take a new configuration."""
        self._wanted, self._step = tuple(wanted), step
        self.learn(self._partners)

    def learn(self, partners: Sequence[KnownPartner]) -> bool:
        """These pools are partners now; returns whether that is new, or the configuration is."""
        if self._known == (self._wanted, tuple(partners)):
            return False
        self._known = self._wanted, tuple(partners)
        self._partners = tuple(partners)
        self._judges = {each.name: Judge(each.terms) for each in partners}
        found = (next((each for each in partners if each.is_called(word)), None) for word in self._wanted)
        self.targets = tuple(dict.fromkeys(each for each in found if each is not None))
        self._levels = {name: min(level, len(self.targets)) for name, level in self._levels.items() if self.targets}
        return True

    def unknown(self) -> tuple[str, ...]:
        """What FLOCK_TO names that is no partner."""
        return tuple(word for word in self._wanted if not any(each.is_called(word) for each in self._partners))

    def pools(self, submitter: str) -> tuple[KnownPartner, ...]:
        """The pools that a submitter's jobs are offered to beside its own."""
        return tuple(each for each in self.targets[:self._levels.get(submitter, 0)] if self._may_go(submitter, each))

    def _may_go(self, submitter: str, pool: KnownPartner) -> bool:
        return pool.name not in self.aside and self._judges[pool.name].sends_of(submitter)

    def sends(self, realm: str, job: ClassAd, now_s: float) -> bool:
        """Whether a job may go to a pool, by the terms for it; to the own one (``""``) it may."""
        judge = self._judges.get(realm)
        return judge is None or judge.sends(job, now_s)

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
        return self._levels.get(submitter, 0) < len(self.targets)

    def unserved(self, submitter: str, realm: str | None = None) -> bool:
        """Some of a submitter's jobs found nothing.

        Args:
            submitter: whose they are.
            realm: the pool whose negotiator says so; None: time has passed.

        Returns:
            Whether they are offered to further pools from now on.
        """
        level = self._levels.get(submitter, 0)
        last = self.targets[level - 1].name if level else ""
        if realm not in (None, last) or not self.goes_on(submitter):
            return False
        self._levels[submitter] = min(level + self._step, len(self.targets))
        return True

    def served(self, submitter: str) -> tuple[KnownPartner, ...]:
        """Nothing of a submitter's is idle any more; the pools to which its jobs were offered."""
        offered = self.targets[:self._levels.get(submitter, 0)]
        self._levels.pop(submitter, None)
        return offered
