"""Programs of the site as the configuration has them: STARTD_CRON_…, SCHEDD_CRON_… and BENCHMARKS_….

A wrong value is a ConfigError that names file, line and name, before anything is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from condor_actors.config import Config
from condor_actors.config.typed import constant_value
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw
from condor_actors.cores.site_programs.programs import Mode, Publish, SiteProgram, SiteSettings
from condor_actors.numerals import numeral

__all__ = ["period_s", "site_settings", "words_of"]

INTERFACE_VERSION = "1"
BENCHMARKS = "BENCHMARKS"
OWN_BENCHMARKS = ("mips", "kflops")
"""Those of BENCHMARKS_JOBLIST that are the pool's own."""
MOST_LOAD = {"STARTD_CRON": "STARTD_CRON_MAX_JOB_LOAD", "SCHEDD_CRON": "SCHEDD_CRON_MAX_JOB_LOAD"}
CONFIG_VAL = {"STARTD_CRON": "STARTD_CRON_CONFIG_VAL", "SCHEDD_CRON": "SCHEDD_CRON_CONFIG_VAL",
              BENCHMARKS: "BENCHMARKS_CONFIG_VAL"}
PATH = "/usr/local/bin:/usr/bin:/bin"
LONGEST_S = 10**9
_PERIOD = re.compile(r"(\d{1,9})\s*([smhSMH]?)")
_UNITS = {"": 1, "S": 1, "M": 60, "H": 3600}
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


def site_settings(config: Config, family: str, environ: Mapping[str, str]) -> SiteSettings:
    """All programs of a daemon.

    Args:
        config: of the daemon.
        family: ``STARTD_CRON`` or ``SCHEDD_CRON``.
        environ: of the daemon, for CONDOR_CONFIG.

    Raises:
        ConfigError: a value cannot be used.
    """
    names = _names(config, f"{family}_JOBLIST")
    publish, measuring, most_benchmark_load = Publish.NEVER, dict[str, str](), 1.0
    if family == "STARTD_CRON":
        publish = Publish(config.value("STARTD_CRON_AUTOPUBLISH"))
        most_benchmark_load = config.real("BENCHMARKS_MAX_JOB_LOAD")
        measuring = {key: name for key, name in _names(config, "BENCHMARKS_JOBLIST").items()
                     if name.lower() not in OWN_BENCHMARKS}
        twice = sorted(names.keys() & measuring.keys())
        if twice:
            raise config.unusable("BENCHMARKS_JOBLIST", f"{measuring[twice[0]]} is one of STARTD_CRON_JOBLIST too",
                                  "another name")
    logs = f"{family}_LOG_NON_ZERO_EXIT"
    return SiteSettings(
        programs=(*(_program(config, family, name, environ) for name in names.values()),
                  *(_program(config, BENCHMARKS, name, environ) for name in measuring.values())),
        most_load=config.real(MOST_LOAD[family]), most_benchmark_load=most_benchmark_load, publish=publish,
        logs_failures=config.boolean(logs))


def _names(config: Config, listed: str) -> dict[str, str]:
    """The names of a list, by what is alike of them."""
    names: dict[str, str] = {}
    for name in config.list_of(listed):
        if _NAME.fullmatch(name) is None:
            raise config.unusable(listed, f"{name!r} is no name of a program", "names of letters, digits and _")
        names.setdefault(name.upper(), name)
    return names


def _program(config: Config, family: str, name: str, environ: Mapping[str, str]) -> SiteProgram:
    base = f"{family}_{name.upper()}_"
    executable = config.text(f"{base}EXECUTABLE")
    if executable is None:
        raise config.unusable(f"{family}_JOBLIST", f"{name} has no program ({base}EXECUTABLE)",
                              "an absolute path there")
    if not executable.startswith("/"):
        raise config.unusable(f"{base}EXECUTABLE", f"{executable} is no absolute path", "an absolute path")
    directory = config.text(f"{base}CWD") or "/"
    if not directory.startswith("/"):
        raise config.unusable(f"{base}CWD", f"{directory} is no absolute path", "an absolute path")
    prefix = config.text(f"{base}PREFIX") or ""
    if re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]{0,63})?", prefix) is None:
        raise config.unusable(f"{base}PREFIX", f"{prefix} cannot begin the name of an attribute",
                              "letters, digits and _")
    mode, benchmark = _mode(config, family, f"{base}MODE"), family == BENCHMARKS
    startd = family != "SCHEDD_CRON"
    timed = mode in (Mode.PERIODIC, Mode.WAIT_FOR_EXIT)
    return SiteProgram(
        name=name, executable=executable, arguments=words_of(config, f"{base}ARGS"),
        environment=tuple(sorted(_environment(config, family, base, environ).items())), directory=directory, mode=mode,
        period_s=0.0 if benchmark else period_s(config, f"{base}PERIOD", needed=timed), prefix=prefix,
        slots=_slots(config, f"{base}SLOTS") if startd else frozenset(),
        kill=not benchmark and config.boolean(f"{base}KILL"), load=config.real(f"{base}JOB_LOAD"), benchmark=benchmark,
        hang_up=not benchmark and config.boolean(f"{base}RECONFIG"),
        run_again=not benchmark and config.boolean(f"{base}RECONFIG_RERUN"),
        condition=config.expression(f"{base}CONDITION") if startd and config.text(f"{base}CONDITION") else None)


