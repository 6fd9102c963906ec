"""The leaf ``program_status``: runs of a workflow that reach a status (T10)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from chalicelib.core.documents import ONCE_EACH, Reference, StoredReference
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.leaf import Count, GatheringLeaf, Given, GivenType, Upstream, since
from chalicelib.core.triggers.patterns import Flattened

Status = Literal["STARTED", "COMPLETED", "FAILED", "KILLED"]


def status_key(workflow: str, status: str) -> str:
    return f"status:{workflow}:{status}"


class GivenStatus(Given):
    type: Literal["program_status"]
    workflow: Reference
    status: Status = "COMPLETED"
    schedule: Reference | None = None
    version: int | None = Field(default=None, ge=1)
    partition: dict[str, str] = Field(default_factory=dict)

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        key = status_key(names.in_app(self.workflow), self.status)
        starter = names.in_app(self.schedule) if self.schedule is not None else None
        payload = {"workflow_version": self.version} if self.version is not None else None
        return Event(event_id, "program_status", key, at, at, self.partition, schedule=starter, payload=payload)

    def describe(self) -> str:
        return f"{self.workflow} reached {self.status}"


class ProgramStatusTrigger(GatheringLeaf):
    """Runs of a workflow, of any app and namespace, reached one of ``statuses``, ``count`` times (T10).

    With ``schedule``, only runs that this schedule started count; with ``version``, only runs that were claimed with
    that version of the workflow's definition."""

    type: Literal["program_status"]
    workflow: StoredReference
    schedule: StoredReference | None = None
    version: int | None = Field(default=None, ge=1)
    statuses: Annotated[tuple[Status, ...], Field(min_length=1), ONCE_EACH] = ("COMPLETED",)
    count: Count = 1

    given: ClassVar[GivenType | None] = GivenStatus

    def event_keys(self) -> tuple[str, ...]:
        return tuple(status_key(self.workflow, status) for status in self.statuses)

    def accepts(self, payload: Flattened, started_by: str | None = None) -> bool:
        version = payload.root.get("workflow_version")
        return self.schedule in (None, started_by) and self.version in (None, version)

    def describe(self) -> str:
        return self._rule("reaching", self.needed)

    def missing(self, progress: Progress | None) -> str:
        return self._rule("to reach", self.lacking(progress))

    def arrived(self, progress: Progress) -> str:
        return f"{self.workflow} reached {self._either()}{_times(progress.count)} {since(progress)}"

    @property
    def nothing(self) -> str:
        return "no upstream run has reached its status"

    def noun(self) -> str:
        return f"{self._either()} of {self.workflow}"

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        partition = dict(event.partition) if event.partition else None
        return {"workflow": event.workflow, "run_id": event.run_id, "status": event.status, "partition": partition}

    def resolve(self, names: Names) -> Self:
        schedule = names.in_app(self.schedule) if self.schedule is not None else None
        return self.model_copy(update={"workflow": names.in_app(self.workflow), "schedule": schedule})

    def upstreams(self) -> tuple[Upstream, ...]:
        return (Upstream(self.workflow, self.schedule, self.statuses),)

    def _rule(self, verb: str, count: int) -> str:
        version = f" (version {self.version})" if self.version is not None else ""
        return f"{self.workflow}{version} {verb} {self._either()}{_times(count)}"

    def _either(self) -> str:
        return " or ".join(self.statuses)


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
