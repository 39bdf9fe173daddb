"""Signed URLs of object stores, beside those of botocore."""

from __future__ import annotations

import datetime
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.cores.object_store import AccessKeys, BadObject, is_object, signed_url

NOW_S = 1_790_000_000
KEYS = AccessKeys(key_id="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


class _Then(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(NOW_S, tz)


def signature_of_botocore(method: str, url: str, region: str, keys: AccessKeys, valid_s: int) -> str:
    """What the store's own library says of the same request."""
    request = AWSRequest(method=method, url=url)
    who = Credentials(keys.key_id, keys.secret, keys.session or None)
    with patch("botocore.compat.get_current_datetime", lambda *_, **__: _Then.now(datetime.UTC).replace(tzinfo=None)), \
            patch("botocore.auth.get_current_datetime", lambda *_, **__: _Then.now(datetime.UTC).replace(tzinfo=None)):
        S3SigV4QueryAuth(who, "s3", region, expires=valid_s).add_auth(request)
    return parse_qs(urlsplit(request.url).query)["X-Amz-Signature"][0]


def agrees(url: str, method: str, region: str, keys: AccessKeys = KEYS, valid_s: int = 3600) -> str:
    """The URL, when its signature is botocore's too."""
    signed = signed_url(url, method, keys, NOW_S, valid_s)
    parts = urlsplit(signed)
    theirs = signature_of_botocore(method, f"https://{parts.netloc}{parts.path}", region, keys, valid_s)
    assert parse_qs(parts.query)["X-Amz-Signature"] == [theirs]
    return signed


@pytest.mark.parametrize(("url", "where", "region"), [
    ("s3://data/a/b.txt", "https://data.s3.amazonaws.com/a/b.txt", "us-east-1"),
    ("S3://data.s3.eu-central-1.amazonaws.com/x", "https://data.s3.eu-central-1.amazonaws.com/x", "eu-central-1"),
    ("s3://Old_Bucket/x", "https://s3.amazonaws.com/Old_Bucket/x", "us-east-1"),
    ("s3://store.example.org/bucket/k", "https://store.example.org/bucket/k", "us-east-1"),
    ("s3://localhost:9000/bucket/k", "https://localhost:9000/bucket/k", "us-east-1"),
    ("s3://[::1]:9000/bucket/k", "https://[::1]:9000/bucket/k", "us-east-1"),
    ("gs://bucket/k", "https://storage.googleapis.com/bucket/k", "us-east-1"),
])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_each_form_of_a_url_is_signed_as_botocore_signs_it(url: str, where: str, region: str, method: str) -> None:
    assert agrees(url, method, region).partition("?")[0] == where


def test_a_region_of_the_job_s_choice() -> None:
    keys = AccessKeys(key_id="K", secret="s", region="eu-west-1")
    assert agrees("s3://data/x", "GET", "eu-west-1", keys).startswith("https://data.s3.eu-west-1.amazonaws.com/x?")


def test_keys_for_a_while_bring_their_token() -> None:
    keys = AccessKeys(key_id="K", secret="s", session="to/ken+==")
    assert "X-Amz-Security-Token=to%2Fken%2B%3D%3D" in agrees("s3://data/x", "GET", "us-east-1", keys)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters=" ?#"), min_size=1)
       .filter(lambda key: not key.startswith("/")))
def test_any_key_is_signed_as_botocore_signs_it(key: str) -> None:
    agrees(f"s3://store.example.org/b/{key}", "PUT", "us-east-1", valid_s=60)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3:///key", "gs://", "http://bucket/key", "bucket/key",
                                 "s3://x.amazonaws.com/key", "s3://bad host/key", "s3://a:b/key", "s3://u@h.org/key"])
def test_what_names_no_object_is_refused(url: str) -> None:
    with pytest.raises(BadObject):
        signed_url(url, "GET", KEYS, NOW_S, 60)


def test_it_is_good_for_a_week_at_most() -> None:
    assert "X-Amz-Expires=604800&" in signed_url("s3://b/k", "GET", KEYS, NOW_S, 10**9)


def test_schemes_compare_without_case() -> None:
    assert [is_object(name) for name in ("S3://b/k", "gs://b/k", "https://b/k", "/s3/k")] == [True, True, False, False]


def test_no_secret_is_shown() -> None:
    assert "wJalr" not in repr(KEYS)
