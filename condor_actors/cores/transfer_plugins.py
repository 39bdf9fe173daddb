"""Programs that transfer files by URL: what they say of themselves, what they are told, and what they say they did.

Theory: an administrator's plugin (FILETRANSFER_PLUGINS) is asked with ``-classad`` for its methods, which are schemes
of URLs.  A job's own (``TransferPlugins``) has the methods that its description gives it, and goes before the
machine's.  One with MultipleFileSupport is started once for all its files::

    plugin -infile IN -outfile OUT [-upload]

IN has a record (a ClassAd in brackets) with ``Url`` and ``LocalFileName`` for each file; OUT gets one for each, with
``TransferUrl``, ``TransferSuccess`` and, where that is false, ``TransferError``.  Another one is started for each
file: ``plugin FROM TO``, and writes ``TransferError = "…"`` to its standard output.  What a plugin writes is as hostile
as the job that brought it.

**Source**: the manual, "Third Party/Custom File Transfer Plugins".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd, ClassAdSyntaxError, quote
from condor_actors.classads.forms.any_form import iter_ads
from condor_actors.cores.object_store import is_object
from condor_actors.messages.references.urls import FETCHED, scheme_of, shown_url
from condor_actors.patterns import late

__all__ = ["BadPlugin", "Plugin", "PluginTable", "failure_of", "job_plugins", "orders_of", "plugin_facts",
           "plugin_files", "spooled_plugins", "words_for"]

MOST_PLUGINS = 20
MOST_METHODS = 50
_RESULT = late(r"\s*Transfer\w+\s*=")
_URL = late(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://\S+")
_METHOD = late(r"[a-z][a-z0-9+.-]{0,29}")
_TOLD = 600
"""Letters of a plugin's own words in a hold reason."""


class BadPlugin(ValueError):
    """A plugin, or a list of them, cannot be used; the text says why."""


@records.frozen(kw_only=True)
class Plugin:
    """One program.

    Attributes:
        path: of the program; of a job's own, relative to its scratch directory.
        methods: schemes of URLs, in small letters.
        several: it takes many files at once (MultipleFileSupport).
        own: the job has brought it.
    """

    path: str
    methods: tuple[str, ...]
    several: bool = True
    own: bool = False

    @property
    def name(self) -> str:
        """In capitals, without ending: the job's variables that begin with it and ``_`` are passed on to it."""
        base = posixpath.basename(self.path)
        return base.partition("_plugin")[0].partition(".")[0].upper()


