"""use_oauth_services and what goes with it, as attributes of the job."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.credd.token_attributes import may_want_tokens
from condor_actors.cores.job_tokens import BadTokenRequest, token_file, wanted_tokens
from condor_actors.messages.credentials import ServiceToken, WantedToken
from condor_actors.submit import SubmitError
from tests.unit.submit.worlds import World, described, jobs_of

START = "executable = /bin/true\n"


def world() -> World:
    return World(files={"/bin/true": 30_000})


def wanted(commands: str) -> tuple[WantedToken, ...]:
    (job,) = jobs_of(f"{START}{commands}queue\n", world())
    return wanted_tokens(job)


def test_services_by_name() -> None:
    assert wanted("use_oauth_services = Box, gdrive\n") == (WantedToken(service="box"), WantedToken(service="gdrive"))
    assert wanted("") == wanted("use_oauth_services =\n") == ()


def test_a_kerberos_ticket() -> None:
    assert wanted("send_credential = true\n") == (WantedToken(service="krb"),)
    assert wanted("send_credential = false\n") == ()
    assert wanted("use_oauth_services = box\nMY.sendcredential = true\n") == (WantedToken(service="box"),
                                                                            WantedToken(service="krb"))
    assert token_file(ServiceToken(service="krb", token=b"")) == "krb.cc"


@pytest.mark.parametrize("ad", [b"oauthservicesNEEDED = \"box\"\n", b"x = 1\nsendcredential = true\n"])
def test_case_of_attributes_does_not_matter(ad: bytes) -> None:
    assert may_want_tokens(ad)
    assert not may_want_tokens(b"Cmd = \"/bin/true\"\n")


def test_permissions_and_resources_with_handles() -> None:
    found = wanted("use_oauth_services = box gdrive\n"
                   "box_oauth_permissions_Public = read:/public, list\n"
                   "box_oauth_resource_Public = https://a\n"
                   "BOX_OAUTH_PERMISSIONS_private =\n"
                   "gdrive_oauth_resource = https://b\n")
    assert found == (WantedToken(service="box", handle="Public", scopes="read:/public list", audience="https://a"),
                     WantedToken(service="box", handle="private"),
                     WantedToken(service="gdrive", audience="https://b"))


def test_a_macro_in_a_permission_is_each_jobs_own() -> None:
    jobs = jobs_of(f"{START}use_oauth_services = box\nbox_oauth_permissions = read:/run$(Process)\nqueue 2\n", world())
    assert [wanted_tokens(job)[0].scopes for job in jobs] == ["read:/run0", "read:/run1"]


@pytest.mark.parametrize(("commands", "problem"), [
    ("box_oauth_permissions = read\n", "use_oauth_services does not name"),
    ("use_oauth_services = a_b\n", "names no token of a service"),
    ("use_oauth_services = box\na_b_oauth_permissions = x\n", "no underscores"),
    ("use_oauth_services = box\nbox_oauth_permissions_.x = y\n", "names no token of a service"),
    ("use_oauth_services = " + ",".join(f"s{number}" for number in range(17)) + "\n", "17 tokens for one job"),
    ("universe = local\nuse_oauth_services = box\n", "no effect in this universe"),
    ("universe = local\nsend_credential = true\n", "send_credential has no effect in this universe"),
    ("use_oauth_services = krb\n", "stands for Kerberos tickets"),
    ("send_credential = true\nuse_oauth_services = " + ",".join(f"s{number}" for number in range(16)) + "\n",
     "17 tokens for one job"),
])
def test_what_is_refused(commands: str, problem: str) -> None:
    with pytest.raises(SubmitError, match=problem):
        described(f"{START}{commands}queue\n", world())


@pytest.mark.parametrize("services", ["../x", "a/b", "box*../y", "box*" + "h" * 65, "b" * 65,
                                      ",".join("abcdefghijklmnopq")])
def test_a_hostile_ad(services: str) -> None:
    with pytest.raises(BadTokenRequest):
        wanted_tokens(ClassAd({"OAuthServicesNeeded": services}))


@pytest.mark.parametrize("requests", ['"text"', "7", "undefined", '{ 1, "x", [ Service = 3 ] }', "error"])
def test_requests_that_are_none_ask_for_nothing_more(requests: str) -> None:
    job = ClassAd.from_text(f'OAuthServicesNeeded = "box"\nOAuthTokenRequests = {requests}')
    assert wanted_tokens(job) == (WantedToken(service="box"),)


def test_names_of_files() -> None:
    assert token_file(ServiceToken(service="box", token=b"")) == "box.use"
    assert token_file(ServiceToken(service="box", handle="a_b", token=b"")) == "box_a_b.use"
    for service, handle in (("..", ""), ("box", "../../etc"), ("", "")):
        with pytest.raises(BadTokenRequest):
            token_file(ServiceToken(service=service, handle=handle, token=b""))
