"""The client of Sluice's HTTP API, and the command line that uses it. Never imports the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.errors import ApiRefused, Failure, NotReachable, WrongUsage
    from sluice.library import Client, Record, Report, Reprocessing, Why, Work

__all__ = [
    "ApiRefused",
    "Client",
    "Failure",
    "NotReachable",
    "Record",
    "Report",
    "Reprocessing",
    "Why",
    "Work",
    "WrongUsage",
]

_ERRORS = ("ApiRefused", "Failure", "NotReachable", "WrongUsage")


def __getattr__(name: str) -> object:
    """A public name, imported at its first use: the command line imports this package, too, and starts sooner so."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module("sluice.errors" if name in _ERRORS else "sluice.library"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
