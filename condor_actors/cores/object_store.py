"""URLs of object stores (``s3://``, ``gs://``) as signed https URLs, so that keys stay on the submit machine.

Theory: a signed URL lets its bearer do one thing (``GET``, ``PUT`` or ``DELETE``) with one object for some time.  The
submit machine signs, with keys that only the job's owner can read; the execute machine sees the signature and nothing
else.

=======================================  ============================================
``s3://BUCKET/KEY``                      ``BUCKET.s3.amazonaws.com``, or the region's
``s3://BUCKET.s3.REGION.amazonaws.com/`` that host, in that region
``s3://HOST/BUCKET/KEY``                 another store: ``HOST`` has a dot or a port
``gs://BUCKET/KEY``                      ``storage.googleapis.com``
=======================================  ============================================

Source: "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)"; the forms of the URLs are those of
HTCondor's manual, ``htcondor-jdl``.
"""

from __future__ import annotations

import datetime

from condor_actors import records
from condor_actors.messages.references.urls import OBJECT_STORES, scheme_of, shown_url
from condor_actors.patterns import late

__all__ = ["AccessKeys", "BadObject", "is_object", "signed_url"]

AMAZON = ".amazonaws.com"
GOOGLE = "storage.googleapis.com"
DEFAULT_REGION = "us-east-1"
MOST_VALID_S = 7 * 86400
_IN_HOST_NAMES = late(r"[a-z0-9][a-z0-9-]*")
_PLACE = late(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?")


class BadObject(ValueError):
    """A URL that names no object of a store; the text says what it has to look like."""


@records.frozen(kw_only=True)
class AccessKeys:
    """Who asks.

    Attributes:
        key_id, secret: of the store.
        region: where a URL says none; empty: the store's first.
        session: the token that belongs to keys for a while; empty: they are no such keys.
    """

    key_id: str
    secret: str = records.field(repr=False)
    region: str = ""
    session: str = records.field(default="", repr=False)


def is_object(name: str) -> bool:
    """Whether a name is a URL of an object store."""
    return scheme_of(name) in OBJECT_STORES


def signed_url(url: str, method: str, keys: AccessKeys, now_s: float, valid_s: int) -> str:
    """The https URL by which the object can be had or made.

    Args:
        url: see above.
        method: ``GET``, ``PUT`` or ``DELETE``.
        now_s: seconds since the epoch; valid_s: how long it is good, at most a week.

    Raises:
        BadObject: it names no object.
    """

    import hashlib

    host, region, path = _object(url, keys.region)
    moment = datetime.datetime.fromtimestamp(int(now_s), datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    asked = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{keys.key_id}/{scope}", "X-Amz-Date": moment,
        "X-Amz-Expires": str(max(1, min(valid_s, MOST_VALID_S))), "X-Amz-SignedHeaders": "host",
    }
    if keys.session:
        asked["X-Amz-Security-Token"] = keys.session
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(asked.items()))
    request = f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = _keyed(key, part)
    return f"https://{host}{path}?{query}&X-Amz-Signature={_keyed(key, text).hex()}"


def _object(url: str, region: str) -> tuple[str, str, str]:
    """Host, region and path of an object."""
    scheme = scheme_of(url)
    where, slash, key = url[len(scheme) + len("://"):].partition("/")
    if scheme not in OBJECT_STORES or not where or not slash or not key:
        raise BadObject(f"{shown_url(url)} is no object of a store: s3://BUCKET/KEY, s3://HOST/BUCKET/KEY or "
                        "gs://BUCKET/KEY")
    if scheme == "gs":
        return GOOGLE, region or DEFAULT_REGION, f"/{_quoted_path(where)}/{_quoted_path(key)}"
    found = _PLACE.fullmatch(where)
    if found is None:
        raise BadObject(f"{shown_url(url)}: {where} is no name of a bucket or a host")
    host = found["host"]
    where = where.removesuffix(":443")  # which no request names
    if host.endswith(AMAZON):
        bucket, mark, there = host[:-len(AMAZON)].rpartition(".s3.")
        if not mark or not bucket or not there:
            raise BadObject(f"{shown_url(url)}: a bucket there is named as s3://BUCKET.s3.REGION{AMAZON}/KEY")
        return where.lower(), there, f"/{_quoted_path(key)}"
    if "." in host or found["port"] or host.startswith("["):
        return where.lower(), region or DEFAULT_REGION, f"/{_quoted_path(key)}"
    if _IN_HOST_NAMES.fullmatch(host):
        return (f"{host}.s3.{region}{AMAZON}" if region else f"{host}.s3{AMAZON}", region or DEFAULT_REGION,
                f"/{_quoted_path(key)}")
    return f"s3{AMAZON}", DEFAULT_REGION, f"/{_quoted_path(where)}/{_quoted_path(key)}"


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="-_.~", errors="surrogateescape")


def _quoted_path(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="-_.~/", errors="surrogateescape")


def _keyed(key: bytes, text: str) -> bytes:
    import hashlib
    import hmac

    return hmac.new(key, text.encode(), hashlib.sha256).digest()
