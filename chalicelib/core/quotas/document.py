"""The quotas of a namespace: how many schedules, fires, documents, waiting jobs and requests it may have.

Example:

    schedules: 5000
    fires_per_second: 50
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from chalicelib.core.documents import Document
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, SECOND

SECONDS_A_DAY = DAY // SECOND
MAX_WAITING = 50_000  # jobs that a process counts in about a second


class Quotas(Document):
    """The quotas of a namespace. A quota that is left out is that of the installation. ``fires_per_second`` is the
    average over a day of all time triggers, with the events of a spread, whether their schedules are enabled or not.
    ``documents`` counts workflows, schedules (also those of DAGs), DAGs, datasets, policies, pools and calendars; not
    messages, whose number follows from data. ``waiting_jobs`` holds for requests that make jobs: a run now, a rerun, a
    redrive, a backfill, a re-processing. Events and fires make jobs all the same."""

    schedules: int | None = Field(default=None, ge=0, le=10_000_000)
    fires_per_second: float | None = Field(default=None, ge=0, le=1_000_000)
    documents: int | None = Field(default=None, ge=0, le=10_000_000)
    requests_per_second: float | None = Field(default=None, gt=0, le=100_000)
    waiting_jobs: int | None = Field(default=None, ge=0, le=MAX_WAITING)

    def over(self, defaults: Quotas) -> Quotas:
        """These quotas, and those of the installation where there are none."""
        own = {name: value for name, value in self.model_dump().items() if value is not None}
        return Quotas.model_validate({**defaults.model_dump(), **own})


@dataclass(frozen=True, slots=True)
class Usage:
    """What a namespace has. ``fires`` are the fires a day of schedules that fire at least `COUNTED` times a day."""

    schedules: int = 0
    documents: int = 0
    fires: Mapping[str, int] = field(default_factory=dict)

    @property
    def fires_per_second(self) -> float:
        return sum(self.fires.values()) / SECONDS_A_DAY

    def plus(self, documents: int, schedules: Mapping[str, int], new_schedules: int) -> Usage:
        """The usage after a change: new documents, and schedules with their fires a day."""
        return Usage(self.schedules + new_schedules, self.documents + documents, {**self.fires, **schedules})


def check(namespace: str, quotas: Quotas, before: Usage, after: Usage) -> None:
    """Raise ``over_quota`` for a change that raises a figure above its quota. A namespace that is above a quota already
    may still change what does not raise the figure."""
    figures = (
        ("schedules", before.schedules, after.schedules, quotas.schedules),
        ("fires a second", before.fires_per_second, after.fires_per_second, quotas.fires_per_second),
        ("documents", before.documents, after.documents, quotas.documents),
    )
    for what, old, new, quota in figures:
        if quota is not None and new > quota and new > old:
            got = f"{new:.1f}".rstrip("0").rstrip(".") if isinstance(new, float) else str(new)
            raise exceeded(namespace, f"expected at most {quota:g} {what} in namespace {namespace}, got {got}")


def check_waiting(namespace: str, quota: int, waiting: int) -> None:
    """Raise ``over_quota`` for a request that makes a job, if its namespace has as many as the quota allows."""
    if waiting >= quota:
        message = f"expected at most {quota} waiting jobs in namespace {namespace}, got {waiting} before this request"
        raise exceeded(namespace, message)


def exceeded(namespace: str, message: str) -> SluiceError:
    """The error for a request above a quota, with where to raise it."""
    hint = f"an administrator of the installation can raise it: sluice quotas {namespace} --file quotas.yaml"
    return SluiceError("over_quota", message, None, hint)
