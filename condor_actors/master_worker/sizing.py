"""How many workers there should be: a pure function of what there is to do."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Limits:
    """What the program wants.

    Attributes:
        least, most: workers.
        idle_s: how long a worker may have nothing before it leaves.
    """

    least: int
    most: int
    idle_s: float


@attrs.frozen(kw_only=True)
class Change:
    """What to do.

    Attributes:
        submit: new workers.
        remove: jobs of workers that have not come yet.
        end: workers that are linked, by name.
    """

    submit: int = 0
    remove: int = 0
    end: tuple[str, ...] = ()


def change(limits: Limits, *, unfinished: int, absent: int, linked: dict[str, float | None], quiet_s: float) -> Change:
    """The step from the workers that there are to those that there should be.

    Args:
        unfinished: tasks; so many workers have something to do.
        absent: jobs whose worker has not come yet, or is away.
        linked: for each worker that is linked, for how long it has had nothing; None: it has something.
        quiet_s: for how long there were fewer tasks than workers.
    """
    wanted = min(limits.most, max(limits.least, unfinished))
    surplus = absent + len(linked) - wanted
    if surplus < 0:
        return Change(submit=-surplus)
    if surplus == 0 or quiet_s < limits.idle_s:
        return Change()
    remove = min(surplus, absent)
    idle = sorted(((since, name) for name, since in linked.items() if since is not None and since >= limits.idle_s),
                  reverse=True)
    return Change(remove=remove, end=tuple(name for _, name in idle[:surplus - remove]))
