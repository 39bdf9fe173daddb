"""The messages that bring a cluster to a schedd hold it, or it is refused before one is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from condor_actors.messages.codec import encode
from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES
from condor_actors.submit import Description, clusters
from condor_actors.submit.factory import Repeated
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.submission import pages_to_send
from tests.unit.submit.worlds import World


def cluster(ad: int, procs: Any, *, is_factory: bool = False) -> Any:
    return SimpleNamespace(cluster_id=7, ad=b"a" * ad, procs=procs, is_factory=is_factory)


def test_jobs_of_any_sizes_fit_their_messages() -> None:
    procs = [b"p" * size for size in (0, 10, 200_000, 190_000, 250_000, 5, 250_000)]
    pages = list(pages_to_send(cluster(MOST_AD_BYTES - 250_000, procs)))
    assert [encode(page) for page in pages]
    assert [proc for page in pages for proc in page.procs] == procs
    assert [page.last for page in pages] == [False] * (len(pages) - 1) + [True]


def test_the_text_of_a_clusters_ad_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "executable = /bin/sleep\narguments = $(word)\nqueue word from (\n" + "a\nb\nc\nd\n" * 50 + ")\n"
    lines: list[str] = []
    line = clusters._line
    monkeypatch.setattr(clusters, "_line", lambda name, value: lines.append(name) or line(name, value))
    (made,) = Description(World().environment(), lambda: 7).read(text, "x.sub")
    (page,) = pages_to_send(made)
    assert len(page.procs) == 200
    assert page.cluster_ad.count(b"\n") == len(made.attributes)
    assert lines.count("Cmd") == 1


@pytest.mark.parametrize("large", [
    cluster(MOST_AD_BYTES + 1, [b""]), cluster(1, [b"", b"p" * MOST_AD_BYTES]), cluster(600_000, [b""]),
    cluster(600_000, [b"item"], is_factory=True), cluster(600_000, Repeated(b"", 5), is_factory=True),
], ids=["ad", "job", "no message", "late", "late and equal"])
def test_an_ad_that_fits_no_message_is_refused_in_a_sentence(large: Any) -> None:
    with pytest.raises(ToolError, match=LARGE_AD):
        list(pages_to_send(large))
