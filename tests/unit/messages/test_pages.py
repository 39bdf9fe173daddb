"""Pages of ads: whatever ads there are, each page is a message, and all that can be shown is shown."""

from __future__ import annotations

from random import Random

from condor_actors.messages.codec import MAX_BODY_BYTES, PAGE_BYTES, encode
from condor_actors.messages.pages import AdPage, shortened
from condor_actors.messages.queue import JobsPage


def test_ads_of_any_size_come_in_their_order_in_pages_that_are_messages() -> None:
    random = Random(5)
    texts = [b"A = %d\n" % number + b"B = \"%s\"\n" % (b"x" * random.choice((1, 5_000, 130_000, 390_000)))
             for number in range(60)]
    pages, page = [], AdPage()
    for text in texts:
        if not page.add(text):
            pages.append(page)
            page = AdPage()
            assert page.add(text)
    pages.append(page)
    assert b"".join(text for each in pages for text in each.ads) == b"".join(texts)
    for each in pages:
        assert len(encode(JobsPage(ads=tuple(each.ads), cursor="12/1.0"))) <= MAX_BODY_BYTES


def test_of_an_ad_that_no_page_has_room_for_the_longest_attributes_are_left_out() -> None:
    small, large = b"ClusterId = 1\nOwner = \"a\"\n", b"X = \"%s\"\n" % (b"x" * PAGE_BYTES)
    assert shortened(small) == small
    assert shortened(small + large + b"Z = 1\n") == small + b"Z = 1\n"
    page = AdPage()
    assert page.add(large + small)
    assert page.ads == [small]
