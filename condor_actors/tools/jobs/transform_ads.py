"""condor_transform_ads: what job transforms make of ads, before any job is submitted to them.

**Source**: the manual, condor_transform_ads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from condor_actors import records
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.classads.forms.any_form import FORMS, iter_ads, recognise, write_ads
from condor_actors.config import ConfigError, transforms
from condor_actors.config.transforms import JobTransform, read_transform
from condor_actors.cores.schedd.job_transforms import JobTransforms, TransformFailed
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.printing.ad_output import projected_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from condor_actors.classads.forms.any_form import Form

FLAGS = (
    Flag("help", 1), Flag("version", 3), Flag("rules", 1, 1), Flag("jobtransforms", 2, 1),
    Flag("jobroute", 4, 1, refused="there is no job router; -jobtransforms takes what the configuration has"),
    Flag("in", 1, 1, colon=True), Flag("out", 1, 1, colon=True), Flag("long", 1), Flag("json", 2), Flag("xml", 1),
    Flag("verbose", 4), Flag("terse", 1, idle="nothing but the ads is printed, unless -verbose is given"),
    Flag("debug", 1, idle=NO_DEBUG),
)  # fmt: skip
CONVERT = "Routes of the old syntax are not converted: there is no job router."



def main() -> int:
    """Entry of ``condor_transform_ads``."""
    return run(FLAGS, "condor_transform_ads", _answer, words=Words.of("condor_transform_ads"),
               topics={"rules": lambda: transforms.__doc__ or "", "convert": lambda: CONVERT})


def _answer(given: Sequence[Given]) -> int:
    config = load("SCHEDD")
    chosen: list[JobTransform] = []
    files: list[_Input] = []
    macros: dict[str, str] = {}
    for item in given:
        value = item.values[0] if item.values else ""
        if item.name == "rules":
            chosen.append(_read(Path(value).stem, lambda path=value: _text(path), value))  # type: ignore[misc]
        elif item.name == "jobtransforms":
            for name in value.replace(",", " ").split():
                raw = config.raw(f"JOB_TRANSFORM_{name}")
                if raw is None:
                    raise ToolError(f"ERROR: there is no JOB_TRANSFORM_{name} in the configuration")
                chosen.append(_read(name, lambda raw=raw: raw, f"JOB_TRANSFORM_{name}"))  # type: ignore[misc]
        elif item.name == "in" or (not item.name and "=" not in value):
            files.append(_Input(value, _form(item.word, item.qualifier)))
        elif not item.name:
            key, _, macros_value = value.partition("=")
            macros[key.upper()] = macros_value
    if not chosen or not files:
        raise ToolError(f"ERROR: {'no ads' if chosen else 'no transform'} given\n{reminder_of('condor_transform_ads')}")
    rules = JobTransforms(transforms=tuple(chosen), functions=config.macros.functions,
                          lookup=lambda name: macros.get(name.upper()) or config.raw(name))  # fmt: skip
    names = {item.name for item in given}
    to: Form = next((each for each in FORMS if each in names), "long")
    out = "-"
    for item in given:
        if item.name == "out":
            out, qualifier = item.values[0], item.qualifier.replace(",", " ").split()
            asked = next((word for word in qualifier if word != "nosort"), "")
            to = (_form(item.word, asked) or recognise(files[0].text())) if asked else to
    changed = _transformed(rules, files, "verbose" in names)
    rows = write_ads(changed, to) if to == "new" else projected_rows(to, changed)
    if out == "-":
        sys.stdout.writelines(rows)
    else:
        with open(out, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(rows)
    return 0


@records.define
class _Input:
    """A file with ads, ``-`` is standard input; ``form`` None: as it looks."""

    path: str
    form: Form | None = None
    _text: str | None = None

    def text(self) -> str:
        """What is in it, read once."""
        if self._text is None:
            self._text = sys.stdin.read() if self.path == "-" else _text(self.path, "surrogateescape")
        return self._text

    def ads(self) -> Iterator[ClassAd]:
        """Its ads.

        Raises:
            ToolError: it cannot be read, or is something else.
        """
        try:
            yield from iter_ads(self.text(), self.form)
        except OSError as error:
            raise ToolError(f"Error: Can't open ads file {self.path}: {error.strerror}") from None
        except ClassAdSyntaxError as error:
            raise ToolError(f"Error: {self.path}: {error}") from None


def _form(word: str, name: str) -> Form | None:
    """The form behind the colon of a flag; None: as it looks."""
    if name in ("", "auto"):
        return None
    found = next((form for form in FORMS if form == name), None)
    if found is None:
        raise ToolError(f"ERROR: {word}: expected one of auto {' '.join(FORMS)}")
    return found


def _text(path: str, errors: str = "strict") -> str:
    with open(path, encoding="utf-8", errors=errors) as file:
        return file.read()


def _read(name: str, text: Callable[[], str], source: str) -> JobTransform:
    try:
        return read_transform(name, text())
    except ConfigError as error:
        raise ToolError(f"ERROR: {source}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"ERROR: cannot read {source}: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def _transformed(rules: JobTransforms, files: Sequence[_Input], is_telling: bool) -> Iterator[ClassAd]:
    for file in files:
        for number, ad in enumerate(file.ads(), 1):
            try:
                applied = rules.apply(ad, (), time.time())
            except TransformFailed as error:
                raise ToolError(f"ERROR: ad {number} of {file.path}: {error}") from None
            if is_telling:
                print(f"ad {number} of {file.path}: {', '.join(applied) or 'no transform applies'}", file=sys.stderr)
            yield ad


if __name__ == "__main__":
    sys.exit(main())
