"""The answers of the API of which no view has the fields: stored documents, with the fields of their models.

`table.ROUTES` names the answer of each operation: one of these models, or a view (`core/views.py`). They
describe and check nothing at run time: `tests/web` compares each answer of the tests with them. A newer release may add
fields, so an answer may have more than its model lists.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.grants import Grants
from chalicelib.core.access.roles import Access
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.data import Carried
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.documents import Described
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.states import Mode
from chalicelib.core.targets.registry import AnyTarget
from chalicelib.core.views import At
from chalicelib.flow.schedules.costs import EffectOfPutView
from chalicelib.flow.schedules.stops import StopView
from chalicelib.flow.views.freshness import FreshnessView, NewestView
from chalicelib.flow.views.queues import PartOfQueueView
from chalicelib.flow.views.views import IgnoredObjectView

Properties = dict[str, Any]


class Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class StoredFields(Answer):
    """What every stored document has besides its own fields."""

    name: str
    kind: str
    version: int
    updated_at: At
    updated_by: str


class StoredNamespace(Described, StoredFields):
    """A stored namespace."""


class StoredApp(Described, StoredFields):
    """A stored app. ``deployed`` is its last deployment; ``uri`` the document as it was deployed."""

    deployed: Properties | None = None


class StoredWorkflow(Workflow, StoredFields):
    """A stored workflow."""


class StoredDataset(Dataset, StoredFields):
    """A stored dataset. ``newest`` is the partition that came last. ``freshness`` is whether it is late, null without
    ``fresh``. ``ignored`` are the last objects in no partition; a list leaves them out."""

    newest: NewestView | None = None
    freshness: FreshnessView | None = None
    ignored: list[IgnoredObjectView] | None = None


class StoredCalendar(HolidayCalendar, StoredFields):
    """A stored holiday calendar."""


class StoredPolicy(Policy, StoredFields):
    """A stored policy. ``waiting``, ``next_start_at`` and ``parts`` are its present use; a list leaves them out."""

    waiting: int | None = None
    next_start_at: At | None = None
    parts: list[PartOfQueueView] | None = None


class StoredPool(Pool, StoredFields):
    """A stored pool. ``in_use``, ``waiting`` and ``parts`` are its present use; a list leaves them out."""

    in_use: int | None = None
    waiting: int | None = None
    parts: list[Properties] | None = None


class StoredAccess(Access, StoredFields):
    """The members of a namespace and their roles."""


class StoredGrants(Grants, StoredFields):
    """What a namespace grants to others."""


class StoredAllowed(Allowed, StoredFields):
    """The allow-list of a namespace."""


class EffectiveQuotas(Answer):
    """The quotas that hold for a namespace."""

    schedules: int | None
    fires_per_second: float | None
    documents: int | None
    requests_per_second: float | None
    waiting_jobs: int | None


class UsedQuotas(Answer):
    """What a namespace has."""

    schedules: int
    fires_per_second: float
    documents: int
    waiting_jobs: int


class StoredQuotas(Answer):
    """The quotas of a namespace, with those that hold and what is used. ``version`` is 0 if it has none of its own."""

    schedules: int | None = None
    fires_per_second: float | None = None
    documents: int | None = None
    requests_per_second: float | None = None
    waiting_jobs: int | None = None
    name: str
    kind: str
    version: int
    effective: EffectiveQuotas
    used: UsedQuotas


class StoredSchedule(Schedule, StoredFields):
    """A stored schedule, with its mode as ``state``. ``fires_per_day`` is that of its times. After a put, ``notes`` say
    what to check in the document, if there is anything, and ``effect`` what the put did to the work in flight."""

    state: Mode
    enabled: bool
    pause_reason: str | None
    stops: list[StopView]
    skips: list[At]
    triggered_by: str
    generation: int
    fires_per_day: float | None = None
    notes: list[str] | None = None
    effect: EffectOfPutView | None = None
    dag: str | None = None


class StoredDag(Dag, StoredFields):
    """A stored DAG, with the mode of its start as ``state``, and the occurrences of its times that are skipped. A list
    leaves out ``triggered_by`` and ``schedules``."""

    state: Mode | None = None
    enabled: bool | None = None
    stops: list[StopView] | None = None
    skips: list[At] | None = None
    triggered_by: str | None = None
    schedules: list[str] | None = None


class StoredMessage(Described, Carried, StoredFields):
    """A stored message and its next fire."""

    schedule: Any
    due_time: str | None
    repeats: int | None
    ttl: str | None
    zone: str
    next_fire: At | None
    target: AnyTarget | None = None
    workflow: str | None = None


class Deployment(Answer):
    """What a deployment did, or would do: the parts as ``kind name``. ``changes`` are the fields that differ.
    ``effects`` say what becomes of the work in flight of each schedule that is replaced or deleted. ``notes`` say what
    to check in the document, if there is anything."""

    name: str
    created: list[str]
    replaced: list[str]
    deleted: list[str]
    kept: list[str]
    untouched: list[str]
    changes: Properties | None = None
    effects: dict[str, EffectOfPutView]
    notes: list[str] | None = None


class ReportOfWorkflow(Answer):
    """The line of a workflow in the report of a day: see docs/history.md."""

    namespace: str
    workflow: str
