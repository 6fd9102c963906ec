"""The role of each access key of the local cloud's Lambdas, passed from ministack to the emulator of EMR Serverless.

ministack gives each function its own keys, made for its role when its process starts. The emulator is another process,
and gets only the access key of a request. The file maps the key to the role."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def install(sts: Any, path: Path) -> None:
    """Make ministack write the ARN of each assumed role by its access key."""
    known: dict[str, str] = {}
    register: Callable[[str, dict[str, Any]], None] = sts.register_session

    def registered(access_key: str, session: dict[str, Any]) -> None:
        register(access_key, session)
        if known.get(access_key) != session["Arn"]:
            known[access_key] = session["Arn"]
            _write(path, known)

    sts.register_session = registered


class Callers:
    """The file, read again after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: int | None = None
        self._known: dict[str, str] = {}

    def arn(self, access_key: str) -> str | None:
        """The assumed role that signs with a key; None for a key that no Lambda has."""
        try:
            changed_at = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if changed_at != self._read_at:
            self._known, self._read_at = json.loads(self._path.read_text()), changed_at
        return self._known.get(access_key)


def _write(path: Path, known: dict[str, str]) -> None:
    """Write the file atomically, because the emulator may read it at any moment."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(known))
    part.replace(path)
