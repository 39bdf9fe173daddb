"""Mail, handed to an SMTP server: never a reason for a daemon to wait or to fail."""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from condor_actors.addresses import BadAddress, split_address
from condor_actors.config import Config

__all__ = ["Mailer"]

DEFAULT_PORT = 25
MOST_RECIPIENTS = 20
"""Of one mail: a job's owner is not to have this machine write to as many as a job's ad names."""
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}"
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@[A-Za-z0-9](?:[A-Za-z0-9.-]{{0,252}}[A-Za-z0-9])?")
_ENCODED = "=?"
"""How an encoded word begins: what it says would be read as part of the header."""


class Mailer:
    """Sends the mail of one daemon.

    Args:
        config: gives SMTP_SERVER, SMTP_TLS, SMTP_TIMEOUT, MAIL_FROM.
        reactor: the real one.
    """

    def __init__(self, config: Config, reactor: Any) -> None:
        self._config = config
        self._reactor = reactor
        self._log = Logger("condor.mail")

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration."""
        self._config = config

    def send(self, to: str, subject: str, body: str) -> Deferred[bool]:
        """Send one mail.

        Args:
            to: one or more addresses with commas or blanks between.
            subject: one line.
            body: plain text.

        Returns:
            Fires with whether a server took it; a failure is in the log, never an errback.
        """
        from twisted.internet.defer import succeed

        named = to.replace(",", " ").split()
        recipients = [each for each in named if is_address(each)][:MOST_RECIPIENTS]
        if recipients != named:
            self._log.error("mail to {to} ({subject}): an address is NAME@HOST in letters of ASCII, and there are at "
                            "most {most} of them; the others are left out", to=to[:1000], subject=subject,
                            most=MOST_RECIPIENTS)
        host, port = self._server()
        if not recipients or not host:
            return succeed(False)
        sender = self._sender()
        sending = self._deliver(host, port, sender, recipients, compose(sender, recipients, subject, body))
        sending.addTimeout(self._config.seconds("SMTP_TIMEOUT"), self._reactor)
        sending.addCallbacks(lambda _: True, lambda failure: self._failed(failure, to, subject))
        return sending

    def _server(self) -> tuple[str, int]:
        text = self._config.text("SMTP_SERVER") or ""
        try:
            host, port = split_address(text) if text else ("", None)
        except BadAddress as error:
            self._log.error("SMTP_SERVER: {error}", error=error)
            return "", DEFAULT_PORT
        return host, DEFAULT_PORT if port is None else port

    def _sender(self) -> str:
        return self._config.text("MAIL_FROM") or f"condor@{self._config.full_hostname}"

    def _deliver(self, host: str, port: int, sender: str, recipients: list[str], message: bytes) -> Deferred[Any]:
        from twisted.mail.smtp import sendmail

        sending: Deferred[Any] = sendmail(
            host, sender, recipients, message, port=port, reactor=self._reactor,
            requireTransportSecurity=self._config.boolean("SMTP_TLS"),
        )
        return sending

    def _failed(self, failure: Any, to: str, subject: str) -> bool:
        self._log.error("mail to {to} ({subject}) was not taken: {reason}", to=to, subject=subject,
                        reason=failure.getErrorMessage())
        return False


def is_address(text: str) -> bool:
    """Whether a text is an address that headers and servers take as it is; the library breaks over what is none."""
    return _ADDRESS.fullmatch(text) is not None and _ENCODED not in text


def compose(sender: str, recipients: list[str], subject: str, body: str) -> bytes:
    """A plain-text mail as it goes over the wire; what is no text in it becomes ``?``."""
    subject, body = (text.encode("utf-8", "replace").decode() for text in (subject, body))
    message = EmailMessage()
    message["From"] = Address(addr_spec=sender)
    message["To"] = ", ".join(recipients)
    message["Subject"] = " ".join(subject.split())
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2] or "localhost")
    message.set_content(body)
    return message.as_bytes()
