"""Mail that users' words are in: whatever they are, it is sent, or the log says why not."""

from __future__ import annotations

import random
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.daemons.schedd.completion_mail import mail_text
from condor_actors.machine.supervisor.mail import MOST_RECIPIENTS, Mailer, compose, is_address
from condor_actors.messages.codes import JobEventType


@pytest.mark.parametrize("text", ["it ended", "a\udcff", "\ud800 half", "ä b"])
def test_a_mail_with_any_words(text: str) -> None:
    sent = message_from_bytes(compose("condor@here", ["a@b"], text, f"first\n{text}\n"), policy=default)
    assert isinstance(sent, EmailMessage)
    assert sent["Subject"].startswith(text.encode("utf-8", "replace").decode()[:3])
    assert sent.get_content().startswith("first\n")


@pytest.mark.parametrize("address", ["\udcff@b", "ä@b", "a\x01@b", "a?<", "??'=@:", ".a@b.c", "=?utf-8?q?=0a?=@b.c",
                                     "().)[?@b", "fu8@[=?-", "a@b>", '"@b', "@b", "a@"])
def test_an_address_that_no_server_takes_is_left_out(address: str) -> None:
    """It must not end the process that sends the mail."""
    config = load_config(files=[], environ={}, overrides={"SMTP_SERVER": "127.0.0.1:9"})
    said: list[bool] = []
    Mailer(config, Clock()).send(address, "subject", "body").addCallback(said.append)
    assert said == [False]


def test_no_address_that_is_taken_breaks_the_mail_or_adds_a_header() -> None:
    chance = random.Random(7)
    pieces = ["=?utf-8?q?", "?=", "=?", "?b?", "=0a", *"a@b.'*_%+/!#$&^`{|}~-<>()[],;:\\ \""]
    tried = 0
    while tried < 500:
        name = "".join(chance.choices(pieces, k=chance.randint(1, 12)))
        if is_address(f"{name}@b.c"):
            tried += 1
            mail = compose("condor@here", [f"{name}@b.c"] * chance.choice((1, 20)), "it ended", "x\n")
            head = mail.partition(b"\n\n")[0]
            assert [line.partition(b":")[0] for line in head.splitlines() if line[:1].isalpha()].count(b"To") == 1


def test_a_job_has_no_large_mail_made_and_no_mail_sent_to_the_world() -> None:
    facts = ClassAd({"EmailAttributes": ",".join(["Big"] * 50_000), "Big": "x" * 100_000})
    assert len(mail_text(JobEventType.JOB_TERMINATED, 1, 0, 0.0, facts)[1]) < 1_000_000
    config = load_config(files=[], environ={}, overrides={"SMTP_SERVER": "127.0.0.1:9"})
    mailer, sent = Mailer(config, Clock()), []
    mailer._deliver = lambda *words: sent.extend(words[3]) or Deferred()  # type: ignore[method-assign]
    mailer.send(" ".join(f"u{number}@b.c" for number in range(5000)), "subject", "body")
    assert len(sent) == MOST_RECIPIENTS
