"""Ads in files and streams: recognise the form, read one ad after another, write any form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.forms.long_form import iter_long, write_long
from condor_actors.classads.language.parser import parse_records
from condor_actors.classads.language.unparse import unparse

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final, Literal

    Form = Literal["long", "new", "json", "xml"]

FORMS: Final[tuple[Form, ...]] = ("long", "new", "json", "xml")


def recognise(text: str) -> Form:
    """Tell the form of a text that holds ads.

    Args:
        text: Its beginning is enough.

    Returns:
        The form; ``long`` when nothing speaks for another.
    """
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return "xml"
    if start.startswith("{"):
        return "json" if start[1:].lstrip()[:1] in ('"', "}") else "new"
    if start.startswith("["):
        inner = start[1:].lstrip()
        return "json" if inner.startswith("{") or (inner.startswith("]") and not inner[1:].strip()) else "new"
    return "long"


def iter_ads(text: str, form: Form | None = None) -> Iterator[ClassAd]:
    """Read every ad of a text.

    Args:
        text: Ads of one form.
        form: The form, recognised when not given.

    Returns:
        An iterator of ads.

    Raises:
        ClassAdSyntaxError: When the faulty ad is reached.
    """

    from condor_actors.classads.forms.json_form import iter_json
    from condor_actors.classads.forms.xml_form import iter_xml

    form = form or recognise(text)
    if form == "xml":
        yield from iter_xml([text])
    elif form == "json":
        yield from iter_json(text)
    elif form == "new":
        for record in parse_records(text):
            yield ClassAd.from_pairs(record.pairs)
    else:
        yield from iter_long(text.splitlines(keepends=True))


def write_ads(ads: Iterable[ClassAd], form: Form) -> Iterator[str]:
    """Write ads piece by piece.

    Args:
        ads: The ads.
        form: The form.

    Returns:
        An iterator of pieces.
    """

    from condor_actors.classads.forms.json_form import write_json_list
    from condor_actors.classads.forms.xml_form import write_xml_list

    if form == "xml":
        yield from write_xml_list(ads)
    elif form == "json":
        yield from write_json_list(ads)
    elif form == "new":
        for ad in ads:
            yield unparse(ad) + "\n"
    else:
        for ad in ads:
            yield write_long(ad) + "\n"


def ad_of(value: Any) -> ClassAd:
    """Make an ad of what a caller has: text of any form, or a decoded JSON object.

    Args:
        value: Text, mapping or ClassAd; None gives an empty ad.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: When the text holds no ad.
    """
    if isinstance(value, ClassAd):
        return value
    if value is None:
        return ClassAd()
    if isinstance(value, dict):
        from condor_actors.classads.forms.json_form import ad_of_object

        return ad_of_object(value)
    for ad in iter_ads(str(value)):
        return ad
    return ClassAd()
