"""The client of Sluice's HTTP API, and the command line that uses it. Never imports the service."""

from __future__ import annotations

from sluice.client import Client
from sluice.errors import ApiRefused, Failure, NotReachable, WrongUsage

__all__ = ["ApiRefused", "Client", "Failure", "NotReachable", "WrongUsage"]
