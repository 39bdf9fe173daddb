"""As which accounts a schedd that has dropped root has jobs' shadow hosts run and jobs' files opened.

Theory: such a schedd orders of its helper, whose policy has the accounts of people (from MIN_USER_UID up) and that of
NOBODY_USER.  Root is nobody there: what root submits has nobody's rights, at home as well.
"""

from __future__ import annotations

import os

import attrs

from condor_actors import accounts
from condor_actors.config import Config
from condor_actors.machine.privilege.helper import RootHelper, process_helper

__all__ = ["JobAccounts", "User", "job_accounts", "nobody_of", "user_ids"]


@attrs.frozen
class User:
    """A user of this machine."""

    name: str
    uid: int
    gid: int


def user_ids(name: str) -> User | None:
    """The user of that name; None when this machine has none.

    Raises:
        NotYet: the user database has not said so far.
    """
    found = accounts.named(name)
    return User(name, found.uid, found.gid) if found is not None else None


@attrs.frozen
class JobAccounts:
    """What may be ordered, and of whom.

    Attributes:
        helper: takes the orders.
        nobody: the account of root's jobs; None: this machine has none.
        least_uid: the lowest uid of people.
    """

    helper: RootHelper
    nobody: User | None
    least_uid: int

    def find(self, name: str) -> User | None:
        """The account that has the rights of a user's jobs; None: there is none."""
        found = user_ids(name)
        return self.nobody if found is not None and found.uid == 0 else found

    def refusal(self, name: str, user: User) -> str:
        """Why jobs of a user cannot run here; empty: they can."""
        if user == self.nobody:
            return ""
        if user.uid == os.getuid():
            return f"{name} is the pool's own account; no job runs under it"
        if user.uid < self.least_uid:
            return (f"jobs of {name} (uid {user.uid}) are not run: accounts below MIN_USER_UID = {self.least_uid} are "
                    "the system's")
        return ""


def nobody_of(config: Config, pool_uid: int) -> User | None:
    """The account of NOBODY_USER, unless that is root's or the pool's."""
    user = user_ids(config.needed_text("NOBODY_USER"))
    return user if user is not None and user.uid not in (0, pool_uid) else None


def job_accounts(config: Config) -> JobAccounts | None:
    """For this process; None: it has no helper."""
    helper = process_helper()
    if helper is None:
        return None
    return JobAccounts(helper, nobody_of(config, os.getuid()), config.integer("MIN_USER_UID"))
