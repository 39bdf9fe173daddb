"""What a section works on: commands in, attributes out.

It looks commands up (macros expanded, an empty value counts as none), turns them into booleans, numbers and
expressions, and refuses what cannot be turned, naming the command and what was expected.
"""

from __future__ import annotations

import functools
import math

from condor_actors.classads import ClassAdSyntaxError, Expr, parse_expression
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.classads.language.expressions import Literal
from condor_actors.config.parameters import default_text
from condor_actors.messages.codes import Universe
from condor_actors.patterns import late
from condor_actors.submit.environment import Environment
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.macros import Scope
from condor_actors.submit.pending_attributes import PendingAttributes

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_ASSIGNS = late(r"(?<![=!<>?])=(?![=?!])")  # an = that is no part of a comparison
_TRUE = frozenset({"true", "yes", "t", "y", "1"})
_FALSE = frozenset({"false", "no", "f", "n", "0"})
UNIVERSE_IDS = {
    **{each.name.lower(): int(each) for each in Universe if each is not Universe.VM},
    "docker": int(Universe.VANILLA), "container": int(Universe.VANILLA),
}
"""By the word of the submit language; machines that are virtual have no word."""


@functools.lru_cache(maxsize=8192)
def parsed(text: str) -> Any:
    """A ClassAd expression given in the tools' dialect; a plain value when it is a literal.

    Raises:
        ClassAdSyntaxError: when it is none.
    """
    tree = parse_expression(old_to_new(text.strip()))
    return tree.value if isinstance(tree, Literal) else tree


def assigns(text: str) -> bool:
    """Whether a text has a single ``=``, which most likely was meant to compare."""
    return _ASSIGNS.search(text) is not None

MOST = (1 << 63) - 1
"""The largest integer of a ClassAd."""


class BuildContext:
    """What every section is given.

    Attributes:
        scope: macros; :attr:`pending`: the attributes; :attr:`world`: the environment.
        universe: its number; ``topping``: ``docker``, ``container`` or empty.
        iwd: the job's initial folder.
        warnings: sentences for standard error, each once.
        is_factory: whether the schedd makes the jobs as they are needed.
        spool, interactive: as the tool was called; ``trusts_files``: it is to look at no files.
    """

    def __init__(self, scope: Scope, world: Environment, warnings: list[str]) -> None:
        self.scope = scope
        self.world = world
        self.warnings = warnings
        self.pending = PendingAttributes()
        self.universe: int = Universe.VANILLA
        self.topping = ""
        self.iwd = world.cwd
        self.spool = False
        self.is_factory = False
        self.interactive = False
        self.trusts_files = False

    # -- commands

    def text(self, *names: str) -> str | None:
        """The first of these commands that is given and not empty, macros expanded."""
        for name in names:
            raw = self.scope.raw(name)
            if raw is not None:
                try:
                    expanded = self.scope.expand(raw).strip()
                except SubmitError as error:
                    error.command = error.command or name.lower()
                    raise
                if expanded:
                    return expanded
        return None

    def boolean(self, *names: str, default: bool = False) -> bool:
        """A command that is true or false.

        Raises:
            SubmitError: it is neither.
        """
        value = self.text(*names)
        return default if value is None else self.truth(names[0], value)

    def truth(self, name: str, value: str) -> bool:
        """Whether a value says true."""
        word = value.lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        result = self._evaluated(name, value, "True or False")
        if isinstance(result, (bool, int, float)):
            return bool(result)
        raise SubmitError(f"{name}={value} is invalid, must eval to a boolean.")

    def integer(self, *names: str) -> int | None:
        """A command that is an integer, or an expression that is one.

        Raises:
            SubmitError: it is not.
        """
        value = self.text(*names)
        return None if value is None else self.whole(names[0], value)

    def whole(self, name: str, value: str) -> int:
        """The integer a value says."""
        try:
            result: object = int(value)
        except ValueError:
            result = self._evaluated(name, value, "an integer")
        if isinstance(result, (int, float)) and not isinstance(result, bool) and math.isfinite(result):
            if not -MOST <= int(result) <= MOST:
                raise SubmitError(f"{name}={value} is invalid, expected an integer from {-MOST} to {MOST}.")
            return int(result)
        raise SubmitError(f"{name}={value} is invalid, must eval to an integer.")

    def _evaluated(self, name: str, value: str, expected: str) -> object:
        try:
            tree = parsed(value)
        except ClassAdSyntaxError:
            raise SubmitError(f"{name}={value} is invalid, expected {expected}.") from None
        return tree.evaluate() if isinstance(tree, Expr) else tree

    def setting(self, name: str) -> str | None:
        """A value of the configuration that is set and not empty."""
        return self.world.setting(name) or None

    def needed(self, name: str) -> str:
        """A configuration value that always stands for something: where it is not set, its default."""
        return self.setting(name) or default_text(name) or ""

    # -- attributes

    def get(self, name: str) -> Any:
        """An attribute as it stands now, None when nobody wrote it."""
        return self.pending.get(name)

    def set(self, name: str, value: Any) -> None:
        """Write an attribute: a plain value."""
        self.pending.set(name, value)

    def set_expression(self, name: str, text: str, command: str = "") -> None:
        """Write an attribute: an expression.

        Raises:
            SubmitError: with a caret under the place that is wrong.
        """
        try:
            self.pending.set(name, parsed(text))
        except ClassAdSyntaxError as error:
            hint = "compare with == (one = assigns)" if assigns(text) else ""
            raise SubmitError(f"Parse error in expression: \n\t{command or name} = {text}\n{error}",
                              command=command.lower(), remedy=hint) from None

    def warn(self, sentence: str) -> None:
        """Tell the user once, on standard error."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    # -- paths

    def absolute(self, path: str) -> str:
        """A path seen from the job's initial folder."""
        return path if path.startswith("/") else f"{self.iwd.rstrip('/')}/{path}"


def unquoted(text: str) -> str:
    """Without surrounding double quotes."""
    return text[1:-1].strip() if len(text) >= 2 and text[0] == text[-1] == '"' else text


def listed(text: str) -> list[str]:
    """Names separated by commas."""
    return [name for name in (part.strip() for part in text.split(",")) if name]
