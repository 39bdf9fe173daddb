"""``Collector``, ``Negotiator``, ``Startd``, and the functions that talk to any daemon."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from condor_actors.api import collector, daemons, negotiator, startd
from condor_actors.api.errors import CondorError
from condor_actors.classads import ClassAd as OwnAd
from condor_actors.classads import quote
from condor_actors.compat.classad2 import ClassAd, ExprTree, own_ad, wrapped
from condor_actors.compat.errors import HTCondorException, NotSupported, as_theirs
from condor_actors.compat.htcondor2.enums import (
    AdType,
    CompletionType,
    DaemonCommand,
    DaemonType,
    DrainType,
    VacateType,
)
from condor_actors.messages.advertise import AdKind

KINDS: dict[AdType, AdKind] = {
    AdType.Startd: AdKind.SLOT, AdType.Slot: AdKind.SLOT, AdType.Schedd: AdKind.SCHEDD, AdType.Master: AdKind.MASTER,
    AdType.Submitter: AdKind.SUBMITTER, AdType.Collector: AdKind.COLLECTOR, AdType.Negotiator: AdKind.NEGOTIATOR,
    AdType.Generic: AdKind.GENERIC, AdType.StartDaemon: AdKind.STARTD, AdType.Accounting: AdKind.ACCOUNTING,
}  # fmt: skip
"""Kinds of ads that this pool has; of the others there are none."""
OF_DAEMONS = {
    DaemonType.Master: AdType.Master, DaemonType.Startd: AdType.Startd, DaemonType.Schedd: AdType.Schedd,
    DaemonType.Negotiator: AdType.Negotiator, DaemonType.Generic: AdType.Generic, DaemonType.HAD: AdType.HAD,
    DaemonType.Credd: AdType.Credd, DaemonType.Collector: AdType.Collector, DaemonType.Placementd: AdType.Placementd,
}  # fmt: skip
LOCATION = ("MyAddress", "CondorVersion", "CondorPlatform", "Name", "Machine", "MyType")
UPDATE = {"UPDATE_STARTD_AD": AdKind.SLOT, "UPDATE_SCHEDD_AD": AdKind.SCHEDD, "UPDATE_MASTER_AD": AdKind.MASTER,
          "UPDATE_SUBMITTOR_AD": AdKind.SUBMITTER, "UPDATE_COLLECTOR_AD": AdKind.COLLECTOR,
          "UPDATE_NEGOTIATOR_AD": AdKind.NEGOTIATOR, "UPDATE_AD_GENERIC": AdKind.GENERIC,
          "UPDATE_ACCOUNTING_AD": AdKind.ACCOUNTING}  # fmt: skip


class SecurityContext:
    """A token to show; connections take the caller's own tokens and certificates, so it is only kept."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token

    @property
    def preferred_token(self) -> str | None:
        """The token."""
        return self._token

    @preferred_token.setter
    def preferred_token(self, token: str | None = None) -> None:
        self._token = token

    @preferred_token.deleter
    def preferred_token(self) -> None:
        self._token = None


