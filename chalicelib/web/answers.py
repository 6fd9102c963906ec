"""The answers of the API as models, from which the OpenAPI document gets their schemas.

`ANSWERS` names the answer of each operation. The models describe and check nothing at run time: `tests/web` compares
each answer of the tests with them. A newer release may add fields, so a model accepts more than it lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.document import Access
from chalicelib.core.access.grants import Grants
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.data import Carried
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.documents import Described
from chalicelib.core.jobs.holds import HoldKind
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.rows.audit import AuditOutcome
from chalicelib.core.rows.backfill import BackfillOrder, BackfillState
from chalicelib.core.rows.reprocess import ReprocessState, StepState
from chalicelib.core.rows.run import RecordKind
from chalicelib.core.states import FailureKind, JobKind, JobState, Mode, RunState
from chalicelib.core.targets.registry import AnyTarget

At = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Code = Annotated[str, Field(description="the code of the reason: see docs/reference.md")]
Keys = dict[str, str]  # a partition
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

    model_config = ConfigDict(extra="allow")


class StoredApp(Described, StoredFields):
    """A stored app. ``deployed`` is its last deployment; ``uri`` the document as it was deployed."""

    model_config = ConfigDict(extra="allow")
    deployed: Properties | None = None


class StoredWorkflow(Workflow, StoredFields):
    """A stored workflow."""

    model_config = ConfigDict(extra="allow")


class IgnoredObject(Answer):
    """An object in the prefix of a dataset that belongs to no partition, and why."""

    key: str
    at: At
    why: str


class StoredDataset(Dataset, StoredFields):
    """A stored dataset. ``ignored`` are the last objects in no partition; a list leaves them out."""

    model_config = ConfigDict(extra="allow")
    ignored: list[IgnoredObject] | None = None


class Waiter(Answer):
    """A job or run in a queue. ``attempt`` is that of a run that waits to be started again."""

    position: int
    job_id: str
    schedule: str
    attempt: int | None


class PartOfQueue(Answer):
    """What waits at one part of a limit, and the head of that queue."""

    of: str
    waiting: int
    queue: list[Waiter]


class StoredCalendar(HolidayCalendar, StoredFields):
    """A stored holiday calendar."""


class StoredPolicy(Policy, StoredFields):
    """A stored policy. ``waiting``, ``next_start_at`` and ``parts`` are its present use; a list leaves them out."""

    model_config = ConfigDict(extra="allow")
    waiting: int | None = None
    next_start_at: At | None = None
    parts: list[PartOfQueue] | None = None


class StoredPool(Pool, StoredFields):
    """A stored pool. ``in_use``, ``waiting`` and ``parts`` are its present use; a list leaves them out."""

    model_config = ConfigDict(extra="allow")
    in_use: int | None = None
    waiting: int | None = None
    parts: list[Properties] | None = None


class StoredAccess(Access, StoredFields):
    """The members of a namespace and their roles."""

    model_config = ConfigDict(extra="allow")


class StoredGrants(Grants, StoredFields):
    """What a namespace grants to others."""

    model_config = ConfigDict(extra="allow")


class StoredAllowed(Allowed, StoredFields):
    """The allow-list of a namespace."""

    model_config = ConfigDict(extra="allow")


class RefusedUse(Answer):
    """A use of a document, such as ``workflow demo.flights.clean``, that would be refused, and why."""

    document: str
    field: str
    why: str


class ProposedAllowed(Answer):
    """An allow-list for a namespace. ``refused`` is what the namespace uses and may not use without a list, once the
    installation has several namespaces. ``allowed`` is its present list with one for each kind of these, and
    ``left_out`` what no pattern can name. Unless it is ``complete``, not all documents were read."""

    name: str
    refused: list[RefusedUse]
    allowed: Allowed
    left_out: list[RefusedUse]
    complete: bool


class AuditRecord(Answer):
    """A change, or a refusal. ``by`` is the ARN of the signer. A document above 4,000 bytes is given by its digest."""

    at: At
    namespace: str
    operation: str
    outcome: AuditOutcome
    kind: str
    name: str
    by: str | None
    account: str | None
    session: str | None
    unique_id: str | None
    source: str | None
    request_id: str | None
    before: Properties | None
    after: Properties | None
    reason: str | None
    count: int


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


class OwnedPrefix(Answer):
    """A prefix of a bucket, the namespace to which it belongs, and the dataset there, if there is one. ``given``: an
    administrator gave it to the namespace."""

    bucket: str
    prefix: str
    namespace: str
    dataset: str | None
    given: bool


class StoredSchedule(Schedule, StoredFields):
    """A stored schedule, with its mode as ``state``. ``fires_per_day`` is that of its times. After a put, ``notes`` say
    what to check in the document, if there is anything."""

    model_config = ConfigDict(extra="allow")
    state: Mode
    enabled: bool
    pause_reason: str | None
    skips: list[At]
    triggered_by: str
    generation: int
    fires_per_day: float | None = None
    notes: list[str] | None = None
    dag: str | None = None


class StoredDag(Dag, StoredFields):
    """A stored DAG, with the mode of its start as ``state``; a list leaves out what is present state."""

    model_config = ConfigDict(extra="allow")
    state: Mode | None = None
    enabled: bool | None = None
    triggered_by: str | None = None
    schedules: list[str] | None = None


class StoredMessage(Described, Carried, StoredFields):
    """A stored message and its next fire."""

    model_config = ConfigDict(extra="allow")
    schedule: Any
    due_time: str | None
    repeats: int | None
    ttl: str | None
    zone: str
    next_fire: At | None
    target: AnyTarget | None = None
    workflow: str | None = None


class Change(Answer):
    """What a PUT did: ``created``, ``updated`` or ``unchanged``."""

    name: str
    kind: str
    did: str
    version: int


class ChangeOfAccess(Change):
    """The same for an access document. ``warning``: API Gateway refuses the requests of some members."""

    warning: str | None = None


class EffectOfPut(Answer):
    """What a put does to the trigger and the waiting jobs of a schedule. ``text`` says the same in words."""

    code: Literal["begins", "described", "carried", "goes_on", "begins_again", "ended", "idle", "stops"]
    text: str


class Deployment(Answer):
    """What a deployment did, or would do: the parts as ``kind name``. ``changes`` are the fields that differ.
    ``effects`` say of each replaced schedule whether its trigger goes on, and of others that they have ended. ``notes``
    say what to check in the document, if there is anything."""

    name: str
    created: list[str]
    replaced: list[str]
    deleted: list[str]
    kept: list[str]
    untouched: list[str]
    changes: Properties | None = None
    effects: dict[str, EffectOfPut]
    notes: list[str] | None = None


class ErrorOfDeployment(Answer):
    """The error for which a deployment has failed, as a request would get it."""

    code: str
    message: str
    field: str | None
    hint: str | None


class LaterDeployment(Answer):
    """A deployment of an uploaded document. ``counts`` are the numbers of parts by what it does to them.
    ``superseded_by`` says who has taken over, ``left_alone`` names the first parts that were changed meanwhile."""

    name: str
    deployment: str
    state: Literal["RUNNING", "DONE", "FAILED", "SUPERSEDED"]
    counts: dict[str, int]
    error: ErrorOfDeployment | None
    superseded_by: str | None
    left_alone: list[str]
    created_at: At
    created_by: str
    ended_at: At | None


class BegunUpload(Answer):
    """An upload: its ``url`` takes the document by a PUT until ``expires_at``."""

    upload: str
    url: str
    max_bytes: int
    expires_at: At


class ErrorOfChange(Answer):
    """An error as a request for one schedule alone would get it."""

    code: str
    message: str
    field: str | None
    hint: str | None


class FailedChange(Answer):
    """A schedule that did not change; ``error`` is the error that a request for it alone would get."""

    name: str
    error: ErrorOfChange


class BulkChange(Answer):
    """What was done with each schedule; of a dry run, what would be done."""

    changed: list[str]
    unchanged: list[str]
    failed: list[FailedChange]
    dry_run: bool


class PartOfDag(Answer):
    """The DAG run that a run or job is a part of."""

    name: str
    run_id: str
    round: int
    node: str | None


class GivenApproval(Answer):
    by: str
    at: At
    role: str | None = Field(default=None, alias="for")


class PlaceInQueue(Answer):
    """The queue in which a job waits. ``position`` is null behind a thousand others. ``more_urgent`` of those before it
    have a higher priority. It has waited ``since`` an instant."""

    of: str
    position: int | None
    waiting: int
    more_urgent: int
    since: At


class Hold(Answer):
    """What a job waits for, in few kinds. ``name`` is that of a limit, a constraint, a schedule or a namespace, ``of``
    says the same in words, and ``changes_at`` is when time alone may end the wait."""

    kind: HoldKind
    name: str
    of: str
    changes_at: At | None


class Job(Answer):
    """A job that waits. ``queued_in`` is the limit in whose queue it stands, ``holds`` are its permits.
    ``inherited_priority`` names the priority and where it comes from. ``waits_for`` has at least one item: of several
    constraints that are not met, each, in the order of the schedule."""

    job_id: str
    schedule: str
    kind: JobKind
    state: JobState
    reason: str
    code: Code | None
    created_at: At
    due_at: At | None
    nominal_at: At | None
    met_at: At | None
    wake_at: At | None
    queued_in: str | None
    holds: list[str]
    correlation: Keys | None
    dag: PartOfDag | None
    attempt: int
    inherited_priority: str | None
    approvals: list[GivenApproval]
    backfill: str | None
    progress: dict[str, int]
    requested_by: str | None
    waits_for: list[Hold]
    queue: PlaceInQueue | None


class Ref(Answer):
    """A text in the sentences of an answer that names something, so that a console makes it a link. A ``run`` may be a
    job that still waits."""

    text: str
    kind: Literal["schedule", "workflow", "dataset", "pool", "policy", "group", "backfill", "run"]
    name: str


class PartOfTrigger(Answer):
    """A part of a trigger. A leaf needs events, of a ``size`` leaf bytes; a combination needs ``need`` of its children.
    ``leaf`` is the number of a leaf; ``changes_at`` is when the part is met without a further event."""

    type: str
    text: str
    need: int
    have: int
    met: bool
    arrived: list[str]
    missing: list[str]
    changes_at: At | None
    leaf: str | None
    children: list[PartOfTrigger]


class StateOfConstraint(Answer):
    """``used`` of ``max`` permits of its limit are taken, by the runs in ``held_by``, at most 20. All are null if it
    has no limit, or the limit does not list its holders."""

    type: str
    met: bool
    why: str
    until: At | None
    used: int | None
    max: int | None
    held_by: list[str] | None


class UseOfLimit(Answer):
    """A limit that may make a job wait. ``waiting`` counts its queue, and ``waits_here`` is whether this job is in
    it."""

    name: str
    text: str
    used: int | None
    max: int | None
    held_by: list[str] | None
    waiting: int
    waits_here: bool


class WhyJob(Answer):
    """Why a job has not run: the decision on the present facts, and what would change it."""

    job_id: str
    schedule: str
    state: JobState
    decision: str
    why: str
    code: Code
    queue: PlaceInQueue | None
    fired_by: str | None
    arrived: list[str]
    missing: list[str]
    since: At
    correlation: Keys | None
    wakes: str
    constraints: list[StateOfConstraint]
    tree: PartOfTrigger | None
    limits: list[UseOfLimit]
    refs: list[Ref]


class EndedWork(Answer):
    """Work that never ran, or whose run was aborted or cancelled."""

    id: str
    kind: str
    schedule: str
    reason: str
    code: Code | None
    at: At
    count: int


class WhySchedule(Answer):
    """Why a schedule has not run. ``ended`` is its last work that never ran, or whose run was aborted or cancelled."""

    schedule: str
    state: Mode
    why: str
    next_fire: At | None
    jobs: list[WhyJob]
    ended: list[EndedWork]
    tree: PartOfTrigger
    refs: list[Ref]


class WhyRun(Answer):
    """Why a run is in its state, or what became of a job that ended without a run (``kind`` is ``record``)."""

    run_id: str
    kind: Literal["run", "record"]
    schedule: str
    state: RunState | RecordKind
    why: str
    code: Code | None
    at: At | None
    fired_by: str | None
    waited_ms: int | None
    refs: list[Ref]


class Accepted(Answer):
    """A job that a request has begun."""

    job_id: str
    state: str
    reason: str


class Refused(Answer):
    """A job that a refusal has ended."""

    job_id: str
    state: Literal["ABORTED"]
    reason: str


class Billed(Answer):
    """What a target has billed for a run, in hours, and in dollars at list price."""

    cost_usd: float | None


class Run(Answer):
    """An attempt of a run. Its instants are in the order of its life, from that of its job to ``ended_at``."""

    run_id: str
    attempt: int
    attempts: int
    schedule: str
    workflow: str
    workflow_version: int | None
    state: RunState
    reason: str
    code: Code | None
    fired_by: str
    kind: JobKind
    number: int | None
    waited_for: str | None
    waited_ms: int
    start_by: At | None
    end_by: At | None
    billed: Billed | None
    backfill: str | None
    rerun_of: str | None
    requested_by: str | None
    outcome: FailureKind | None
    metrics: dict[str, Any] | None
    priority: int
    correlation: Keys | None
    partition: Keys | None
    dag: PartOfDag | None
    properties: Properties
    target: Properties
    target_id: str | None
    context: str
    created_at: At
    nominal_at: At | None
    due_at: At | None
    late: bool
    lateness_ms: int | None
    accepted_at: At | None
    claimed_at: At
    start_requested_at: At | None
    started_at: At | None
    ended_at: At | None
    start_calls: int


class EventOfRun(Answer):
    """An event that started a run, with the fields of its kind: see docs/run-context.md. ``instant`` is in ms."""

    kind: str
    id: str
    instant: int


class RunInFull(Run):
    """The last attempt of a run, with the events that started it, and all attempts as its history."""

    events: list[EventOfRun]
    history: list[Run]


class Record(Answer):
    """Work that never became a run, and why."""

    id: str
    kind: RecordKind
    schedule: str
    reason: str
    code: Code | None
    at: At
    count: int


class Logs(Answer):
    """The last lines of each stream of an attempt; without lines, ``why``."""

    run_id: str
    attempt: int
    state: RunState
    streams: dict[str, list[str]]
    why: str | None
    exit_code: int | None = None
    reported_at: At | None = None


class Timeline(Answer):
    """Attempts in columns, newest first: each list but the first three has one value for each attempt. ``row`` and
    ``state`` are numbers in ``names`` and ``states``; ``workflows`` has the workflow of each name. ``at`` is when the
    wait began, in ms since 1970; ``waited`` and ``took`` are in ms, and ``took`` is null for an attempt that is not
    over. ``at_least``: there are more, before ``complete_from``."""

    from_: At = Field(alias="from")
    to: At
    names: list[str]
    workflows: list[str]
    states: list[RunState]
    row: list[int]
    at: list[int]
    waited: list[int]
    took: list[int | None]
    state: list[int]
    ids: list[str] | None = None
    at_least: bool
    complete_from: At


class Outcomes(Answer):
    """The newest attempts of a namespace, by state: ``runs`` of them, the oldest from ``since``. ``failed`` are the
    last ones that failed. ``more``: there are older ones."""

    runs: int
    more: bool
    since: At | None
    states: dict[str, int]
    failed: list[Run]


class DayOfSchedule(Answer):
    """How many runs and records of each state a schedule has on a day."""

    day: str
    counts: dict[str, int]


class DaysOfSchedule(Answer):
    """Runs and records by day, newest first, without empty days. ``at_least``: counts before the day
    ``complete_from`` are not whole."""

    schedule: str
    zone: str
    from_: str = Field(alias="from")
    to: str
    days: list[DayOfSchedule]
    at_least: bool
    complete_from: str


class NodeOfGraph(Answer):
    """A schedule, workflow or dataset. ``depth`` is its distance from the node around which the graph is, negative
    before it; ``state`` is the mode of a schedule."""

    id: str
    kind: Literal["schedule", "workflow", "dataset"]
    name: str
    depth: int | None
    state: Mode | None
    dag: str | None


class EdgeOfGraph(Answer):
    """A schedule ``runs`` a workflow, or ``counts`` the partitions of a dataset or the statuses of a workflow."""

    from_: str = Field(alias="from")
    to: str
    kind: Literal["runs", "counts"]
    text: str


class Graph(Answer):
    """How schedules, workflows and datasets trigger each other. ``at_least``: there are more nodes."""

    around: str | None
    nodes: list[NodeOfGraph]
    edges: list[EdgeOfGraph]
    at_least: bool


class NodeOfLineage(Answer):
    """A run, a job that waits, the record of one that never ran, or an event that no run has caused. ``depth`` is its
    distance from the run, negative before it."""

    id: str
    kind: Literal["run", "job", "record", "partition", "event", "fire"]
    schedule: str | None
    workflow: str | None
    state: RunState | JobState | RecordKind | None
    reason: str
    at: At
    ended_at: At | None
    depth: int


class EdgeOfLineage(Answer):
    """``text`` is the status that was counted, or what else led from one node to the other."""

    from_: str = Field(alias="from")
    to: str
    text: str


class Lineage(Answer):
    """What led to a run and what followed from it. ``at_least``: there is more."""

    run_id: str
    nodes: list[NodeOfLineage]
    edges: list[EdgeOfLineage]
    at_least: bool


class VersionOfSchedule(Answer):
    version: int
    created_at: At
    created_by: str
    changes: list[str]
    definition: Properties


class Step(Answer):
    at: At
    event: str
    touched: bool
    fires: bool
    why: str
    arrived: list[str]
    missing: list[str]


class OpenMatch(Answer):
    why: str
    changes_at: At | None
    correlation: Keys | None


class DryRunOfTrigger(Answer):
    """The state of a trigger after each event."""

    steps: list[Step]
    fires: int
    left: list[OpenMatch]
    why: str


class RegisteredPartition(Answer):
    dataset: str
    partition: Keys
    path: str
    ready_at: At
    put_at: At
    object: str | None
    snapshot: Properties | None = None


class JobOfPartition(Answer):
    """A job that has counted a partition, or waits for it."""

    job_id: str
    schedule: str
    state: JobState
    reason: str


class RunOfPartition(Answer):
    """A run whose job has counted a partition."""

    run_id: str
    schedule: str
    state: RunState
    reason: str
    at: At
    ended_at: At | None


class OnePartition(Answer):
    """A partition; ``ready_at`` is null if it is missing. ``waiting`` are the jobs that have counted it or wait for it.
    ``runs`` and ``ended`` are the runs and records of other jobs. The triggers of ``schedules`` count partitions of the
    dataset. ``at_least``: there is more."""

    dataset: str
    values: list[str]
    partition: Keys
    ready_at: At | None
    path: str | None
    waiting: list[JobOfPartition]
    runs: list[RunOfPartition]
    ended: list[Record]
    schedules: list[str]
    at_least: bool


class AcceptedEvent(Answer):
    id: str
    type: str
    event_id: str


class AcceptedEvents(Answer):
    accepted: list[AcceptedEvent]


class ActiveEntry(Answer):
    job_id: str
    entry: Any
    state: str


class FailedRun(Answer):
    """A failed run of a backfill, with the error of its program."""

    run_id: str
    partition: Keys | None
    reason: str


class StoredBackfill(Answer):
    """The progress of a backfill. ``first`` and ``last`` are partitions, ``from`` and ``to`` instants. ``failures`` are
    the newest failed runs, at most 3; a list of backfills has null in place of failed runs."""

    backfill_id: str
    schedule: str
    state: BackfillState
    reason: str | None
    order: BackfillOrder
    concurrency: int
    dataset: str | None
    total: int | None
    launched: int
    waiting: int | None
    running: int
    succeeded: int
    failed: int
    cancelled: int
    position: Any
    properties: Properties
    failures: list[FailedRun] | None
    active: list[ActiveEntry]
    created_at: At
    created_by: str
    ended_at: At | None
    first: Any = None
    last: Any = None
    from_: At | None = Field(default=None, alias="from")
    to: At | None = None


class PlanOfBackfill(Answer):
    """What a backfill would run: the first and the last few of its entries."""

    schedule: str
    dataset: str | None = None
    total: int | None
    first: list[Any]
    last: list[Any]


class StepOfReprocess(Answer):
    step: int
    schedule: str
    workflow: str
    after: list[int]
    why: str
    registered: bool
    total: int


class StoredStepOfReprocess(StepOfReprocess):
    """A step and its progress. ``failures`` are its newest failed runs, at most 3; a list of re-processings
    has null in place of failed runs."""

    state: StepState
    reason: str | None
    backfill_id: str | None
    waiting: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    failures: list[FailedRun] | None


class PlannedStepOfReprocess(StepOfReprocess):
    first: list[Any]
    last: list[Any]


class FiresOfReprocess(Answer):
    """The fires of a schedule with which a re-processing begins, from an instant to another that is excluded."""

    schedule: str
    from_: At | None = Field(default=None, alias="from")
    to: At | None = None


class StoredReprocess(Answer):
    """The progress of a re-processing, which begins with a dataset, a run, or fires. The counts of its steps add up to
    ``total``."""

    reprocess_id: str
    namespace: str
    state: ReprocessState
    reason: str | None
    dataset: str | None
    run: str | None
    fires: FiresOfReprocess | None
    first: Any
    last: Any
    concurrency: int
    properties: Properties
    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    steps: list[StoredStepOfReprocess]
    created_at: At
    created_by: str
    ended_at: At | None


class PlanOfReprocess(Answer):
    """What a re-processing would run, and why."""

    namespace: str
    dataset: str | None
    run: str | None
    fires: FiresOfReprocess | None
    partitions: int
    total: int
    steps: list[PlannedStepOfReprocess]


class BegunDag(Answer):
    dag: str
    run_id: str


class StateOfNode(Answer):
    """The state of a node. A list of DAG runs leaves out ``attempt`` and ``round``."""

    state: str
    why: str
    run_id: str | None
    started_at: At | None
    ended_at: At | None
    attempt: int | None = None
    round: int | None = None


class RerunOfDag(Answer):
    round: int
    at: At
    by: str
    what: str
    request: str
    node: str | None = None


class RunOfDag(Answer):
    run_id: str
    dag: str
    graph: str
    state: str
    fired_by: str
    partition: Keys | None
    nominal_at: At | None
    started_at: At
    ended_at: At | None
    reruns: list[RerunOfDag]
    nodes: dict[str, StateOfNode]


class DeadLetter(Answer):
    """An event that could not be delivered."""

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    target: str
    reason: str
    tries: int
    size: int
    nominal_at: At | None
    first_try_at: At
    failed_at: At


class Redriven(Answer):
    run_id: str
    attempt: int


class RedrivenLetters(Answer):
    redriven: list[str]
    refused: list[Any]
    more: bool


class Lease(Answer):
    """A run that a worker has claimed, until ``expires_at`` unless it sends heartbeats."""

    lease: str
    run_id: str
    attempt: int
    schedule: str
    workflow: str
    arguments: list[str]
    properties: Properties
    priority: int
    context: Properties
    expires_at: At
    heartbeat_seconds: float


class Leases(Answer):
    leases: list[Lease]
    wait: float
    retry_after: float


class StateOfLease(Answer):
    """The answer to a heartbeat. With ``cancel`` the worker ends its work."""

    lease: str
    state: RunState
    cancel: bool
    reason: str | None
    expires_at: At


class ReportedEnd(Answer):
    run_id: str
    attempt: int
    state: RunState
    reason: str | None = None


class ReportOfWorkflow(Answer):
    """The line of a workflow in the report of a day: see docs/history.md."""

    namespace: str
    workflow: str


class OpenApiDocument(Answer):
    """A document of OpenAPI 3.1."""

    openapi: str
    info: Properties
    paths: Properties
    components: Properties
    security: list[Properties]


class Health(Answer):
    """The state of the API, and the buckets of the installation."""

    status: str
    lake: str | None = None
    control: str | None = None


class WhoAmI(Answer):
    """Who signs the requests, as ``updated_by`` and ``by`` name them, and which installation answers."""

    arn: str
    account: str | None
    region: str | None
    stage: str | None
    version: str


class ScheduleInShort(Answer):
    """A schedule in a list of its namespace, without its definition. ``dag`` is the DAG that owns it."""

    name: str
    app: str
    state: Mode
    enabled: bool
    pause_reason: str | None
    triggered_by: str
    workflow: str
    tags: dict[str, str]
    priority: int | None
    policy: str | None
    version: int
    generation: int
    skips: list[At]
    dag: str | None
    updated_at: At
    updated_by: str


class LastRun(Answer):
    """An attempt of a run; ``at`` is when it was claimed."""

    run_id: str
    attempt: int
    state: RunState
    at: At


class GlanceAtSchedule(Answer):
    """Why a schedule does not run, and its newest runs first. ``at_least``: more jobs than ``waiting`` wait."""

    schedule: str
    state: Mode
    why: str
    next_fire: At | None
    waiting: int
    at_least: bool
    last: list[LastRun]


class Glances(Answer):
    """The schedules in the order of the request. ``gone`` are those that do not exist."""

    items: list[GlanceAtSchedule]
    gone: list[str]


class HeldJobs(Answer):
    """The jobs that one thing holds. ``why`` is the reason of the first of ``jobs``, and ``changes_at`` the first
    instant at which one of them is checked again."""

    kind: HoldKind
    name: str
    of: str
    why: str
    count: int
    oldest: At
    changes_at: At | None
    jobs: list[Job]


class WaitingNow(Answer):
    """The waiting jobs, of all groups; the list has the largest hundred groups."""

    count: int
    at_least: bool
    groups: list[HeldJobs]
    groups_left_out: int


class ApprovalsNow(Answer):
    """The jobs that wait for an approval; the list has the oldest."""

    count: int
    at_least: bool
    jobs: list[Job]


class RunInShort(Answer):
    run_id: str
    attempt: int
    schedule: str
    workflow: str
    state: RunState
    claimed_at: At
    started_at: At | None
    end_by: At | None


class RunningNow(Answer):
    """The runs in progress; the list has the oldest."""

    count: int
    at_least: bool
    runs: list[RunInShort]


class OverdueWork(Answer):
    """A job that has not started, or a run that has not ended, by its deadline."""

    id: str
    kind: Literal["job", "run"]
    schedule: str
    why: str
    by: At


class OverdueNow(Answer):
    count: int
    at_least: bool
    items: list[OverdueWork]


class PausedSchedule(Answer):
    schedule: str
    state: Mode
    since: At
    reason: str
    by: str


class PausedNow(Answer):
    """The schedules that Sluice has paused because their runs failed in a row."""

    count: int
    at_least: bool
    schedules: list[PausedSchedule]


class Now(Answer):
    """The present of a namespace. With ``at_least`` a bound was reached: counts are lower bounds."""

    at: At
    at_least: bool
    waiting: WaitingNow
    approvals: ApprovalsNow
    running: RunningNow
    overdue: OverdueNow
    paused: PausedNow


class Fire(Answer):
    """A fire to come. ``skipped``: a user asked to skip it."""

    schedule: str
    nominal_at: At
    due_at: At
    skipped: bool
    state: Mode


class Fires(Answer):
    """The fires in a span, by when they are due. With ``at_least`` fires after ``complete_to`` may be missing."""

    from_: At = Field(alias="from")
    to: At
    at_least: bool
    complete_to: At
    items: list[Fire]


class Holder(Answer):
    """A run that holds a permit of a limit, since its claim."""

    run_id: str
    attempt: int
    schedule: str
    state: RunState
    since: At | None


class Limit(Answer):
    """A limit, its use and its queue. ``in_use`` is null for a limit of starts, and ``maximum`` where only a waiting or
    active job would tell it. Holders and waiters are null in a list of all limits. ``at_least``: there are more."""

    name: str
    kind: str
    of: str
    in_use: int | None
    maximum: int | None
    unit: str
    waiting: int
    next_at: At | None
    holders: list[Holder] | None
    waiters: list[Waiter] | None
    at_least: bool


class Preview(Answer):
    """The next fires: their nominal instants, and when each is due."""

    items: list[At]
    due: list[At]
    next_cursor: None
    description: str
    fires_per_day: float | None


@dataclass(frozen=True, slots=True)
class Pages:
    """A page of items, with what else the page has."""

    item: type[Answer]
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ByStatus:
    """An answer to a dry run or of what is done (200), and one to a request that began something (201, 202)."""

    planned: type[Answer]
    begun: type[Answer]

    def of(self, status: int) -> type[Answer]:
        return {200: self.planned, 201: self.begun, 202: self.begun}[status]


# Operation -> its answer.
ANSWERS: dict[str, type[Answer] | Pages | ByStatus] = {
    "health": Health,
    "openapi": OpenApiDocument,
    **{
        f"put_{kind}": Change
        for kind in (
            "namespace",
            "workflow",
            "dataset",
            "policy",
            "pool",
            "calendar",
            "allowed",
            "grants",
            "quotas",
        )
    },
    "put_access": ChangeOfAccess,
    "give_prefix": OwnedPrefix,
    "list_prefixes": Pages(OwnedPrefix),
    "list_namespaces": Pages(StoredNamespace),
    "get_namespace": StoredNamespace,
    "list_apps": Pages(StoredApp),
    "get_app": StoredApp,
    "deploy_app": ByStatus(Deployment, LaterDeployment),
    "begin_upload": BegunUpload,
    "show_deployment": LaterDeployment,
    "change_schedules": BulkChange,
    "list_workflows": Pages(StoredWorkflow),
    "get_workflow": StoredWorkflow,
    "workflow_runs": Pages(Run),
    "list_datasets": Pages(StoredDataset),
    "get_dataset": StoredDataset,
    "list_partitions": Pages(RegisteredPartition, {"at_least": {"type": "boolean"}}),
    "get_partition": OnePartition,
    "register_partition": RegisteredPartition,
    "list_calendars": Pages(StoredCalendar),
    "get_calendar": StoredCalendar,
    "list_policies": Pages(StoredPolicy),
    "get_policy": StoredPolicy,
    "list_pools": Pages(StoredPool),
    "get_pool": StoredPool,
    "get_access": StoredAccess,
    "get_grants": StoredGrants,
    "get_allowed": StoredAllowed,
    "propose_allowed": ProposedAllowed,
    "get_quotas": StoredQuotas,
    "list_audit": Pages(AuditRecord),
    "list_audit_of_all": Pages(AuditRecord),
    "list_schedules": Pages(StoredSchedule),
    **{f"{act}_schedule": StoredSchedule for act in ("get", "put", "enable", "disable", "pause", "resume")},
    "skip_occurrence": StoredSchedule,
    "unskip_occurrence": StoredSchedule,
    "schedule_jobs": Pages(Job),
    "schedule_runs": Pages(Run),
    "schedule_records": Pages(Record),
    "timeline": Timeline,
    "show_outcomes": Outcomes,
    "graph": Graph,
    "run_lineage": Lineage,
    "schedule_days": DaysOfSchedule,
    "schedule_versions": Pages(VersionOfSchedule),
    "why_schedule": WhySchedule,
    "preview": Preview,
    "dry_run": DryRunOfTrigger,
    "run_now": Accepted,
    "begin_backfill": ByStatus(PlanOfBackfill, StoredBackfill),
    "list_backfills": Pages(StoredBackfill),
    "show_backfill": StoredBackfill,
    "cancel_backfill": StoredBackfill,
    "begin_reprocess": ByStatus(PlanOfReprocess, StoredReprocess),
    "list_reprocesses": Pages(StoredReprocess),
    "show_reprocess": StoredReprocess,
    "cancel_reprocess": StoredReprocess,
    "list_dags": Pages(StoredDag),
    **{f"{act}_dag": StoredDag for act in ("get", "put", "enable", "disable")},
    "run_dag": BegunDag,
    "list_dag_runs": Pages(RunOfDag),
    "show_dag_run": RunOfDag,
    "rerun_dag": RunOfDag,
    "list_messages": Pages(StoredMessage),
    "get_message": StoredMessage,
    "put_message": StoredMessage,
    "message_runs": Pages(Run),
    "why_message": WhySchedule,
    "list_jobs": Pages(Job),
    "find_schedules": Pages(ScheduleInShort),
    "glance_schedules": Glances,
    "show_now": Now,
    "list_fires": Fires,
    "list_limits": Pages(Limit),
    "whoami": WhoAmI,
    "get_job": Job,
    "why_job": WhyJob,
    "approve_job": Job,
    "refuse_job": Refused,
    "cancel_job": Record,
    "list_runs": Pages(Run),
    "get_run": RunInFull,
    "why_run": WhyRun,
    "read_logs": Logs,
    "cancel_run": Run,
    "ping_run": Run,
    "rerun_run": Accepted,
    "list_records": Pages(Record),
    "read_report": Pages(ReportOfWorkflow, {"day": {"type": "string", "format": "date"}}),
    "post_events": AcceptedEvents,
    "list_dead_letters": Pages(DeadLetter),
    "redrive_dead_letter": Redriven,
    "redrive_dead_letters": RedrivenLetters,
    "claim_runs": Leases,
    "beat_heart": StateOfLease,
    "report_end": ReportedEnd,
    "release_run": ReportedEnd,
}


def models() -> list[type[Answer]]:
    """Every model that an answer has."""
    found: dict[type[Answer], None] = {}
    for known in ANSWERS.values():
        if isinstance(known, Pages):
            found[known.item] = None
        elif isinstance(known, ByStatus):
            found |= {known.planned: None, known.begun: None}
        else:
            found[known] = None
    return list(found)
