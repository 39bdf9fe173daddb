"""condor_reserve: grant machines to a user in advance.

The pool drains ahead: nobody else gets anything new on the machines that are set aside, and what of others still runs
there when the reservation begins is vacated.  A machine's owner comes first all the same.
"""

from __future__ import annotations

import sys
import time

from condor_actors.classads import ClassAd
from condor_actors.messages.advertise import AdsPage
from condor_actors.messages.negotiate import CancelReservation, MakeReservation, QueryReservations
from condor_actors.tools.lib.command import ToolError, framed, help_of, senseless
from condor_actors.tools.lib.contact import NEGOTIATOR, load, negotiator
from condor_actors.tools.lib.machine_commands import ask
from condor_actors.tools.pool.owner import clock, span_s

OPTIONS = ("user", "machines", "constraint", "from", "until", "for", "ahead", "pool")


@framed
def main() -> int:
    """Entry of ``condor_reserve``."""
    words: list[str] = []
    given: dict[str, str] = {}
    rest = iter(sys.argv[1:])
    for word in rest:
        if word in ("-h", "-help", "--help"):
            print(help_of("condor_reserve"))
            return 0
        if word[:1] == "-" and word.lstrip("-") in OPTIONS:
            given[word.lstrip("-")] = next(rest, "")
        elif word[:1] == "-" and word.lstrip("-") == "long":
            given["long"] = "yes"
        else:
            words.append(word)
    takes = {"make": 2, "list": 1, "cancel": 2}
    if not words or len(words) != takes.get(words[0]) or any(word[:1] == "-" for word in words):
        print(senseless("condor_reserve"), file=sys.stderr)
        return 2
    try:
        wish = _wish(words[1], given, time.time()) if words[0] == "make" else None
    except ValueError as error:
        print(f"condor_reserve: {error}", file=sys.stderr)
        return 2
    try:
        with negotiator(load(), pool=given.get("pool", "")) as client:
            if wish is not None:
                ask(client, NEGOTIATOR, wish)
                print(f"{wish.name}: {wish.machines} machines for {wish.submitter} from {clock(wish.from_s)} until "
                      f"{clock(wish.until_s)}")
            elif words[0] == "cancel":
                ask(client, NEGOTIATOR, CancelReservation(name=words[1]))
                print(f"{words[1]} is cancelled")
            else:
                page: AdsPage = ask(client, NEGOTIATOR, QueryReservations())
                _show([ClassAd.from_bytes(ad) for ad in page.ads], "long" in given)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    return 0


def _wish(name: str, given: dict[str, str], now_s: float) -> MakeReservation:
    """The reservation that the command line asks for.

    Raises:
        ValueError: something of it makes no sense.
    """
    if not given.get("user") or not given.get("machines", "").isdecimal():
        raise ValueError("make takes -user USER and -machines N")
    from_s = when_s(given.get("from", "+0s"), now_s)
    if "until" in given:
        until_s = when_s(given["until"], max(now_s, from_s))
    else:
        until_s = from_s + _span(given.get("for", "1h"))
    return MakeReservation(name=name, submitter=given["user"], machines=int(given["machines"]),
                           constraint=given.get("constraint", ""), from_s=from_s, until_s=until_s,
                           ahead_s=_span(given.get("ahead", "1h")))


def _span(text: str) -> float:
    seconds = 0.0 if text in ("0", "0s") else span_s(text)
    if seconds is None:
        raise ValueError(f"{text!r} is no time; expected a number with s, m, h or d")
    return seconds


def when_s(text: str, now_s: float) -> float:
    """The moment that ``2026-11-30T14:00``, ``14:00`` or ``+2h`` means.

    Raises:
        ValueError: it means none.
    """
    if text.startswith("+"):
        return now_s + _span(text[1:])
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, form))
        except ValueError:
            continue
    try:
        hour = time.strptime(text, "%H:%M")
    except ValueError:
        raise ValueError(f"{text!r} is no moment; expected 2026-11-30T14:00, 14:00 or +2h") from None
    today = time.localtime(now_s)
    found_s = time.mktime((today.tm_year, today.tm_mon, today.tm_mday, hour.tm_hour, hour.tm_min, 0, 0, 0, -1))
    return found_s if found_s >= now_s else found_s + 86400.0


def _show(ads: list[ClassAd], whole: bool) -> None:
    if whole:
        print("\n\n".join(ad.to_bytes().decode().strip() for ad in ads))
        return
    print(f"{'Name':<16} {'User':<20} {'Machines':>8} {'From':<17} {'Until':<17} {'State':<9} Set aside")
    for ad in ads:
        print(f"{ad.get_str('Name'):<16} {ad.get_str('User'):<20} {ad.get_int('Machines'):>8} "
              f"{clock(ad.get_int('From')):<17} {clock(ad.get_int('Until')):<17} {ad.get_str('State'):<9} "
              f"{ad.get_str('SetAside')}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
