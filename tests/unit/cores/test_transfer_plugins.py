"""What transfer plugins say of themselves, are told, and say that they did."""

from __future__ import annotations

import pytest

from condor_actors.classads.forms.any_form import iter_ads
from condor_actors.cores.transfer_plugins import (
    BadPlugin,
    Plugin,
    PluginTable,
    failure_of,
    job_plugins,
    orders_of,
    plugin_facts,
    plugin_files,
    spooled_plugins,
    words_for,
)

BOX = Plugin(path="/usr/libexec/box_plugin.py", methods=("box",))
OLD = Plugin(path="/usr/libexec/old", methods=("old",), several=False)
FILES = [("box://a/one?secret=s", "/scratch/one"), ("box://a/two", '/scratch/t"wo')]


@pytest.mark.parametrize("text", [
    'PluginType = "FileTransfer"\nSupportedMethods = "BOX, crate"\nMultipleFileSupport = true\n',
    '# a plugin\n[ PluginType = "FileTransfer"; SupportedMethods = "box,crate,box"; MultipleFileSupport = true ]',
])
def test_a_plugin_tells_of_itself(text: str) -> None:
    assert plugin_facts("/p", text) == Plugin(path="/p", methods=("box", "crate"), several=True)


def test_without_a_word_it_takes_one_file_at_a_time() -> None:
    assert not plugin_facts("/p", 'SupportedMethods = "box"').several


@pytest.mark.parametrize(("text", "reason"), [
    ("", "names no SupportedMethods"),
    ("usage: me FROM TO", "wrote what is no ClassAd"),
    ('PluginType = "Matchmaking"\nSupportedMethods = "box"', "PluginType = 'Matchmaking'"),
    ('SupportedMethods = "file,s3"', "names no SupportedMethods beside those of the submit machine"),
    ('SupportedMethods = "../box"', "no scheme of a URL"),
    (f'SupportedMethods = "{",".join(f"m{number}" for number in range(51))}"', "50 are the most"),
])
def test_what_cannot_be_used_says_why(text: str, reason: str) -> None:
    with pytest.raises(BadPlugin, match=reason):
        plugin_facts("/p", text)


def test_the_first_that_names_a_scheme_has_it_and_a_jobs_own_goes_before() -> None:
    machine = PluginTable([BOX, Plugin(path="/other", methods=("box", "https"))])
    assert machine.of("BOX://x") is BOX
    assert machine.of("https://x") == Plugin(path="/other", methods=("box", "https"))
    assert machine.of("http://x") is None
    assert machine.methods == ("http", "https", "box")
    assert machine.knows("http://x")
    assert not machine.knows("crate://x")
    own = machine.with_own({"box": "bin/mine", "crate": "bin/mine"})
    assert own.of("box://x") == Plugin(path="mine", methods=("box",), own=True)
    assert own.knows("crate://x")
    assert machine.of("box://x") is BOX


def test_a_jobs_list_of_plugins() -> None:
    assert job_plugins("Box,crate = bin/a; zip=/opt/z ;") == {"box": "bin/a", "crate": "bin/a", "zip": "/opt/z"}
    assert plugin_files("box,crate=bin/a; zip=z") == ("bin/a", "z")
    assert spooled_plugins("box,crate=bin/a; zip=z") == "box=a; crate=a; zip=z"
    assert plugin_files("nonsense") == ()
    assert spooled_plugins("nonsense") == "nonsense"


@pytest.mark.parametrize(("text", "reason"), [
    ("box", "is not METHOD=PATH"), ("box=", "is not METHOD=PATH"), ("=x", "is not METHOD=PATH"),
    ("box=http://h/x", "is a URL"), ("box=folder/", "is a folder"), ("box=..", "would have the name|is a folder"),
    ("box=a/x; crate=b/x", "two plugins would have the name 'x'"), ("box=a; box=b", "given to two plugins"),
    ("s3=x", "the submit machine sees to"), ("file=x", "the submit machine sees to"), ("b_x=y", "no scheme"),
    (";".join(f"m{number}=p{number}" for number in range(21)), "20 are the most"),
])
def test_a_list_that_cannot_be_used_says_why(text: str, reason: str) -> None:
    with pytest.raises(BadPlugin, match=reason):
        job_plugins(text)


def test_what_a_plugin_reads_are_records() -> None:
    ads = list(iter_ads(orders_of(FILES).decode()))
    assert [(ad.get_str("Url"), ad.get_str("LocalFileName")) for ad in ads] == FILES


def test_its_arguments() -> None:
    assert words_for(BOX, FILES, upload=False, told="/in", tells="/out") == ["-infile", "/in", "-outfile", "/out"]
    assert words_for(BOX, FILES, upload=True, told="/in", tells="/out")[-1] == "-upload"
    assert words_for(OLD, FILES[:1], upload=False, told="/in", tells="/out") == [FILES[0][0], "/scratch/one"]
    assert words_for(OLD, FILES[:1], upload=True, told="/in", tells="/out") == ["/scratch/one", FILES[0][0]]


def test_all_is_well_when_it_says_so_of_each_file() -> None:
    good = "[ TransferSuccess = true; TransferUrl = \"box://a/two\" ]\n" * 2
    assert failure_of(BOX, FILES, 0, good, "noise") == ""
    assert failure_of(OLD, [("old://x", "/s/x")], 0, "", "noise\nTransferFileBytes = 3\n") == ""


def test_it_tells_of_too_few_files() -> None:
    assert failure_of(BOX, FILES, 0, "[ TransferSuccess = true ]", "") == (
        "box://a/one: /usr/libexec/box_plugin.py tells of 1 of 2 files")
    assert "tells of 0 of 2 files" in failure_of(BOX, FILES, 0, "", "")


def test_its_own_words_are_the_reason_without_secrets_and_control_characters() -> None:
    results = ('[ TransferSuccess = true; TransferUrl = "box://a/one?secret=s" ]'
               '[ TransferSuccess = false; TransferUrl = "box://a/two"; '
               'TransferError = "no\\nsuch \\033thing: box://u:pass@a/two?secret=s" ]')
    assert failure_of(BOX, FILES, 0, results, "") == (
        "box://a/two: no such thing: box://a/two (/usr/libexec/box_plugin.py)")


def test_a_url_that_nobody_asked_for_is_not_repeated() -> None:
    results = '[ TransferSuccess = false; TransferUrl = "evil://x"; TransferError = "why" ]'
    assert failure_of(BOX, FILES, 1, results, "").startswith("box://a/one: why")


def test_a_status_without_a_word_shows_the_last_of_what_it_said() -> None:
    assert failure_of(BOX, FILES, 3, "", "Traceback\nValueError: wrong") == (
        "box://a/one: /usr/libexec/box_plugin.py ended with status 3: Traceback ValueError: wrong")
    assert failure_of(OLD, [("old://x", "/s/x")], 1, "", 'TransferError = "gone away"') == (
        "old://x: gone away (/usr/libexec/old)")


@pytest.mark.parametrize("text", ["[ TransferSuccess = ", "<classads><c>", '{"a": }', "[" * 100_000, "\x00"])
def test_results_that_are_no_ads_are_a_failure(text: str) -> None:
    assert "no ClassAds" in failure_of(BOX, FILES, 0, text, "")


def test_the_variables_that_are_passed_on_to_it() -> None:
    assert BOX.name == "BOX"
    assert Plugin(path="pelican.bin", methods=("osdf",)).name == "PELICAN"
