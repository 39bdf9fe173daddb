"""condor_transform_ads: what job transforms make of ads, before any job is submitted to them.

**Source**: the manual, condor_transform_ads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from condor_actors.classads import ClassAd
from condor_actors.config import ConfigError
from condor_actors.config.transforms import JobTransform, read_transform
from condor_actors.cores.schedd.job_transforms import JobTransforms, TransformFailed
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.printing.ad_output import ads_of_file, projected_rows

FLAGS = (
    Flag("help", 1), Flag("version", 3), Flag("rules", 1, 1), Flag("jobtransforms", 2, 1), Flag("in", 1, 1),
    Flag("out", 1, 1), Flag("long", 1), Flag("json", 2), Flag("xml", 1), Flag("verbose", 4), Flag("terse", 1),
    Flag("debug", 1),
)  # fmt: skip
USAGE = """Usage: condor_transform_ads -rules FILE | -jobtransforms NAME[,NAME...]  [options] [KEY=VALUE ...] [FILE ...]

    -rules <file>           statements of a transform, as in JOB_TRANSFORM_<NAME>
    -jobtransforms <names>  transforms of the configuration; both in the order given
    -in <file>              ads in the long form; - is standard input
    -out <file>             where the result goes; by default standard output
    -long  -json  -xml      how the result is printed
    -verbose                say on standard error which transforms applied to which ad
    KEY=VALUE               a macro for the transforms"""


def main() -> int:
    """Entry of ``condor_transform_ads``."""
    return run(FLAGS, USAGE, _answer, words=Words.of("condor_transform_ads"))


def _answer(given: Sequence[Given]) -> int:
    config = load("SCHEDD")
    transforms: list[JobTransform] = []
    files: list[str] = []
    macros: dict[str, str] = {}
    for item in given:
        value = item.values[0] if item.values else ""
        if item.name == "rules":
            transforms.append(_read(Path(value).stem, lambda path=value: _text(path), value))  # type: ignore[misc]
        elif item.name == "jobtransforms":
            for name in value.replace(",", " ").split():
                raw = config.raw(f"JOB_TRANSFORM_{name}")
                if raw is None:
                    raise ToolError(f"ERROR: there is no JOB_TRANSFORM_{name} in the configuration")
                transforms.append(_read(name, lambda raw=raw: raw, f"JOB_TRANSFORM_{name}"))  # type: ignore[misc]
        elif item.name == "in" or (not item.name and "=" not in value):
            files.append(value)
        elif not item.name:
            key, _, macros_value = value.partition("=")
            macros[key.upper()] = macros_value
    if not transforms or not files:
        raise ToolError(f"ERROR: {'no ads' if transforms else 'no transform'} given\n{USAGE}")
    rules = JobTransforms(transforms=tuple(transforms), functions=config.macros.functions,
                          lookup=lambda name: macros.get(name.upper()) or config.raw(name))  # fmt: skip
    names = {item.name for item in given}
    form = next((name for name in ("json", "xml") if name in names), "long")
    rows = projected_rows(form, _transformed(rules, files, "verbose" in names))
    out = next((item.values[0] for item in given if item.name == "out"), "-")
    if out == "-":
        sys.stdout.writelines(rows)
    else:
        with open(out, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(rows)
    return 0


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _read(name: str, text: Callable[[], str], source: str) -> JobTransform:
    try:
        return read_transform(name, text())
    except ConfigError as error:
        raise ToolError(f"ERROR: {source}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"ERROR: cannot read {source}: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def _transformed(rules: JobTransforms, files: Sequence[str], is_telling: bool) -> Iterator[ClassAd]:
    for path in files:
        for number, ad in enumerate(ads_of_file(path), 1):
            try:
                applied = rules.apply(ad, (), time.time())
            except TransformFailed as error:
                raise ToolError(f"ERROR: ad {number} of {path}: {error}") from None
            if is_telling:
                print(f"ad {number} of {path}: {', '.join(applied) or 'no transform applies'}", file=sys.stderr)
            yield ad


if __name__ == "__main__":
    sys.exit(main())
