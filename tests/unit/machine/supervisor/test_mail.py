"""Mail that users' words are in: whatever they are, it is sent, or the log says why not."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from twisted.internet.task import Clock

from condor_actors.config import load_config
from condor_actors.machine.supervisor.mail import Mailer, compose


@pytest.mark.parametrize("text", ["it ended", "a\udcff", "\ud800 half", "ä b"])
def test_a_mail_with_any_words(text: str) -> None:
    sent = message_from_bytes(compose("condor@here", ["a@b"], text, f"first\n{text}\n"), policy=default)
    assert isinstance(sent, EmailMessage)
    assert sent["Subject"].startswith(text.encode("utf-8", "replace").decode()[:3])
    assert sent.get_content().startswith("first\n")


@pytest.mark.parametrize("address", ["\udcff@b", "ä@b", "a\x01@b"])
def test_an_address_that_no_server_takes_is_left_out(address: str) -> None:
    """It must not end the process that sends the mail."""
    config = load_config(files=[], environ={}, overrides={"SMTP_SERVER": "127.0.0.1:9"})
    said: list[bool] = []
    Mailer(config, Clock()).send(address, "subject", "body").addCallback(said.append)
    assert said == [False]
