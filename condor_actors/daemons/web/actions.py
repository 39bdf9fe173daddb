"""Log-in, log-out, and what users who are logged in do to jobs.

Theory: the page's daemon decides nothing here.  It asks the pool's collector whose a token is, keeps it for a session
(:mod:`.sessions`), and sends what the user wants to the schedd over a connection of the user's own (:mod:`.as_user`);
so the schedd's rules hold, a revoked token is worth nothing at once, and audit logs name the user.  A request counts
only with both secrets of its session.  Tokens and secrets are in no log, no address and no message of an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer
from condor_actors.cores.web.job_actions import answer_in_words, job_ids, priority_question, question
from condor_actors.daemons.web.as_user import ask_as, who_is
from condor_actors.daemons.web.bodies import BODIES, read_body
from condor_actors.daemons.web.door import LATER, answer, refuse
from condor_actors.daemons.web.json_api import BadQuestion, fail, finish
from condor_actors.daemons.web.pool_watch import PoolKnowledge
from condor_actors.daemons.web.sessions import FailedLogins, Session, Sessions
from condor_actors.messages.queue import ActionResults
from condor_actors.wire.errors import LinkLost, NotTrusted, RequestRefused, TimedOut, WireError
from condor_actors.wire.http_room import http_source
from condor_actors.wire.idtokens.signed_token import BadToken, parted, read_claims

__all__ = ["COOKIE", "SESSION_HEADER", "UserActions", "UserSettings"]

COOKIE = "condor_session"
SESSION_HEADER = "X-Condor-Session"
"""Has the page's secret of a session; in a log-in any text, since another site's page cannot set a header."""
AT_ONCE = 8
"""Questions in users' names under way; further ones are refused."""
OF_ONE = 4
"""Of one user, whatever sessions it has; and of all who only want to log in."""

_STATUS_OF = {"denied": HTTPStatus.FORBIDDEN, "not-found": HTTPStatus.NOT_FOUND, "invalid": HTTPStatus.BAD_REQUEST,
              "busy": HTTPStatus.SERVICE_UNAVAILABLE}


@attrs.frozen(kw_only=True)
class UserSettings:
    """What log-in depends on.

    Attributes:
        refusal: why nobody may log in, in words; empty: users may.
        collectors: nodes that say whose a token is.
        ca: path of the pool's CA certificate.
        is_secure: whether the page is served by HTTPS.
    """

    refusal: str
    collectors: tuple[str, ...]
    ca: str
    is_secure: bool


