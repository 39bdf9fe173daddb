"""How fast the collector takes and finds ads.

Usage: python benchmarks/collector.py [--ads N]

One process, no network: messages are decoded from bytes, answers encoded into bytes.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.negotiation import slot_change
from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.collector.ad_table import AdTable
from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.messages.codec import decode, encode

NOW_S = 1.8e9


def timed(what: str, count: int, action: Callable[[], Any]) -> Any:
    """Run once and print the time, whole and per ad."""
    began = time.perf_counter()
    result = action()
    spent_s = time.perf_counter() - began
    print(f"{what:44} {spent_s * 1000:9.1f} ms {spent_s / count * 1e6:8.2f} us each", flush=True)
    return result


def take(table: AdTable, bodies: list[bytes]) -> None:
    """Updates as they arrive."""
    for body in bodies:
        update = decode(UpdateAd.KIND, UpdateAd.VERSION, body)
        table.update(update.ad_kind, update.ad, update.private, now_s=NOW_S, lifetime_s=900.0)


def ask(table: AdTable, constraint: str, *projection: str) -> tuple[int, int]:
    """All pages of a query; ads found and pages."""
    found = pages = 0
    cursor = ""
    expression = parse_expression(constraint) if constraint else None
    while True:
        page = table.page(AdKind.SLOT, expression, projection, 0, cursor)
        encode(page)
        found += len(page.ads)
        pages += 1
        cursor = page.cursor
        if not cursor:
            return found, pages


def changed(body: bytes) -> bytes:
    """The same ad a while later."""
    update = decode(UpdateAd.KIND, UpdateAd.VERSION, body)
    ad = ClassAd.from_bytes(update.ad)
    ad["LoadAvg"] = ad.get_float("LoadAvg") + 0.25
    ad["MyCurrentTime"] = int(NOW_S) + 60
    return encode(UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes(), private=update.private))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ads", type=int, default=10_000)
    count = parser.parse_args().ads
    slots = [slot_change(number) for number in range(count)]
    bodies = [encode(UpdateAd(ad_kind=AdKind.SLOT, ad=slot.ad, private=slot.private)) for slot in slots]
    later = [changed(body) for body in bodies]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = AdTable()
    timed(f"take {count} new ads", count, lambda: take(table, bodies))
    print(f"{'memory per ad':44} {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / count:9.2f} KiB")
    timed("take them again unchanged (heartbeat)", count, lambda: take(table, bodies))
    timed("take them again changed", count, lambda: take(table, later))
    for what, constraint, projection in (
        ("all, 6 attributes", "", ("Name", "State", "Activity", "LoadAvg", "Memory", "OpSys")),
        ("a constraint that few satisfy", "Memory > 1000 && LoadAvg > 1.8", ("Name",)),
        ("one by name", 'Name == "slot1@m77"', ()),
        ("all, whole", "", ()),
    ):
        found, pages = timed(what, count, lambda c=constraint, p=projection: ask(table, c, *p))  # type: ignore[misc]
        print(f"{'':44} {found} ads in {pages} pages")


if __name__ == "__main__":
    main()