def _mode(config: Config, family: str, name: str) -> Mode:
    usual = Mode.ON_DEMAND if family == BENCHMARKS else Mode.PERIODIC
    text = config.text(name) or usual.value
    found = next((mode for mode in Mode if mode.value.upper() == text.upper()), None)
    if found is None:
        raise config.unusable(name, f"{text} is no mode", "Periodic, WaitForExit, OneShot or OnDemand")
    if family == "SCHEDD_CRON" and found is Mode.ON_DEMAND:
        raise config.unusable(name, "a program on demand runs when a machine measures its speed, which a schedd "
                              "does not", "Periodic, WaitForExit or OneShot")
    if family == BENCHMARKS and found is not Mode.ON_DEMAND:
        raise config.unusable(name, f"a benchmark runs when RUNBENCHMARKS says so, not in the mode {text}",
                              "OnDemand, or the program in STARTD_CRON_JOBLIST")
    return found


def period_s(config: Config, name: str, *, needed: bool) -> float:
    """A period: whole seconds, or minutes or hours with ``m`` or ``h`` behind.

    Raises:
        ConfigError: it is none, or is missing although it is needed.
    """
    text = config.text(name)
    if text is None and not needed:
        return 0.0
    match = _PERIOD.fullmatch(text or "")
    found = int(match[1]) * _UNITS[match[2].upper()] if match is not None else constant_value(text or "")
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 1 <= found <= LONGEST_S:
        raise config.unusable(name, f"{text} is no period" if text else "it is not set",
                              "a number of seconds, at least 1, such as 30, 30s, 5m or 1h")
    return float(found)


def words_of(config: Config, name: str) -> tuple[str, ...]:
    """The words of arguments: with blanks between, or as in a submit description within double quotes.

    Raises:
        ConfigError: a quote has no partner.
    """
    text = config.text(name) or ""
    return tuple(_quoted(config, name, text)) if text.startswith('"') else tuple(text.split())


def _quoted(config: Config, name: str, text: str) -> list[str]:
    try:
        if len(text) < 2 or not text.endswith('"'):
            raise UnbalancedQuote("a double quote has no partner")
        return split_raw(text[1:-1].replace('""', '"'))
    except UnbalancedQuote as error:
        raise config.unusable(name, str(error), "words, or \"words 'with blanks'\"") from None


def _environment(config: Config, family: str, base: str, environ: Mapping[str, str]) -> dict[str, str]:
    """All of it: what every program has, and what the configuration adds."""
    found = {"PATH": PATH, "HOME": "/", "LANG": "C.UTF-8", f"{family}_INTERFACE_VERSION": INTERFACE_VERSION,
             f"{family}_NAME": family}
    if "CONDOR_CONFIG" in environ:
        found["CONDOR_CONFIG"] = environ["CONDOR_CONFIG"]
    config_val = config.text(CONFIG_VAL[family])
    if config_val is not None:
        found[f"{family}_CONFIG_VAL"] = config_val
    name = f"{base}ENV"
    text = config.text(name) or ""
    items = _quoted(config, name, text) if text.startswith('"') else [item.strip() for item in text.split(";")]
    for item in items:
        variable, equals, value = item.partition("=")
        if not item:
            continue
        if not equals or not variable.strip():
            raise config.unusable(name, f"{item!r} is no variable", "A=1;B=2, or \"A=1 B=2\"")
        found[variable.strip()] = value
    return found


def _slots(config: Config, name: str) -> frozenset[int]:
    found = set()
    for word in config.list_of(name):
        number = numeral(word)
        if number is None or number < 1:
            raise config.unusable(name, f"{word} is no number of a slot", "numbers of slots, such as 1, 2")
        found.add(number)
    return frozenset(found)
