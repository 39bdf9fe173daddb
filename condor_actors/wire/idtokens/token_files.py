"""The tokens of a person: files in a folder that only he may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["own_tokens", "token_folder"]


def token_folder(config: Any) -> Path:
    """Where the caller's tokens are: SEC_TOKEN_DIRECTORY, or the machine's where root has none of his own."""
    own = Path(os.path.expanduser(str(config.path("SEC_TOKEN_DIRECTORY"))))
    if os.getuid() == 0 and not own.is_dir():
        return Path(str(config.path("SEC_TOKEN_SYSTEM_DIRECTORY")))
    return own


def own_tokens(config: Any, folder: Path | None = None) -> tuple[dict[str, str], list[str]]:
    """The caller's tokens, by ``file`` (``file, line N`` where there are more), and what is wrong with other files.

    Args:
        config: of the tool.
        folder: in place of the configured one.
    """
    from condor_actors.wire.idtokens.private_files import read_private

    found: dict[str, str] = {}
    problems: list[str] = []
    folder = folder or token_folder(config)
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError:
        return found, problems
    for name in names:
        path = folder / name
        try:
            lines = read_private(path, {os.getuid(), 0}).decode("ascii").splitlines()
        except UnicodeDecodeError:
            problems.append(f"{path}: it holds no token")
            continue
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
            continue
        tokens = [(number, line.strip()) for number, line in enumerate(lines, 1)
                  if line.strip() and not line.startswith("#")]
        for number, token in tokens:
            found[str(path) if len(tokens) == 1 else f"{path}, line {number}"] = token
    return found, problems
