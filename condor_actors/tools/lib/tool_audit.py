"""What an administrator does with the pool's files directly, through no daemon, has a line in an audit log too.

Theory: the line is written before the action, and without it the action is not done.  It says what is intended, and
whose login it was (sudo's, su's), never a secret.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from condor_actors import accounts
from condor_actors.config import ConfigError
from condor_actors.store.audit_file import AuditFile, audit_line
from condor_actors.wire.peers import user_name

if TYPE_CHECKING:
    from condor_actors.config import Config

__all__ = ["note_tool_action"]


def note_tool_action(config: Config, action: str, what: str) -> None:
    """Write the line.

    Args:
        action: in the words of ``messages/audited_actions.py``; what: on what, in plain words.

    Raises:
        OSError: it cannot be written.
    """
    own = config.text("TOOL_AUDIT_LOG")
    if own is not None and own.lower() == "none":
        return
    try:
        path = Path(own) if own else config.path("LOG") / "ToolAuditLog"
    except ConfigError as error:
        raise OSError(f"there is no place for an audit log ({error})") from None
    uid = os.getuid()
    if uid == 0:
        _prepare(config, path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    file = AuditFile(path, max_bytes=config.size("MAX_TOOL_AUDIT_LOG"), keep=config.integer("MAX_NUM_TOOL_AUDIT_LOG"))
    file.append(audit_line(time.time(), daemon="tool", act=action, object=what, result="told",
                           who=f"{user_name(uid)}@{config.needed_text('UID_DOMAIN')}", uid=uid, via="files",
                           login=_login_name(uid), **{"from": f"pid:{os.getpid()}"}, right="files").encode() + b"\n")
    if uid == 0:
        _give(config, path)


def _prepare(config: Config, folder: Path) -> None:
    """As root: the folder, over no link of the pool's account."""
    from condor_actors.machine.privilege.ownership import make_own
    from condor_actors.machine.privilege.pool_account import pool_account
    from condor_actors.own_files import open_guarded

    account = pool_account(config)
    if account is None:
        os.close(open_guarded(folder, make=True))
    else:
        make_own(folder, account)


def _give(config: Config, path: Path) -> None:
    from condor_actors.machine.privilege.ownership import give_files
    from condor_actors.machine.privilege.pool_account import pool_account

    account = pool_account(config)
    if account is not None:
        give_files((path,), account)


def _login_name(uid: int) -> str:
    """Who logged in, by the kernel's word, where that is another than the user; empty: nobody knows."""
    with contextlib.suppress(OSError, ValueError):
        number = int(Path("/proc/self/loginuid").read_text())
        if number not in (uid, 0xFFFFFFFF):
            found = accounts.numbered(number)
            return found.name if found is not None else ""
    return ""
