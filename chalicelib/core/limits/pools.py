"""Pools: slots, or vCPUs, that workflows share (W3). Only its owner acquires the units that a share reserves.

A pool is a limit of slots (`core/limits/permits.py`), of which a job acquires all units that it needs at once, or none.
Each share is a limit of its own. The units that no share reserves are the common part, another limit. Jobs without a
share acquire their units there; so do jobs whose share is used up, while no job waits there. So neither can starve the
other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Reference
from chalicelib.core.errors import invalid
from chalicelib.core.limits.names import pool_limit, share_limit
from chalicelib.core.limits.policies import Aging
from chalicelib.core.rows.limit import LimitState

MAX_UNITS = 1_000_000
MAX_SHARES = 20  # each is a limit whose queue is checked when the common part has free units


class Share(Document):
    """``reserved`` units of a pool, which one workflow or group alone may use."""

    reserved: int = Field(ge=1, le=MAX_UNITS)


class Pool(Aging):
    """``size`` slots or vCPUs. The keys of ``shares`` name a workflow (``app.name``) or a concurrency group
    (``name``)."""

    size: int = Field(ge=1, le=MAX_UNITS)
    unit: Literal["slots", "vcpu"] = "slots"
    shares: dict[Reference, Share] = Field(default_factory=dict, max_length=MAX_SHARES)

    @model_validator(mode="after")
    def _leaves_no_share_out(self) -> Pool:
        _ = self.aging_span
        if self.reserved > self.size:
            expected = f"shares of at most the pool's {self.size} units together"
            raise invalid("shares", expected, self.reserved, "reserve less, or make the pool larger")
        return self

    @property
    def reserved(self) -> int:
        return sum(share.reserved for share in self.shares.values())

    @property
    def common(self) -> int:
        """The units that no share reserves."""
        return self.size - self.reserved

    @property
    def word(self) -> str:
        return "slot" if self.unit == "slots" else "vCPU"


def owner_of(share: str, pool: str) -> str:
    """The name of a share in the name of its limit: the full name of a workflow, or the group as it is written."""
    parts, namespace = share.split("."), pool.partition(".")[0]
    return share if len(parts) in (1, 3) else f"{namespace}.{share}"


def limits_of(name: str, pool: Pool) -> dict[str, int]:
    """The limits of a pool and the units that each has: the common part first, then the shares."""
    shares = {share_limit(name, owner_of(key, name)): share.reserved for key, share in pool.shares.items()}
    return {pool_limit(name): pool.common, **shares}


def shrunk_by(
    name: str, old: Pool, new: Pool, before: Collection[str], states: Mapping[str, LimitState]
) -> tuple[str, ...]:
    """The limits of a pool that may have more units in use than they have now. A change makes them smaller, or one
    ``before`` has, and they still have too many units in use."""
    old_units, new_units = limits_of(name, old), limits_of(name, new)
    smaller = {limit_name for limit_name, units in old_units.items() if new_units.get(limit_name, 0) < units}
    still = {
        limit_name
        for limit_name in before
        if limit_name in states and states[limit_name].active > new_units.get(limit_name, 0)
    }
    return tuple(sorted(smaller | still))


def overdrawn(name: str, pool: Pool, states: Mapping[str, LimitState]) -> int:
    """How many units are in use beyond what these limits have. No other job acquires them until they are released."""
    units = limits_of(name, pool)
    return sum(max(0, state.active - units.get(limit_name, 0)) for limit_name, state in states.items())


def use_of(name: str, pool: Pool, states: Mapping[str, LimitState]) -> dict[str, Any]:
    """The units in use and the waiting jobs of a pool, for views: in total, and of each part."""
    parts = {limit_name: states.get(limit_name) or LimitState(limit_name) for limit_name in limits_of(name, pool)}
    return {
        "in_use": sum(state.active for state in parts.values()),
        "waiting": sum(state.waiters for state in parts.values()),
        "parts": [
            {
                "of": "everybody" if limit_name == pool_limit(name) else limit_name.rpartition(":")[2],
                "units": units,
                "in_use": parts[limit_name].active,
                "waiting": parts[limit_name].waiters,
            }
            for limit_name, units in limits_of(name, pool).items()
        ],
    }
