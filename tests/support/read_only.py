"""Ports that refuse every effect: a step that only reads works with them, and any other fails.

    explain.why_job(read_only(world.ports), job)

What counts as a read is listed for each port. A new method of a port counts as an effect until it is listed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.ports import Ports

# The ports with effects -> their methods that only read. The other ports, and metrics, read or measure.
READS: dict[str, tuple[str, ...]] = {
    "ledger": (),
    "hints": (),
    "payloads": ("context_uri", "context", "log", "manifest", "deployment_uri", "deployment", "upload", "seen"),
    "targets": ("check",),
    "lake": ("text", "content", "stored", "metadata_location", "names"),
}


class Effect(BaseException):
    """A read has an effect. Not an Exception, so that no handler catches it."""


class ReadOnly:
    """A port of which only some methods may be called."""

    def __init__(self, name: str, inner: Any, reads: tuple[str, ...]) -> None:
        self._name, self._inner, self._reads = name, inner, reads

    def __getattr__(self, method: str) -> Any:
        if method in self._reads:
            return getattr(self._inner, method)

        def refused(*args: Any, **more: Any) -> Any:
            raise Effect(f"{self._name}.{method}{args}")

        return refused


def read_only(ports: Ports) -> Ports:
    """The ports, without their effects."""
    changed: dict[str, Any] = {name: ReadOnly(name, getattr(ports, name), reads) for name, reads in READS.items()}
    return replace(ports, **changed)