class UserActions:
    """Answers the paths of :data:`.bodies.BODIES`, and ``/api/session``.

    Args:
        known: the schedds.
        sessions: who is logged in.
        failed: attempts to log in.
        settings: in force now.
        run: runs a function that blocks, on a worker.
        log: the daemon's.
    """

    def __init__(self, known: PoolKnowledge, sessions: Sessions, failed: FailedLogins,
                 settings: Callable[[], UserSettings], run: Callable[..., Deferred[Any]], log: Logger) -> None:
        self._known = known
        self.sessions = sessions
        self._failed = failed
        self._settings = settings
        self._run = run
        self._log = log
        self._under_way: list[str] = []
        self._paths: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
            "/api/login": self._login, "/api/logout": self._logout, "/api/act": self._act,
            "/api/priority": self._act,
        }

    def routes(self) -> dict[str, Callable[[Any], Any]]:
        """By path, what answers it."""
        return {"/api/session": self._who, **{path: partial(self._render, path) for path in BODIES}}

    # ---- requests

    def _render(self, path: str, request: Any) -> Any:
        request.setHeader(b"cache-control", b"no-store")
        if not request.getHeader(SESSION_HEADER.encode()):
            return refuse(request, HTTPStatus.FORBIDDEN, f"the header {SESSION_HEADER} is missing")
        try:
            fields = read_body(path, request.content.read())
        except BadQuestion as error:
            return refuse(request, HTTPStatus.BAD_REQUEST, str(error))
        return self._paths[path](request, fields)

    def _who(self, request: Any) -> bytes:
        """Whose session it is; nobody's is no error."""
        request.setHeader(b"cache-control", b"no-store")
        return _said(request, self._described(self._session_of(request)))

    def _described(self, session: Session | None) -> dict[str, Any]:
        if session is None:
            return {"user": "", "levels": [], "ends": 0, "refusal": self._settings().refusal}
        return {"user": session.user, "levels": list(session.levels), "ends": session.ends_s, "refusal": ""}

    def _session_of(self, request: Any) -> Session | None:
        cookie = request.getCookie(self._cookie_name().encode())
        header = request.getHeader(SESSION_HEADER.encode())
        if not cookie or not header or self._settings().refusal:
            return None
        return self.sessions.find(cookie, header)

    def _cookie_name(self) -> str:
        return f"__Host-{COOKIE}" if self._settings().is_secure else COOKIE

    def _set_cookie(self, request: Any, value: str) -> None:
        request.addCookie(self._cookie_name(), value, path=b"/", httpOnly=True, secure=self._settings().is_secure,
                          sameSite=b"strict", max_age=None if value else b"0")

    # ---- log-in and log-out

    def _login(self, request: Any, fields: dict[str, Any]) -> Any:
        settings = self._settings()
        if settings.refusal:
            return refuse(request, HTTPStatus.FORBIDDEN, settings.refusal)
        source = http_source(request.getClientAddress(), request.getHost())
        wait_s = self._failed.take(source)
        if wait_s:
            request.setHeader(b"retry-after", b"%d" % (wait_s + 1))
            return refuse(request, HTTPStatus.TOO_MANY_REQUESTS, "too many log-ins failed; try again in "
                          f"{int(wait_s + 1)} s")
        token = fields["token"].strip()
        try:
            ends_s = float(read_claims(parted(token)[0]).ends_s)
        except BadToken as error:
            return refuse(request, HTTPStatus.UNAUTHORIZED, f"this is no token of the pool: {error}")

        def known(pong: Any, is_gone: bool) -> None:
            self._failed.give_back(source)
            if is_gone:
                return
            begun = self.sessions.begin(pong.identity, pong.levels, token, ends_s)
            if begun is None:
                raise _Answered(HTTPStatus.SERVICE_UNAVAILABLE,
                                "as many users are logged in as WEB_MAX_SESSIONS allows")
            cookie, session = begun
            self._set_cookie(request, cookie)
            self._log.info("{user} logged in to the page from {source}", user=session.user, source=source)
            finish(request, {**self._described(session), "secret": session.page_secret})

        def failed(failure: Failure) -> None:
            if failure.check(NotTrusted):
                self._log.info("a log-in to the page from {source} failed: {why}", source=source, why=failure.value)
            else:
                self._failed.give_back(source)
            failure.raiseException()

        said = self._later(request, None, partial(who_is, settings.collectors, settings.ca, token), known, failed)
        if said is not LATER:
            self._failed.give_back(source)
        return said

    def _logout(self, request: Any, fields: dict[str, Any]) -> bytes:
        session = self._session_of(request)
        if session is not None:
            self.sessions.end(session)
            self._log.info("{user} logged out of the page", user=session.user)
        self._set_cookie(request, "")
        return _said(request, self._described(None))

    # ---- actions

    def _act(self, request: Any, fields: dict[str, Any]) -> Any:
        session = self._session_of(request)
        if session is None:
            return refuse(request, HTTPStatus.UNAUTHORIZED, "nobody is logged in; log in with a token of the pool")
        schedds = self._known.schedds
        name = fields["schedd"] or (next(iter(schedds)) if len(schedds) == 1 else "")
        schedd = schedds.get(name)
        if schedd is None:
            why = f"there is no schedd {name!r}" if name else f"schedd is missing: there are {len(schedds)} of them"
            return refuse(request, HTTPStatus.NOT_FOUND, why)
        ids = job_ids(fields["jobs"])
        action = fields.get("action", "priority")
        message: Any = (priority_question(ids, fields["priority"]) if action == "priority"
                        else question(action, ids, fields["reason"]))

        def done(result: Any, is_gone: bool) -> None:
            if not isinstance(result, ActionResults):
                raise _Answered(HTTPStatus.BAD_GATEWAY, f"{name} answers something else")
            self._log.info("{user} by the page at {schedd}: {action} {jobs}, {count} done", user=session.user,
                           schedd=name, action=action, jobs=" ".join(fields["jobs"][:20]), count=result.count)
            if self._known.hurry is not None:
                self._known.hurry()
            if not is_gone:
                finish(request, answer_in_words(action, result))

        def failed(failure: Failure) -> None:
            if failure.check(NotTrusted):
                self.sessions.end(session)
                raise _Answered(HTTPStatus.UNAUTHORIZED, f"the log-in has ended: {failure.value}")
            failure.raiseException()

        asked = partial(ask_as, schedd.address, self._settings().ca, session.token, message)
        return self._later(request, session, asked, done, failed)

    def _later(self, request: Any, session: Session | None, function: Callable[[], Any],
               then: Callable[[Any, bool], None], failed: Callable[[Failure], None]) -> Any:
        """Ask on a worker; whatever happens, the request gets one answer unless its client has gone.

        Args:
            request: to be answered.
            session: in whose name; None: it has none yet.
            function: asks.
            then: gets its answer, and whether the client has gone.
            failed: gets what it raised, and raises something.
        """
        user = session.user if session is not None else ""
        if len(self._under_way) >= AT_ONCE or self._under_way.count(user) >= OF_ONE:
            request.setHeader(b"retry-after", b"5")
            return refuse(request, HTTPStatus.SERVICE_UNAVAILABLE, "too much is under way; try again in a few seconds")
        gone: list[bool] = []
        request.notifyFinish().addErrback(lambda _: gone.append(True))
        self._under_way.append(user)

        def over(result: Any) -> Any:
            self._under_way.remove(user)
            return result

        def answered(failure: Failure) -> None:
            if not gone:
                fail(request, *_why(failure, self._log))

        self._run(function).addBoth(over).addCallbacks(
            lambda result: then(result, bool(gone)), failed).addErrback(answered)
        return LATER


class _Answered(Exception):
    """A refusal: a status and a text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def _said(request: Any, data: dict[str, Any]) -> bytes:
    import json

    return answer(request, b"application/json", json.dumps(data, separators=(",", ":")).encode() + b"\n")


def _why(failure: Failure, log: Logger) -> tuple[int, str]:
    """The status and the text for what went wrong."""
    error = failure.value
    if isinstance(error, _Answered):
        return error.status, str(error)
    if isinstance(error, NotTrusted):
        return HTTPStatus.UNAUTHORIZED, f"the token does not count: {error}"
    if isinstance(error, RequestRefused):
        return _STATUS_OF.get(error.code, HTTPStatus.CONFLICT), str(error)
    if isinstance(error, (TimedOut, LinkLost, NoAnswer)):
        return HTTPStatus.GATEWAY_TIMEOUT, f"no answer came, and it may have been done or not: {error}"
    if isinstance(error, WireError):
        return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
    log.failure("a request to the page failed", failure)
    return HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; the page's log says more"
