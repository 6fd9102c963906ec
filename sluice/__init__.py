"""The client of Sluice's HTTP API, and the command line that uses it. Never imports the service."""

from __future__ import annotations

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
