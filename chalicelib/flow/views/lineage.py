"""What led to a run, and what followed from it.

What led to it: the events that its job has counted, which name their runs. What followed has no index, and needs none.
The id of the event of a status follows from the run. Each schedule that counted it has a row ``AppliedEvent`` under
that id, which names its job. So the subscribers of the event are read, then these rows by their keys, a hundred per
call. A schedule that was replaced since counted the event in an earlier generation; the ids of its runs show which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.dags import rounds
from chalicelib.core.events.build import reached, status_event
from chalicelib.core.ids import parse_job_id
from chalicelib.core.instants import iso
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, RecordKind, Run
from chalicelib.core.rows.schedule import WAKE, Subscription
from chalicelib.core.states import JobState, RunState
from chalicelib.core.views import At, Code, FromText, Sentence, View, shown
from chalicelib.core.why import plain
from chalicelib.flow import fire_events, lookup, many
from chalicelib.flow.ingest.apply import NO_JOB
from chalicelib.flow.runs import context
from chalicelib.ports import Ports

MAX_NODES = 100  # in each direction
MAX_EXPANDED = 20  # runs of one level whose events, or followers, are read
MAX_EVENTS = 200  # events that are read of each run
FOLLOWERS = 100  # subscriptions that are read of an event
MAX_REPLACED = 10  # schedules whose earlier generations are searched, in their last `OLDER` runs
OLDER = 50
MAX_JOBS = 20  # waiting jobs that are searched
MAX_ATTEMPTS = 30


class NodeOfLineageView(View):
    """A run, a job that waits, the record of one that never ran, or an event that no run has caused. ``depth`` is its
    distance from the run, negative before it."""

    id: str
    kind: Literal["run", "job", "record", "partition", "event", "fire"]
    schedule: str | None
    workflow: str | None
    state: RunState | JobState | RecordKind | None
    reason: Sentence
    code: Code | None
    at: At
    ended_at: At | None
    depth: int


class EdgeOfLineageView(FromText):
    """``text`` is the status that was counted, or what else led from one node to the other."""

    to: str
    text: str


class LineageView(View):
    """What led to a run and what followed from it. ``at_least``: there is more."""

    run_id: str
    nodes: list[NodeOfLineageView]
    edges: list[EdgeOfLineageView]
    at_least: bool


@dataclass(slots=True)
class _Lineage:
    """The nodes by id, the edges, and whether a bound was met."""

    nodes: dict[str, NodeOfLineageView] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], None] = field(default_factory=dict)
    cut: bool = False

    def add(self, node: NodeOfLineageView, depth: int) -> bool:
        """Add a node at this depth unless it is known. Returns False if there is no room for it."""
        if node["id"] in self.nodes:
            return True
        if sum((each["depth"] > 0) == (depth > 0) for each in self.nodes.values() if each["depth"]) >= MAX_NODES:
            self.cut = True
            return False
        node["depth"] = depth
        self.nodes[node["id"]] = node
        return True


def lineage(ports: Ports, run_id: str, up: int, down: int) -> LineageView:
    """The runs, events and jobs at most ``up`` steps before a run and ``down`` steps after it. Raises ``not_found``
    (404) for a run that does not exist."""
    run = lookup.find_run(ports, run_id)[-1]
    found = _Lineage()
    found.add(_node(run), 0)
    level: Sequence[Run] = [run]
    for depth in range(1, up + 1):
        level = _before(ports, found, level, -depth)
    level = [run]
    for depth in range(1, down + 1):
        level = _after(ports, found, level, depth)
    edges: list[EdgeOfLineageView] = [{"from": start, "to": end, "text": text} for start, end, text in found.edges]
    return {"run_id": run_id, "nodes": list(found.nodes.values()), "edges": edges, "at_least": found.cut}


def _before(ports: Ports, found: _Lineage, level: Sequence[Run], depth: int) -> list[Run]:
    """Add what led to these runs. Returns the runs among it."""
    causes: dict[str, list[tuple[str, str]]] = {}  # run -> the runs that it led to, with the text of the edge
    for run in level[:MAX_EXPANDED]:
        if run.rerun_of is not None:
            causes.setdefault(run.rerun_of, []).append((run.run_id, "run again"))
        events = context.events_of(ports, run, MAX_EVENTS + 1)
        found.cut |= len(events) > MAX_EVENTS
        for event in events[:MAX_EVENTS]:
            if event.run_id is not None:
                causes.setdefault(event.run_id, []).append((run.run_id, event.status or event.kind))
            elif found.add(node := _event(event), depth):
                found.edges[node["id"], run.run_id, str(node["kind"])] = None
    found.cut |= len(level) > MAX_EXPANDED
    wanted = list(causes)[:MAX_NODES]
    runs = last_attempts(ports, wanted)
    runs |= {run.run_id: run for run in fire_events.runs(ports, (name for name in wanted if name not in runs))}
    found.cut |= len(causes) > MAX_NODES
    new = [run for run in runs.values() if run.run_id not in found.nodes]
    for cause, run in runs.items():
        if found.add(_node(run), depth):
            found.edges |= {(cause, end, text): None for end, text in causes[cause]}
    return new


def _after(ports: Ports, found: _Lineage, level: Sequence[Run], depth: int) -> list[Run]:
    """Add what followed from these runs. Returns the runs among it."""
    events = [status_event(run, status) for run in level[:MAX_EXPANDED] for status in reached(run)]
    events += _registered(ports, level[:MAX_EXPANDED])
    found.cut |= len(level) > MAX_EXPANDED
    followed, cut = counted_by(ports, events)
    found.cut |= cut
    causes: dict[str, list[tuple[str, str]]] = {}
    for event, job_id in followed:
        causes.setdefault(job_id, []).append((str(event.run_id), event.status or event.kind))
    wanted = list(causes)[:MAX_NODES]
    runs, jobs, records, cut = became(ports, wanted)
    found.cut |= cut or len(causes) > MAX_NODES
    new = [run for run in runs.values() if run.run_id not in found.nodes]
    rows: dict[str, Run | Job | Record] = {**runs, **jobs, **records}
    for job_id in wanted:
        row = rows.get(job_id)
        if row is not None and found.add(_node(row), depth):
            found.edges |= {(start, job_id, text): None for start, text in causes[job_id]}
    return new


def _registered(ports: Ports, runs: Sequence[Run]) -> list[Event]:
    """The events of the partitions that the success of these runs has registered (L22)."""
    notes = [note for run in runs for note in run.registered if note["partition"] is not None]
    wanted = [(note["dataset"], tuple(note["partition"].values())) for note in notes]
    own = {run.run_id for run in runs}
    return [row.event for row in many.rows(ports, Partition, wanted) if row.event.run_id in own] if wanted else []


def counted_by(ports: Ports, events: Sequence[Event]) -> tuple[list[tuple[Event, str]], bool]:
    """The jobs that have counted these events, each with its event, and whether a bound was met."""
    rows: dict[str, list[Subscription]] = {}
    cut = False
    for key in dict.fromkeys(event.key for event in events):
        page = ports.catalog.subscriptions(key, FOLLOWERS, None)
        rows[key] = [row for row in page.items if row.leaf != WAKE]
        cut |= page.cursor is not None
    places = {(row.schedule, row.generation, event.id): event for event in events for row in rows[event.key]}
    former, cut_too = _former(ports, places)
    places |= former
    found = ports.jobs.applied(list(places))
    followed = [
        (places[row.schedule, row.generation, row.event.id], row.event_job) for row in found if row.event_job != NO_JOB
    ]
    return followed, cut or cut_too


Places = dict[tuple[str, int, str], Event]


def _former(ports: Ports, places: Places) -> tuple[Places, bool]:
    """The places of events that came before the present generation of a schedule. A generation is the instant at which
    it began, and the ids of the runs since the event name the generations in between."""
    late: dict[str, list[tuple[int, Event]]] = {}
    for (schedule, generation, _), event in places.items():
        if event.accepted_at < generation:
            late.setdefault(schedule, []).append((generation, event))
    found: Places = {}
    cut = len(late) > MAX_REPLACED
    for schedule, own in list(late.items())[:MAX_REPLACED]:
        until = max(generation for generation, _ in own)
        since = min(event.accepted_at for _, event in own)
        runs = ports.runs.spans("schedule", [schedule], since, max(until, since + 1), OLDER)
        cut |= len(runs) == OLDER
        parsed = (parse_job_id(run.run_id) for run in runs)
        generations = dict.fromkeys(each.generation for each in parsed if each is not None)
        found |= {(schedule, each, event.id): event for each in generations for _, event in own}
    return found, cut


def became(
    ports: Ports, job_ids: Sequence[str]
) -> tuple[dict[str, Run], dict[str, Job], dict[str, Record], bool]:  # fmt: skip
    """What has become of these jobs: runs by their last attempts, waiting jobs, and records; and whether a bound was
    met. Rows are read a hundred per call, except the first `MAX_JOBS` waiting jobs."""
    runs = last_attempts(ports, job_ids)
    rest = [job_id for job_id in job_ids if job_id not in runs]
    records = {record.id: record for record in many.rows(ports, Record, ((job_id,) for job_id in rest))}
    waiting = [job_id for job_id in rest if job_id not in records]
    found = ((job_id, ports.jobs.find(job_id)) for job_id in waiting[:MAX_JOBS])
    jobs = {job_id: job for job_id, job in found if job is not None and not job.closed}
    return runs, jobs, records, len(waiting) > MAX_JOBS


def last_attempts(ports: Ports, run_ids: Sequence[str]) -> dict[str, Run]:
    """The last attempt of each of these runs that exist. Each call reads the same attempt of a hundred runs."""
    found: dict[str, Run] = {}
    wanted = [(run_id, 1) for run_id in dict.fromkeys(run_ids)]
    while wanted and wanted[0][1] <= MAX_ATTEMPTS:
        rows = ports.runs.several(wanted)
        found |= {row.run_id: row for row in rows}
        wanted = [(row.run_id, row.attempt + 1) for row in rows if row.state in ("RETRYING", "FAILED")]
    return {run_id: found[run_id] for run_id in dict.fromkeys(run_ids) if run_id in found}


def _node(row: Run | Job | Record) -> NodeOfLineageView:
    """A run, a job that waits, or the record of one that never ran."""
    own: dict[str, Any]
    match row:
        case Run():
            own = {"id": row.run_id, "kind": "run", "at": iso(row.claimed_at)}
        case Job():
            own = {"id": row.job_id, "kind": "job", "at": iso(row.created_at), "workflow": None, "ended_at": None}
        case Record():
            at = iso(row.recorded_at)
            own = {"kind": "record", "state": row.kind, "at": at, "workflow": None, "ended_at": at}
    return shown(NodeOfLineageView, row, depth=0, **own)


def _event(event: Event) -> NodeOfLineageView:
    """An event that no run has caused: a partition, an object, a custom event, or a fire."""
    kind: Literal["event", "partition", "fire"] = "event"
    name, text = event.id, f"event {event.key.rpartition(':')[2]}"
    if event.kind in ("partition", "snapshot") and event.dataset is not None:
        values = "/".join((rounds.without(event.partition) or {}).values())
        kind, name, text = "partition", f"{event.dataset}/{values}", f"partition {values} of {event.dataset}"
    elif event.kind in ("time", "elapsed", "absent"):
        kind, text = "fire", f"fire of {iso(event.instant)}"
    elif event.path is not None:
        text = f"object {event.path}"
    return {
        "id": f"{kind}:{name}",
        "kind": kind,
        "schedule": None,
        "workflow": None,
        "state": None,
        "reason": plain(text),
        "code": None,
        "at": iso(event.instant),
        "ended_at": None,
        "depth": 0,
    }