def _methods(text: str, whose: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    wrong = [word for word in found if not _METHOD.fullmatch(word)]
    if wrong or len(found) > MOST_METHODS:
        raise BadPlugin(f"{whose} has {wrong[0][:60]!r} among its methods, which is no scheme of a URL" if wrong else
                        f"{whose} has {len(found)} methods; {MOST_METHODS} are the most")
    return found


def _ads(text: str) -> list[ClassAd]:
    """The records in brackets of a text, or its lines ``Name = value``; nothing else is tried on a plugin's words.

    Raises:
        ClassAdSyntaxError: it has neither.
    """
    return list(iter_ads(text, "new" if text.lstrip().startswith("[") else "long"))


def plugin_facts(path: str, text: str) -> Plugin:
    """What an administrator's plugin has written when it was asked with ``-classad``.

    Args:
        path: of the plugin; text: lines ``Name = value``, or a record in brackets.

    Raises:
        BadPlugin: it is no ad, it names no methods, or its PluginType is another.
    """
    try:
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        ad = next(iter(_ads("\n".join(lines))), ClassAd())
    except (ClassAdSyntaxError, ValueError) as error:
        raise BadPlugin(f"{path} -classad wrote what is no ClassAd: {error}") from None
    kind = ad.get_str("PluginType", "FileTransfer")
    if kind.lower() != "filetransfer":
        raise BadPlugin(f"{path} -classad says PluginType = {kind[:60]!r}, which is not FileTransfer")
    methods = tuple(method for method in _methods(ad.get_str("SupportedMethods"), path)
                    if method != "file" and not is_object(f"{method}://"))
    if not methods:
        raise BadPlugin(f"{path} -classad names no SupportedMethods beside those of the submit machine (file, s3, gs)")
    return Plugin(path=path, methods=methods, several=ad.get_bool("MultipleFileSupport"))


def job_plugins(text: str) -> dict[str, str]:
    """``TransferPlugins`` of a job: ``method, method = path; …`` as a dictionary from method to path at home.

    Raises:
        BadPlugin: it is not of that form, names a method twice, or one that is not a plugin's.
    """
    found: dict[str, str] = {}
    names: dict[str, str] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        methods, equals, path = (word.strip() for word in part.partition("="))
        if not equals or not methods or not path:
            raise BadPlugin(f"{part.strip()[:100]!r} is not METHOD=PATH")
        if scheme_of(path):
            raise BadPlugin(f"{path[:100]} is a URL; a plugin is a file of the submit machine")
        base = posixpath.basename(path)
        if names.setdefault(base, path) != path or base in ("", ".", ".."):
            raise BadPlugin(f"two plugins would have the name {base!r} in the job's folder" if base else
                            f"{path[:100]} is a folder")
        for method in _methods(methods, path):
            if method == "file" or is_object(f"{method}://"):
                raise BadPlugin(f"{method}:// is what the submit machine sees to, and no plugin's")
            if method in found:
                raise BadPlugin(f"the method {method} is given to two plugins")
            found[method] = path
    if len(names) > MOST_PLUGINS:
        raise BadPlugin(f"{len(names)} plugins; {MOST_PLUGINS} are the most")
    return found


def plugin_files(text: str) -> tuple[str, ...]:
    """The paths in ``TransferPlugins``; none where it cannot be read."""
    try:
        return tuple(dict.fromkeys(job_plugins(text).values()))
    except BadPlugin:
        return ()


def spooled_plugins(text: str) -> str:
    """``TransferPlugins`` of a job whose files are together in one folder; as it is where it cannot be read: that holds
    the job when it is to run."""
    try:
        return "; ".join(f"{method}={posixpath.basename(path)}" for method, path in job_plugins(text).items())
    except BadPlugin:
        return text


class PluginTable:
    """Which plugin transfers which URL.

    Args:
        plugins: the first that names a method has it.
    """

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._by_method: dict[str, Plugin] = {}
        for plugin in plugins:
            for method in plugin.methods:
                self._by_method.setdefault(method, plugin)

    @property
    def methods(self) -> tuple[str, ...]:
        """All schemes that a machine with these plugins transfers, its own first."""
        return tuple(dict.fromkeys((*FETCHED, *sorted(self._by_method))))

    def with_own(self, own: Mapping[str, str]) -> PluginTable:
        """With those of a job before them (:func:`job_plugins`)."""
        if not own:
            return self
        brought = [Plugin(path=posixpath.basename(path), methods=(method,), own=True) for method, path in own.items()]
        return PluginTable([*brought, *self._by_method.values()])

    def of(self, url: str) -> Plugin | None:
        """The plugin for a URL; None: what is built in (http, https), or none."""
        return self._by_method.get(scheme_of(url))

    def knows(self, url: str) -> bool:
        """Whether it can be transferred at all."""
        return scheme_of(url) in FETCHED or self.of(url) is not None


def orders_of(files: Sequence[tuple[str, str]]) -> bytes:
    """What a plugin reads that takes many files.

    Args:
        files: (URL, absolute path here) of each.
    """
    lines = (f"[ LocalFileName = {quote(path)}; Url = {quote(url)} ]" for url, path in files)
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def words_for(plugin: Plugin, files: Sequence[tuple[str, str]], *, upload: bool, told: str, tells: str) -> list[str]:
    """The arguments that a plugin is started with.

    Args:
        files: (URL, absolute path here); one where the plugin takes no more.
        told, tells: paths of what it reads and what it writes.
    """
    if plugin.several:
        return ["-infile", told, "-outfile", tells, *(["-upload"] if upload else [])]
    url, path = files[0]
    return [path, url] if upload else [url, path]


def failure_of(plugin: Plugin, files: Sequence[tuple[str, str]], status: int, results: str, said: str) -> str:
    """Why a plugin has failed, a clause for people; empty: it has not.

    Args:
        files: as for :func:`words_for`.
        status: its exit status.
        results: what it has written into its file; said: the end of what it wrote to its standard output and error.
    """
    text = results if plugin.several else "\n".join(
        line for line in said.splitlines() if _RESULT.match(line))
    try:
        ads = _ads(text)
    except (ClassAdSyntaxError, ValueError) as error:
        return f"{plugin.path} wrote results that are no ClassAds: {_shown(str(error))}"
    urls = dict.fromkeys(url for url, _ in files)
    for ad in ads:
        if not ad.get_bool("TransferSuccess", status == 0):
            url = ad.get_str("TransferUrl")
            which = shown_url(url if url in urls else next(iter(urls)))
            return f"{which}: {_shown(ad.get_str('TransferError')) or 'the plugin does not say why'} ({plugin.path})"
    first = shown_url(next(iter(urls)))
    if status:
        return f"{first}: {plugin.path} ended with status {status}{_last_words(said)}"
    if plugin.several and len(ads) < len(files):
        return f"{first}: {plugin.path} tells of {len(ads)} of {len(files)} files"
    return ""


def _last_words(said: str) -> str:
    shown = _shown(said)
    return f": {shown}" if shown else ""


def _shown(text: str) -> str:
    """A plugin's words in one line, without what would be a URL's secrets."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[-_TOLD:]
    return _URL.sub(lambda found: shown_url(found.group()), line)
