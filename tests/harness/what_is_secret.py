"""What is secret in a pool now, as its files have it, and where secrets may be."""

from __future__ import annotations

import base64
import re
import sqlite3
from contextlib import closing
from pathlib import Path

__all__ = ["HOLD_SECRETS", "leaks", "secrets_below"]

HOLD_SECRETS = re.compile(r"(host|ca|image)\.key$|/tokens/|/tokens\.d/|/passwords\.d/|\.sqlite|queue\.db|claims|"
                          r"issued\.json|history")
"""Files that hold secrets because that is what they are for; another test looks at their modes."""
ENOUGH = 16
"""Letters of a secret that nothing has by chance."""


def secrets_below(folder: Path) -> dict[str, bytes]:
    """The secrets of claims, keys and signing keys in a machine's files, each with a name.

    Args:
        folder: of the machine.
    """
    found: dict[str, bytes] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if data[:16] == b"SQLite format 3\0":
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                if "claims" in tables:
                    for number, (secret,) in enumerate(database.execute("SELECT secret FROM claims")):
                        found[f"claim {number} of {path}"] = secret.encode()
        elif path.suffix == ".key":
            body = b"".join(data.splitlines()[1:-1])
            found[str(path)] = body[:40]
            found[f"{path} raw"] = base64.b64decode(body)[40:60]
        elif path.parent.name == "passwords.d" and len(data) >= ENOUGH:
            found[str(path)] = data
    return {name: secret for name, secret in found.items() if len(secret) >= ENOUGH}


def leaks(secrets: dict[str, bytes], places: dict[str, bytes]) -> set[tuple[str, str]]:
    """Which secret is where.

    Args:
        secrets: by name.
        places: the bytes of each place, by name.
    """
    return {(name, place) for name, secret in secrets.items() for place, data in places.items() if secret in data}
