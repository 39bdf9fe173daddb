"""The web page's daemon: one actor that asks the pool, and an HTTP server that shows what it knows.

Theory: what is known (:class:`.pool_watch.PoolKnowledge`) belongs to the process, so the server answers from it at once
and an actor that is rebuilt goes on with it.  Nothing that comes by HTTP changes anything in the pool by this daemon's
own rights: what users do who are logged in goes to the schedd as theirs.  In a simulated pool there is no server; the
actor asks all the same.
"""

from __future__ import annotations

import errno
import secrets
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.error import CannotListenError

from condor_actors.actors import World
from condor_actors.actors.workers import Workers
from condor_actors.addresses import joined_address
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.web.figures import ENDED_ATTRIBUTES, Ended, Figures, Sample
from condor_actors.daemons.web.actions import UserActions, UserSettings
from condor_actors.daemons.web.bodies import BODIES
from condor_actors.daemons.web.door import LONGEST_BODY, Door, is_loopback
from condor_actors.daemons.web.figures_file import SAVE_S, FiguresFile
from condor_actors.daemons.web.json_api import JsonApi
from condor_actors.daemons.web.pool_watch import ACTOR, ASK_S, PoolKnowledge, PoolWatch, WebSettings
from condor_actors.daemons.web.routes import routes
from condor_actors.daemons.web.sessions import FailedLogins, Sessions
from condor_actors.daemons.web.visits import Visits
from condor_actors.daemons.web.watchers import Watchers, event
from condor_actors.messages.envelope import Address
from condor_actors.messages.queue import JobsPage, QueryJobs
from condor_actors.own_files import replace_own
from condor_actors.wire.http_room import BoundedSite, listen_http, tls_context

__all__ = ["WebDaemon", "make_daemon"]

WORKERS = 8
"""Questions in users' names that may be under way; each waits for a daemon."""
ENDED_JOBS = 1_000
"""Of a schedd, whose ends are counted in one point."""
ROOM = 100
"""Connections beside those of watchers."""


class WebDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon"."""

    name = "web"

    def __init__(self, config: Config, world: World) -> None:
        self._config = config
        self._world = world
        self.settings = WebSettings.of(config)
        self._collectors = collector_nodes(config)
        clock: Any = world.reactor_time
        self.known = PoolKnowledge(clock.seconds)
        self.figures = Figures()
        self._file = FiguresFile(Path(config.path("SPOOL")) / "web_figures.json", world.log)
        self._saved_s = self._sampled_s = -1e9
        self._ended_from_s = 0.0
        self._has_door = hasattr(clock, "listenTCP")
        self.watchers = Watchers(clock, self._beginning, lambda: self.settings.most_watchers, self._hurry)
        self.sessions = Sessions(clock, world.wall_clock, lambda: self.settings.session_s,
                                 lambda: self.settings.most_sessions)
        self.visits = Sessions(clock, world.wall_clock, lambda: self.settings.session_s,
                               lambda: self.settings.most_sessions, lambda: self.settings.most_sessions)
        self._served = ("", False)
        self._port: Any = None
        self._url_file: Path | None = None
        self.url = ""
        self.system = world.make_system()

    # ---- the daemon

    def start(self) -> None:
        """Open the door, then spawn the actor.

        Raises:
            OSError: the port is taken, or a certificate cannot be read.
        """
        if self._has_door:
            self._file.load(self.figures)
            self._open_door()
        self.system.spawn(ACTOR, self._make_actor)

    def _make_actor(self) -> PoolWatch:
        return PoolWatch(self.known, lambda: self.settings, lambda: self._collectors, self.watchers.publish,
                         lambda: len(self.watchers) > 0, self._sample)

    def stop(self, graceful: bool) -> Deferred[None]:
        """Close the door."""
        self.watchers.stop()
        self.sessions.end_all()
        self.visits.end_all()
        if self._url_file is not None:
            self._url_file.unlink(missing_ok=True)
        if self._has_door and self._sampled_s > 0:
            self._file.save(self.figures)
        if self._port is None:
            return succeed(None)
        port, self._port = self._port, None
        return maybeDeferred(port.stopListening)

    def reconfigure(self, config: Config) -> None:
        """Take new settings; the port stays."""
        settings = WebSettings.of(config)
        collectors = collector_nodes(config)
        self._config, self.settings, self._collectors = config, settings, collectors
        if self._user_settings().refusal:
            self.sessions.end_all()

    def ad(self) -> ClassAd:
        """For ``condor_ping``."""
        return ClassAd({"MyType": "Web", "Name": "web", "MyAddress": self._world.post.public_node,
                        "Watchers": len(self.watchers), "SlotsKnown": len(self.known.slots.slots),
                        "JobsKnown": len(self.known.rows), "UsersLoggedIn": len(self.sessions)})

    # ---- the door

    def _open_door(self) -> None:
        config = self._config
        key = self._access_key() if (config.text("WEB_ACCESS") or "").upper() == "KEY" else ""
        interface = config.needed_text("WEB_INTERFACE")
        certificate = config.text("WEB_CERTIFICATE")
        api = JsonApi(self.known, lambda: self.settings.update_s, self._span, self._world.reactor_time)
        reactor: Any = self._world.reactor_time
        actions = UserActions(self.known, self.sessions, FailedLogins(reactor.seconds), self._user_settings,
                              Workers(reactor, most=WORKERS).run, self._world.log)
        self._served = (interface, certificate is not None)
        visits = Visits(key, self.visits, certificate is not None) if key else None
        door = Door(routes(api, self.watchers, actions), self._own_names, visits, certificate is not None,
                    frozenset(path.encode() for path in BODIES))
        site = BoundedSite(door, lambda: self.settings.most_watchers + ROOM, lambda: self.settings.most_of_one, reactor,
                           longest_body=LONGEST_BODY)
        context = tls_context("WEB_CERTIFICATE", certificate, config.text("WEB_KEY") or certificate) \
            if certificate is not None else None
        run = Path(config.path("RUN"))
        wanted = config.integer("WEB_HTTP_PORT")
        ports = [wanted] if wanted else [_last_port(run / "web.http_port"), 0]
        for port in ports:
            try:
                self._port = listen_http(site, port, interface, context, reactor)
                break
            except CannotListenError as error:
                if port == ports[-1]:
                    why = ("another program has it, which 'ss -ltnp' names"
                           if getattr(error.socketError, "errno", 0) == errno.EADDRINUSE else str(error.socketError))
                    raise config.unusable(
                        "WEB_HTTP_PORT", f"the page cannot be served at {joined_address(interface, port)}: {why}",
                        "a free port, or that program stopped") from None
        number = self._port.getHost().port
        replace_own(run / "web.http_port", f"{number}\n".encode(), 0o600)
        host = {"0.0.0.0": config.full_hostname, "::": config.full_hostname}.get(interface, interface)
        self.url = f"http{'s' if certificate else ''}://{joined_address(host, number)}/"
        self._url_file = run / "web.url"
        text = f"{self.url}{f'?key={key}' if key else ''}\n"
        replace_own(self._url_file, text.encode(), 0o600 if key else 0o644)
        self._world.log.info("the page is at {url}", url=self.url)

    def _user_settings(self) -> UserSettings:
        interface, is_secure = self._served
        refusal = ""
        if not self.settings.has_login:
            refusal = "this page is only to be looked at (WEB_LOGIN is FALSE)"
        elif not is_secure and not is_loopback(interface):
            refusal = "log-in needs HTTPS here: an administrator can set WEB_CERTIFICATE"
        return UserSettings(refusal=refusal, collectors=self._collectors, ca=str(self._config.path("POOL_CA")),
                            is_secure=is_secure)

    def _own_names(self) -> frozenset[str]:
        own = self._config.full_hostname.lower()
        return frozenset({own, own.partition(".")[0], *(name.lower() for name in self.settings.host_names)})

    def _access_key(self) -> str:
        """The secret of the link: made once, kept in the spool."""
        path = Path(self._config.path("SPOOL")) / "web_access_key"
        try:
            kept = path.read_text().strip()
        except FileNotFoundError:
            kept = ""
        if len(kept) >= 32 and kept.isalnum():
            return kept
        key = secrets.token_hex(24)
        replace_own(path, f"{key}\n".encode(), 0o600)
        return key

    # ---- what is shown

    def _hurry(self) -> None:
        if self.known.hurry is not None:
            self.known.hurry()

    def _beginning(self) -> bytes:
        return event("begin", {"slots": list(self.known.slots.slots.values()), "summary": self.known.summary()})

    def _span(self, name: str) -> dict[str, Any]:
        return self.figures.span(name, self._world.wall_clock())

    def _sample(self, watch: PoolWatch) -> None:
        """Take a point: what ended is asked of each schedd, the rest is known."""
        now_s = watch.context.now_s()
        since_s, self._ended_from_s = self._ended_from_s or now_s, now_s
        waiting = list(self.known.schedds.values())
        ended: list[Ended] = []

        def ask() -> None:
            if not waiting:
                self._take(now_s, sum(ended, Ended()))
                return
            question = QueryJobs(source="history", limit=ENDED_JOBS, projection=ENDED_ATTRIBUTES,
                                 since=f"EnteredCurrentStatus < {int(since_s)}",
                                 constraint=f"CompletionDate >= {int(since_s)} && CompletionDate < {int(now_s)}")
            watch.context.ask(Address(waiting.pop().address, "schedd"), question, timeout_s=ASK_S,
                              then=lambda answer: came(answer.message))

        def came(page: Any) -> None:
            if isinstance(page, JobsPage):
                ended.append(Ended.of(page.ads))
            ask()

        ask()

    def _take(self, now_s: float, ended: Ended) -> None:
        cpus, jobs = self.known.slots.cpus(), self.known.totals()
        self.figures.add(Sample(
            at_s=now_s, cpus=sum(cpus.values()), running=cpus["running"],
            owner=cpus["owner"] + cpus["suspended"] + cpus["leaving"], idle_jobs=jobs.get("idle", 0),
            running_jobs=jobs.get("running", 0) + jobs.get("transferring", 0) + jobs.get("suspended", 0),
            held_jobs=jobs.get("held", 0), ended=ended))
        self._sampled_s = self.known.clock()
        self.watchers.publish("figures", {"at": now_s})
        if self._has_door and self._sampled_s >= self._saved_s + SAVE_S:
            self._saved_s = self._sampled_s
            self._file.save(self.figures)


def _last_port(path: Path) -> int:
    """The port that a former process had; 0 when none is known."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 0


def make_daemon(config: Config, world: World) -> WebDaemon:
    """The page's daemon, not started."""
    return WebDaemon(config, world)
