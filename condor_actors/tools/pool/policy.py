"""condor_policy: try a policy before it is trusted.

``check`` evaluates a configuration against a machine's ad as it is now, or against a day that was recorded, and says
what would happen, when, and why.  ``record`` writes such a day down: one line of JSON per reading.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError, quote
from condor_actors.classads.forms.long_form import iter_long
from condor_actors.config import Config, ConfigError, load_config
from condor_actors.cores.startd.policy_evaluation import POLICY_NAMES, UNIVERSE_SUFFIXES
from condor_actors.cores.startd.policy_settings import latches_of, policy_of
from condor_actors.cores.startd.policy_trial import Happened, Sample, Tally, Trial, why
from condor_actors.durable import naming
from condor_actors.tools.lib.command import ToolError, framed, help_of, reminder_of, senseless
from condor_actors.tools.lib.contact import load, query
from condor_actors.written_text import open_written

OPTIONS = {"day": "", "machine": "", "ads": "", "universe": "vanilla", "vacate": "5", "for": "24h", "every": "5"}
READINGS = ("KeyboardIdle", "ConsoleIdle", "OwnerLoad", "ScreenLocked")


@framed
def main() -> int:
    """Entry of ``condor_policy``."""
    words, given = [], dict(OPTIONS)
    rest = iter(sys.argv[1:])
    for word in rest:
        name = word.lstrip("-")
        if word[:1] == "-" and name in OPTIONS:
            given[name] = next(rest, "")
        elif word in ("-h", "-help", "--help"):
            print(help_of("condor_policy"))
            return 0
        else:
            words.append(word)
    if not words or words[0] not in ("check", "record") or len(words) > 2 or any(word[:1] == "-" for word in words):
        print(senseless("condor_policy"), file=sys.stderr)
        return 2
    try:
        if words[0] == "record":
            return _record(words[1] if len(words) > 1 else "", given)
        return _check(words[1] if len(words) > 1 else "", given)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except (ConfigError, OSError, ValueError) as error:
        print(f"condor_policy: {error}", file=sys.stderr)
        return 1


def _configuration(what: str) -> Config:
    """The present configuration, with a file or one statement after all else."""
    if not what:
        return load("STARTD")
    if not what.lower().startswith("use ") and "=" not in what:
        return load_config(subsystem="STARTD", last=[Path(what)])
    with tempfile.NamedTemporaryFile("w", suffix=".config") as file:
        file.write(what + "\n")
        file.flush()
        return load_config(subsystem="STARTD", last=[Path(file.name)])


def _check(what: str, given: dict[str, str]) -> int:
    config = _configuration(what)
    suffixes = {name.lower(): number for number, name in UNIVERSE_SUFFIXES.items()}
    universe = suffixes.get(given["universe"].lower())
    if universe is None or not given["vacate"].isdecimal():
        raise ToolError(f"condor_policy: -universe is one of {', '.join(sorted(suffixes))}; -vacate takes seconds", 2)
    job = ClassAd({"JobUniverse": universe, "Owner": "user", "ImageSize": 10240, "RequestCpus": 1})
    if not given["day"]:
        return _now(config, job, given)
    trial = Trial(policy_of(config), latches_of(config), job, ClassAd({"Cpus": 1, "Memory": 1024, "SlotID": 1}),
                  vacate_s=float(given["vacate"]), step_s=config.seconds("POLLING_INTERVAL"))
    for each in trial.run(_samples(given["day"])):
        print(_line(each))
    print("\n".join(_summary(trial.tally)))
    return 0


def _samples(path: str) -> Iterator[Sample]:
    """The readings of a record.

    Raises:
        ValueError: a line is none; names file and line.
    """
    with open(open_written(path), encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
                yield Sample(float(values.pop("t")), values)
            except (ValueError, KeyError, AttributeError, TypeError):
                expected = "expected an object with t, KeyboardIdle …"
                raise ValueError(f"{path}, line {number} is no reading; {expected}") from None


def _line(each: Happened) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(each.when_s))
    before, after = ("/".join(part.value for part in place) for place in (each.before, each.after))
    return f"{clock}  {before:>20} -> {after:<20} {each.why}".rstrip()


def _summary(tally: Tally) -> list[str]:
    whole_s = sum(tally.spent_s.values()) or 1.0
    lines = ["", "Time       Share  State/Activity"]
    for place, spent_s in sorted(tally.spent_s.items(), key=lambda item: -item[1]):
        lines.append(f"{_span(spent_s):>9}  {spent_s / whole_s:5.1%}  {'/'.join(part.value for part in place)}")
    lines += ["", f"Jobs were suspended {tally.suspended} times and had to go {tally.evicted} times.",
              f"A job ran for {_span(tally.disturbed_s)} while someone was at the keyboard"
              + (f", {_span(tally.lowered_s)} of it at idle priority." if tally.lowered_s else ".")]
    return lines


def _span(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _now(config: Config, job: ClassAd, given: dict[str, str]) -> int:
    """Every expression over the machine's ad as it is."""
    expressions = policy_of(config)
    for ad in _slots(config, given):
        now_s = time.time()
        bare = ad.copy()
        for name in POLICY_NAMES:
            if name.lower() in bare.own:
                del bare[name]
        print(f"{ad.get_str('Name')}  {ad.get_str('State')}/{ad.get_str('Activity')}")
        for name in POLICY_NAMES:
            variant = f"{name}_{UNIVERSE_SUFFIXES[job.get_int('JobUniverse')]}"
            shown = variant if variant in expressions else name
            if shown in expressions:
                holder = bare.copy()
                for each, expression in expressions.items():
                    holder[each] = expression
                print(f"  {why([shown], expressions, holder, job, now_s)}")
        print()
    return 0


def _slots(config: Config, given: dict[str, str]) -> list[ClassAd]:
    if given["ads"]:
        try:
            with open(open_written(given["ads"]), encoding="utf-8", errors="surrogateescape") as file:
                return list(iter_long(file))
        except ClassAdSyntaxError as error:
            raise ValueError(f"{given['ads']}: {error}") from None
    from condor_actors.messages.advertise import AdKind

    name = given["machine"] or config.full_hostname
    ads = query(config, AdKind.SLOT, f"Machine == {quote(name)} || Name == {quote(name)}")
    if not ads:
        raise ToolError(f"condor_policy: the collector knows no machine {name}")
    return ads


def _record(path: str, given: dict[str, str]) -> int:
    from condor_actors.messages.owner import QueryOwner
    from condor_actors.tools.lib.machine_commands import STARTD, ask, local_startd
    from condor_actors.tools.pool.owner import span_s

    every = given["every"]
    lasts_s, every_s = span_s(given["for"]), span_s(f"{every}s" if every[-1:].isdecimal() else every)
    if not path or lasts_s is None or every_s is None:
        print(reminder_of("condor_policy"), file=sys.stderr)
        return 2
    end_s = time.time() + lasts_s
    _, _, client = local_startd(load())
    with client, naming(path), open(path, "a", encoding="utf-8") as file:
        while True:
            ad = ClassAd.from_bytes(ask(client, STARTD, QueryOwner()).ad)
            reading: dict[str, Any] = {"t": round(time.time(), 1)}
            reading |= {name: ad.evaluate(name) for name in READINGS if name in ad}
            file.write(json.dumps(reading) + "\n")
            file.flush()
            left_s = end_s - time.time()
            if left_s <= 0:
                return 0
            time.sleep(min(every_s, left_s))


if __name__ == "__main__":
    sys.exit(main())
