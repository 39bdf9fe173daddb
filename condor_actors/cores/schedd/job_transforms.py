"""Job transforms at work: the admin's rules are carried out on the ads of a new cluster.

Theory: nearly always a transform does the same to every job of a cluster, so it is carried out once, on the cluster's
ad, and what it looked at and wrote to is noted.  Only a job that has one of these attributes of its own is transformed
for itself; it then keeps what differs from the cluster.  Ten thousand jobs cost one transform.

**Source**: the manual, "Schedd Job Transforms" and "ClassAd Transforms".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from condor_actors.classads import UNDEFINED, ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression, unparse
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.config.conditions import Conditions
from condor_actors.config.errors import ConfigError
from condor_actors.config.lines import LogicalLine
from condor_actors.config.macros import HIDDEN_DOLLAR, Expansion, Functions, MacroSet, Source
from condor_actors.config.transforms import FORBIDDEN, Assignment, JobTransform, Step

__all__ = ["JobTransforms", "TransformFailed"]

_VALUED = frozenset({"INT", "REAL", "STRING", "EVAL"})
"""Functions that take the value of ``MY.attr``, not what stands in the ad."""
_MAX_DEPTH = 20


class TransformFailed(ValueError):
    """A transform that cannot be carried out on a job: says which, where and why."""


@attrs.frozen(kw_only=True)
class JobTransforms:
    """The transforms of a schedd.

    Attributes:
        transforms: in order.
        lookup: a macro of the configuration, not expanded.
        functions: the configuration's macro functions.
    """

    transforms: tuple[JobTransform, ...] = ()
    lookup: Callable[[str], str | None] = attrs.field(default=lambda name: None, eq=False)
    functions: Functions | None = attrs.field(default=None, eq=False)

    def apply(self, cluster: ClassAd, jobs: Iterable[ClassAd], now_s: float, meter: Meter | None = None
              ) -> tuple[str, ...]:
        """Transform a new cluster and the ads of its jobs, which are chained to it, all at once.

        Args:
            cluster: changed in place; so is each of ``jobs``.
            meter: what all of it may take; None: whatever it takes.

        Returns:
            the titles of the transforms that applied to any of them.

        Raises:
            TransformFailed: one cannot be carried out.
            TooCostly: they take more than they may.
        """
        applied: dict[str, None] = {}
        for _ in self.steps(cluster, jobs, now_s, applied, meter):
            pass
        return tuple(applied)

    def steps(self, cluster: ClassAd, jobs: Iterable[ClassAd], now_s: float, applied: dict[str, None],
              meter: Meter | None = None) -> Iterator[None]:
        """As :meth:`apply`, a piece at a time: first the cluster, then one job after the other.

        Args:
            applied: gets the titles of the transforms that apply.
        """
        if not self.transforms:
            return
        before = cluster.copy()
        common = _Transformation(self, cluster, now_s)
        applied.update(dict.fromkeys(common.run()))
        yield
        for job in jobs:
            if meter is not None:
                meter.refuse_when_spent()
            if common.has_met(job.own):
                own, whole = list(job.own), before.copy()
                for key in own:
                    whole.store(job.spelling(key), job.own[key])
                applied.update(dict.fromkeys(_Transformation(self, whole, now_s).run()))
                _keep_difference(job, cluster, whole)
            yield


def _keep_difference(job: ClassAd, cluster: ClassAd, whole: ClassAd) -> None:
    """The job's own attributes become those by which ``whole`` differs from the cluster."""
    for key in list(job.own):
        if whole.find(key) is None:
            del job[key]
    for name in whole:
        key = name.lower()
        if key in FORBIDDEN:
            continue
        if _same(whole.find(key), cluster.find(key)):
            job.own.pop(key, None)
        else:
            job.store(name, whole.find(key))
    for name in cluster:
        if whole.find(name.lower()) is None:
            job.store(name, UNDEFINED)


def _same(one: object, other: object) -> bool:
    """Whether two stored values are written alike; 1, 1.0 and true are not."""
    if one is other:
        return True
    return type(one) is type(other) and (str(one) == str(other) if isinstance(one, Expr) else one == other)


