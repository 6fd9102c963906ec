"""The arguments from which adapters of targets are built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from chalicelib.core.instants import Instant

# The longest duration of a delivery follows from these (`core/targets/sub_batches.py`). Further tries are made by the
# delivery policy.
DELIVERY: dict[str, Any] = {"read_timeout": 10, "retries": {"mode": "standard", "total_max_attempts": 2}}


class MakeClient(Protocol):
    def __call__(self, service: str, **options: Any) -> Any:
        """A client of an AWS service with these options of `botocore.config.Config`."""


class MakeClientAs(Protocol):
    def __call__(self, credentials: Any, service: str, **options: Any) -> Any:
        """The same, of a client that signs with these credentials of botocore."""


class Now(Protocol):
    def __call__(self) -> Instant: ...


@dataclass(frozen=True, slots=True)
class Clients:
    """``make`` makes a client; an adapter calls it once, when the adapter is built. ``now`` reads the clock.

    ``make_as`` is for clients that sign as an assumed role; None where none is assumed. ``stage`` is that of the stack.
    """

    make: MakeClient
    now: Now
    make_as: MakeClientAs | None = None
    stage: str = "dev"