class Collector:
    """A client of the collector."""

    def __init__(self, pool: str | ClassAd | list[str] | tuple[str, ...] | None = None,
                 security: SecurityContext | None = None) -> None:
        if security is not None and security.preferred_token is not None:
            raise NotSupported("a token cannot be given to one connection; put it into SEC_TOKEN_DIRECTORY")
        if isinstance(pool, ClassAd):
            address = pool.get("MyAddress")
            if address is None:
                raise ValueError("if ClassAd, pool must have MyAddress attribute")
            pool = "" if daemons.is_local("collector", address) else str(address).strip("<>").partition("?")[0]
        elif isinstance(pool, (list, tuple)):
            pool = pool[0] if pool else ""
        elif pool is not None and not isinstance(pool, str):
            raise TypeError("pool is not a string, list (or tuple) of strings, or a ClassAd")
        self._collector = collector.Collector(pool or "")

    def query(self, ad_type: AdType = AdType.Any, constraint: str | None = None,
              projection: list[str] | None = None, statistics: str | None = None) -> list[ClassAd]:
        """The ads of a kind."""
        if not isinstance(ad_type, AdType):
            raise TypeError("ad_type must be an htcondor.AdType")
        kinds = list(AdKind) if ad_type is AdType.Any else [KINDS[ad_type]] if ad_type in KINDS else []
        with as_theirs():
            return [wrapped(ad) for kind in kinds
                    for ad in self._collector.query(kind, "" if constraint is None else str(constraint),
                                                    projection or ())]  # fmt: skip

    def directQuery(self, daemon_type: DaemonType, name: str | None = None, projection: list[str] | None = None,
                    statistics: str | None = None) -> ClassAd:
        """A daemon's own ad, from itself."""
        found = self.locate(daemon_type, name)
        if found is None:
            raise HTCondorException(f"there is no {daemon_type.name} {name or ''}".rstrip())
        with as_theirs():
            ad = daemons.ping(str(found["MyAddress"])).ad
        return wrapped(ad.project(projection) if projection else ad)

    def locate(self, daemon_type: DaemonType, name: str | None = None) -> ClassAd | None:
        """Where a daemon is; None: there is none of that name."""
        ad_type = OF_DAEMONS.get(daemon_type)
        if ad_type not in KINDS:
            return None
        with as_theirs():
            if name is None:
                here = None if self._collector.pool else daemons.local_ad(daemon_type.name.lower())
                if here is not None:  # the collector may not have heard of it yet
                    return wrapped(here.project(LOCATION))
                try:
                    return wrapped(self._collector.locate(KINDS[ad_type]))
                except CondorError as error:
                    raise HTCondorException("Unable to locate local daemon") from error
            constraint = f"Name == {quote(name)}"
            if daemon_type is DaemonType.Startd and "@" not in name:
                constraint = f'Machine == {quote(name)} || regexp(strcat("^", {quote(name)}, "\\\\."), Machine)'
            found = self._collector.query(KINDS[ad_type], constraint, LOCATION)
        return wrapped(found[0]) if found else None

    def locateAll(self, daemon_type: DaemonType) -> list[ClassAd]:
        """Where the daemons of a kind are."""
        return self.query(OF_DAEMONS.get(daemon_type, AdType.HAD), projection=list(LOCATION))

    def advertise(self, ad_list: list[ClassAd], command: str = "UPDATE_AD_GENERIC", use_tcp: bool = True) -> None:
        """Put ads into the collector."""
        if command not in UPDATE:
            raise NotSupported(f"{command}: expected one of {', '.join(UPDATE)}")
        with as_theirs():
            self._collector.advertise([own_ad(ad) for ad in ad_list], UPDATE[command])


def _address(location: ClassAd | None, what: DaemonType) -> str:
    if location is None:
        location = Collector().locate(what)
    if not isinstance(location, ClassAd):
        raise TypeError("location must be a ClassAd")
    return str(location["MyAddress"])


def _checked(user: str) -> str:
    if not isinstance(user, str):
        raise TypeError("user must be a string")
    if "@" not in user:
        raise ValueError("You must specify the submitter (user@uid.domain)")
    return user


class Negotiator:
    """A client of the negotiator."""

    def __init__(self, location: ClassAd | None = None) -> None:
        name = "" if location is None else str(location.get("Name", ""))
        _address(location, DaemonType.Negotiator)
        self._negotiator = negotiator.Negotiator(name)

    def getPriorities(self, rollup: bool = False) -> list[ClassAd]:
        """An ad for each submitter and group."""
        if rollup:
            raise NotSupported("the line of a group is its own use alone; WeightedResourcesUsed has the figures to add")
        with as_theirs():
            return [wrapped(ad) for ad in self._negotiator.priorities()]

    def getResourceUsage(self, user: str) -> list[ClassAd]:
        """The slots that a submitter has."""
        with as_theirs():
            return [wrapped(ad) for ad in self._negotiator.resources(_checked(user))]

    def deleteUser(self, user: str) -> None:
        """Forget a submitter."""
        with as_theirs():
            self._negotiator.delete(_checked(user))

    def resetAllUsage(self) -> None:
        """Forget everybody's usage."""
        with as_theirs():
            self._negotiator.reset_all()

    def resetUsage(self, user: str) -> None:
        """Forget the usage of a submitter."""
        with as_theirs():
            self._negotiator.reset(_checked(user))

    def setBeginUsage(self, user: str, when: int) -> None:
        """Set when the usage of a submitter began."""
        self._set(user, "begin", int(when))

    def setCeiling(self, user: str, ceiling: int) -> None:
        """Set how much a submitter may have at most."""
        _checked(user)
        if ceiling <= -1:
            raise ValueError("Ceiling must be greater than -1.")
        self._set(user, "ceiling", int(ceiling))

    def setLastUsage(self, user: str, when: int) -> None:
        """Set when a submitter last used something."""
        self._set(user, "last", int(when))

    def setFactor(self, user: str, factor: float) -> None:
        """Set the priority factor of a submitter."""
        _checked(user)
        if factor < 1:
            raise ValueError("Priority factors must be >= 1")
        self._set(user, "factor", factor)

    def setPriority(self, user: str, priority: float) -> None:
        """Set the priority of a submitter."""
        _checked(user)
        if priority < 0:
            raise ValueError("User priority must be non-negative")
        self._set(user, "priority", priority)

    def setUsage(self, user: str, usage: float) -> None:
        """Set the usage of a submitter."""
        _checked(user)
        if usage < 0:
            raise ValueError("Usage must be non-negative")
        self._set(user, "usage", usage)

    def _set(self, user: str, what: str, value: float) -> None:
        with as_theirs():
            self._negotiator.set(_checked(user), what, value)