class _Transformation:
    """All transforms on one ad.

    Attributes:
        ad: the ad, changed in place.
        met: attributes, lower case, whose value mattered or was set; ``patterns``: those that were asked for so.
    """

    def __init__(self, rules: JobTransforms, ad: ClassAd, now_s: float) -> None:
        self.ad = ad
        self.met: set[str] = set()
        self.patterns: list[re.Pattern[str]] = []
        self._rules = rules
        self._now_s = now_s

    def has_met(self, keys: Iterable[str]) -> bool:
        """Whether any of these attributes could have changed what was done."""
        return any(key in self.met or any(each.search(key) for each in self.patterns) for key in keys)

    def run(self) -> list[str]:
        """Carry all of them out; the titles of those that applied."""
        applied = []
        for transform in self._rules.transforms:
            macros = MacroSet("TRANSFORM", defaults=self._raw, functions=self._function)
            try:
                if transform.requirements and not is_true(self._value(macros.expand(transform.requirements))):
                    continue
                self._carry_out(transform, macros)
            except ConfigError as error:
                raise TransformFailed(f"JOB_TRANSFORM_{transform.name}: {error.problem}") from None
            applied.append(transform.title)
        return applied

    def _carry_out(self, transform: JobTransform, macros: MacroSet) -> None:
        conditions = Conditions(macros)
        for statement in transform.statements:
            if isinstance(statement, LogicalLine):
                conditions.take(statement)
            elif not conditions.open:
                continue
            elif isinstance(statement, Assignment):
                macros.define(statement.name, statement.value, Source(transform.name))
            else:
                try:
                    self._step(statement, macros)
                except ConfigError as error:
                    raise ConfigError(f"{error.problem} (in: {statement.line})") from None

    # ---- statements

    def _step(self, step: Step, macros: MacroSet) -> None:
        text = macros.expand(step.text).strip()
        if step.pattern is not None:
            self._by_pattern(step, step.pattern, text)
            return
        self.met.add(step.target.lower())
        if step.keyword == "EVALMACRO":
            value = self._value(text)
            shown = value if isinstance(value, str) else unparse(value, style="tools")
            macros.define(step.target, shown.replace("$", "$(DOLLAR)"), Source("EVALMACRO"))
        elif step.keyword == "EVALSET":
            self.ad[step.target] = self._value(text)
        elif step.keyword in ("COPY", "RENAME"):
            self._copy(step.target, text, remove=step.keyword == "RENAME")
        elif step.keyword == "DELETE":
            self.ad.pop(step.target, None)
        elif step.keyword == "SET" or self.ad.evaluate(step.target, now_s=self._now_s) is UNDEFINED:
            self.ad[step.target] = _parsed(text)

    def _by_pattern(self, step: Step, pattern: re.Pattern[str], text: str) -> None:
        self.patterns.append(pattern)
        for name, found in [(name, found) for name in self.ad if (found := pattern.search(name)) is not None]:
            if step.keyword != "COPY" and name.lower() in FORBIDDEN:
                continue
            if step.keyword == "DELETE":
                del self.ad[name]
                continue
            groups = [found[0], *(group or "" for group in found.groups())]
            self._copy(name, _filled(text, groups), remove=step.keyword == "RENAME")

    def _copy(self, name: str, new: str, *, remove: bool) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", new):
            raise ConfigError(f"{new!r} is no name of an attribute")
        if new.lower() in FORBIDDEN:
            raise ConfigError(f"a transform cannot change {new}")
        self.met.update((name.lower(), new.lower()))
        value = self.ad.find(name.lower())
        if value is not None:
            if remove:
                del self.ad[name]
            self.ad.store(new, value)

    # ---- values

    def _value(self, text: str) -> object:
        """The value of an expression about the ad."""
        expression = _parsed(text)
        self._meet(expression)
        return expression.evaluate(self.ad, None, self._now_s)

    def _meet(self, expression: Expr, depth: int = 0) -> None:
        """Note the attributes that a value depends on, by way of others too."""
        internal, external = expression.references()
        for name in (internal | external) - self.met if depth < _MAX_DEPTH else ():
            self.met.add(name)
            value = self.ad.find(name.lower())
            if isinstance(value, Expr):
                self._meet(value, depth + 1)

    def _raw(self, name: str) -> str | None:
        """What ``$(name)`` stands for where the transform has no such macro: an attribute, else the configuration's."""
        if name[:3].upper() != "MY.":
            return self._rules.lookup(name)
        self.met.add(name[3:].lower())
        value = self.ad.find(name[3:].lower())
        if value is None:
            return None
        return (value if isinstance(value, str) else unparse(value, style="tools")).replace("$", HIDDEN_DOLLAR)

    def _function(self, function: str, arguments: str, expansion: Expansion, depth: int) -> str | None:
        """The configuration's functions; some of them take the values of attributes."""
        if self._rules.functions is None:
            return None
        if function in _VALUED:
            plain = expansion.lookup
            expansion = Expansion(lambda name: self._evaluated(name, plain), self._function)
        return self._rules.functions(function, arguments, expansion, depth)

    def _evaluated(self, name: str, lookup: Callable[[str], str | None]) -> str | None:
        raw = lookup(name)
        if name[:3].upper() != "MY." or raw is None:
            return raw
        return unparse(self._value(name), style="tools").replace("$", HIDDEN_DOLLAR)


def _filled(text: str, groups: Sequence[str]) -> str:
    """A new name: ``\\0`` to ``\\9`` are replaced by what was matched."""
    return re.sub(r"\\(\d)", lambda digit: groups[int(digit[1])] if int(digit[1]) < len(groups) else digit[0], text)


def _parsed(text: str) -> Expr:
    try:
        return parse_expression(old_to_new(text))
    except ClassAdSyntaxError as error:
        raise ConfigError(f"{text!r} is no expression: {error.reason}") from None
