"""The statements that each template of ``use CATEGORY : NAME`` stands for."""

from __future__ import annotations

from typing import Final

__all__ = ["TEMPLATES"]

TEMPLATES: Final[dict[str, dict[str, str]]] = {"ROLE": {}, "FEATURE": {}, "POLICY": {}, "SECURITY": {}}