class Startd:
    """A client of a machine's startd."""

    def __init__(self, location: ClassAd | None = None) -> None:
        address = _address(location, DaemonType.Startd)
        self._startd = startd.Startd(address="" if daemons.is_local("startd", address) else address)

    def drainJobs(self, drain_type: DrainType = DrainType.Graceful,
                  on_completion: CompletionType = CompletionType.Nothing, check_expr: str | None = None,
                  start_expr: str | None = None, reason: str | None = None) -> str:
        """Have the machine take no new jobs; the request's id."""
        for name, text in (("check_expr", check_expr), ("start_expr", start_expr)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a string")
        with as_theirs():
            return self._startd.drain(DrainType(drain_type).name.lower(),
                                      on_completion=CompletionType(on_completion).name.lower(),
                                      check=check_expr or "", start=start_expr or "", reason=reason or "")  # fmt: skip

    def cancelDrainJobs(self, request_id: str | None = None) -> None:
        """End a drain request, or all."""
        with as_theirs():
            self._startd.cancel_drain(request_id or "")

    def vacateSlot(self, slot_name: str | None = None, vacate_fast: VacateType = VacateType.Graceful) -> None:
        """Have the job of a slot leave."""
        if not slot_name:
            raise ValueError("slot_name must be a non-empty string")
        with as_theirs():
            self._startd.vacate([slot_name], fast=vacate_fast == VacateType.Fast)

    def vacate(self, vacate_fast: VacateType = VacateType.Graceful) -> None:
        """Have the jobs of all slots leave."""
        with as_theirs():
            self._startd.vacate(fast=vacate_fast == VacateType.Fast)

    def rehome(self, schedd_name: str | None = None, schedd_pool: str | None = None, timeout: int = 0,
               cancel: bool = False, reboot: bool = False) -> None:
        """Refused: machines are not lent to one schedd."""
        raise NotSupported("a machine is not handed to one schedd; condor_reserve keeps machines for a submitter")

    def history(self, constraint: str | ExprTree | None = None, projection: list[str] = [],  # noqa: B006
                match: int = -1, since: int | str | ExprTree | None = None) -> list[ClassAd]:
        """The runs that ended on the machine, the newest first."""
        if isinstance(since, int):
            since = f"ClusterId == {since}"
        with as_theirs():
            return [wrapped(ad) for ad in self._startd.history(
                "" if constraint is None else str(constraint), projection, limit=max(match, 0),
                since="" if since is None else str(since))]


class RemoteParam(MutableMapping[str, str]):
    """The configuration of a daemon; what is set holds until it is started again, from its next reconfiguration on."""

    def __init__(self, location: ClassAd) -> None:
        self._location_address = str(location["MyAddress"])
        self._changed: dict[str, str] = {}
        self._names: list[str] = []
        self.refresh()

    def refresh(self) -> None:
        """Forget what was set here, and ask anew which names there are."""
        with as_theirs():
            self._names = daemons.config_names(self._location_address)
        self._changed = {}

    def __getitem__(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        if key in self._changed:
            return self._changed[key]
        with as_theirs():
            found = daemons.config_of(self._location_address, key)
        if key not in found:
            raise KeyError(key)
        return found[key]

    def __setitem__(self, key: str, value: str) -> None:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        if not isinstance(value, str):
            raise TypeError("value must be a string")
        with as_theirs():
            daemons.set_config(self._location_address, key, value)
        self._changed[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._names and key not in self._changed:
            raise KeyError(key)
        with as_theirs():
            daemons.set_config(self._location_address, key, None)
        self._changed.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._names, *self._changed]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


ORDERS = {
    DaemonCommand.DaemonOff: ("off", "graceful"), DaemonCommand.DaemonOffFast: ("off", "fast"),
    DaemonCommand.DaemonsOff: ("off", "graceful"), DaemonCommand.DaemonsOffFast: ("off", "fast"),
    DaemonCommand.DaemonsOffPeaceful: ("off", "peaceful"), DaemonCommand.DaemonOn: ("on", "graceful"),
    DaemonCommand.DaemonsOn: ("on", "graceful"), DaemonCommand.Restart: ("restart", "graceful"),
    DaemonCommand.RestartPeaceful: ("restart", "peaceful"),
}  # fmt: skip
"""What a master is told."""
SHUTDOWNS = {DaemonCommand.OffGraceful: "graceful", DaemonCommand.OffFast: "fast", DaemonCommand.OffForce: "fast",
             DaemonCommand.OffPeaceful: "peaceful"}


def send_command(ad: ClassAd, dc: DaemonCommand, target: str | None = None) -> None:
    """Tell a daemon to read its configuration again, to stop, or (a master) to stop and start others."""
    address = ad.get("MyAddress")
    if address is None:
        raise ValueError("Address not available in location ClassAd.")
    my_type = ad.get("MyType")
    if my_type is None:
        raise ValueError("Daemon type not available in location ClassAd.")
    if AdType.from_MyType(my_type) is None:
        raise ValueError("Unknown daemon type.")
    with as_theirs():
        if dc is DaemonCommand.Reconfig:
            daemons.reconfigure(str(address))
        elif dc in SHUTDOWNS:
            daemons.shut_down(str(address), SHUTDOWNS[dc])
        elif dc in ORDERS:
            command, how = ORDERS[dc]
            daemons.order(str(address), command, (target.lower(),) if target else (), how)
        else:
            raise NotSupported(f"{dc.name}: how a daemon stops is said with the order to stop")


NOTHING_DONE = 60011
LEVELS = {name: number for number, name in enumerate(
    ("READ", "WRITE", "NEGOTIATOR", "ADMINISTRATOR", "OWNER", "CONFIG", "DAEMON", "ADVERTISE_STARTD",
     "ADVERTISE_SCHEDD", "ADVERTISE_MASTER"), 60020)}  # fmt: skip
"""The numbers of the commands that do nothing but ask for a level."""


def ping(location: str | ClassAd, authz: str | None = None, security: SecurityContext | None = None) -> ClassAd:
    """Who the caller is to a daemon, and by what method."""
    address = location if isinstance(location, str) else location.get("MyAddress")
    if address is None:
        raise ValueError("Address not available in location argument.")
    with as_theirs():
        found = daemons.ping(str(address))
    wanted = "CLIENT" if authz in (None, "DC_NOP") else str(authz)
    if wanted != "CLIENT" and wanted not in LEVELS:
        raise NotSupported(f"{wanted}: expected one of {', '.join(LEVELS)}")
    return wrapped(OwnAd({
        "MyRemoteUserName": found.identity, "AuthMethods": found.method, "TriedAuthentication": True,
        "AuthorizationSucceeded": wanted in found.levels, "RemoteVersion": found.version,
        "AuthCommand": LEVELS.get(wanted, NOTHING_DONE),
    }))  # fmt: skip


def send_alive(ad: ClassAd | None = None, pid: int | None = None, timeout: int | None = None) -> None:
    """Refused: who is watched by a master is one of its daemons."""
    raise NotSupported("a program is no daemon of the master here; it need not say that it is alive")


def set_ready_state(state: str = "Ready") -> None:
    """Refused: who is watched by a master is one of its daemons."""
    raise NotSupported(f"a program is no daemon of the master here; nobody waits for it to be {state or 'Ready'}")


__all__ = ["Collector", "Negotiator", "RemoteParam", "SecurityContext", "Startd", "ping", "send_alive",
           "send_command", "set_ready_state"]  # fmt: skip
