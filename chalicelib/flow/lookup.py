"""Find definitions, jobs and runs by name, and read lists to their end. Reads of single rows are strong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Literal, TypeVar

from chalicelib.core import errors, ids
from chalicelib.core.dags import rounds
from chalicelib.core.definition_kinds import plural
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import bundles, fire
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import LastArrival
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.schedules.relative import Counted
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Upstream
from chalicelib.core.why import NONE, Why, joined, plain
from chalicelib.flow import calendars, fire_events
from chalicelib.ports import Kind, Page, Ports, every_page

# Documents of schedules that are kept in memory, and the characters of the largest one. What is parsed takes some 5 KB.
MAX_PARSED, MAX_KEPT = 1_000, 4_000
PAGE = 500  # prepared fires that are read together
MAX_KNOWN = 1_000  # names among which the one that was meant is searched
MAX_SEARCHED = 200  # the newest attempts of a workflow, among which its run for some values is searched


def stored(ports: Ports, schedule_state: ScheduleState | Timer | None) -> Counted | None:
    """The stored schedule, with the instants from which its spans were counted."""
    version = ports.rows.get(Version, schedule_state.schedule, schedule_state.version) if schedule_state else None
    if version is None:
        return None
    began = [version.created_at if at is None else at for at in (version.trigger_from, version.ttl_from)]
    return Counted(calendars.read(ports, _parsed(version.definition)), *began)


def _parsed(definition: Mapping[str, Any]) -> Schedule:
    """The schedule of a stored document. Schedules that are made from one template share what is parsed: ten thousand
    of them that are due at one instant would take a second otherwise. One with holiday calendars or periods is parsed
    anew, since its triggers learn them."""
    text = json.dumps(definition)
    found = _PARSED.get(text)
    if found is None:
        found = Schedule.model_validate(definition)
        if not found.calendars and not found.periodic and len(text) <= MAX_KEPT:
            if len(_PARSED) >= MAX_PARSED:
                _PARSED.clear()
            _PARSED[text] = found
    return found


_PARSED: dict[str, Schedule] = {}


def last_arrival(ports: Ports, schedule_state: ScheduleState, timer: Timer, leaf: str) -> Instant | None:
    """The last arrival for an absent leaf since its trigger began, also before updates that did not change it."""
    # The timer has what was known at the last update. An event may have come between that read and the commit.
    generations = (schedule_state.generation, *schedule_state.former[-1:])
    rows = [ports.rows.get(LastArrival, schedule_state.schedule, generation, leaf) for generation in generations]
    found = [row.at for row in rows if row is not None]
    return max((at for at in (*found, timer.arrived.get(leaf)) if at is not None), default=None)


def definition_of(ports: Ports, schedule_state: ScheduleState | Timer | None) -> Schedule | None:
    """The definition of a schedule in the version that its state, or its timer, has."""
    found = stored(ports, schedule_state)
    return found.definition if found else None


def timer_of(ports: Ports, schedule_state: ScheduleState | None, schedule: Schedule | None) -> Timer | None:
    """The timer of a schedule that fires at times, for a change that ends it; None for any other, which costs no read.
    It does not have the events that are jobs."""
    if schedule_state is None or schedule is None or not tree.recurrences(schedule.trigger):
        return None
    timer = ports.rows.get(Timer, schedule_state.schedule)
    if timer is None or not timer.begun:
        return timer
    return fire.beside(timer, prepared(ports, schedule_state, ports.clock.now()))


def prepared(ports: Ports, schedule_state: ScheduleState, now: Instant) -> tuple[Job, ...]:
    """The fires of the present generation that are prepared and due after ``now``."""
    jobs = every(partial(ports.jobs.jobs, schedule_state.schedule, schedule_state.generation), PAGE)
    fires = takewhile(lambda job: sort_keys.is_fire(job.sort_key), jobs)  # they sort first
    return tuple(job for job in fires if bundles.first_after(job, now) is not None)


def existing(ports: Ports, name: str) -> tuple[ScheduleState, Schedule]:
    """The state and definition of a schedule. Raises ``not_found`` (404) if it does not exist."""
    schedule_state = ports.rows.get(ScheduleState, name)
    schedule = definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None or not schedule_state.exists:
        raise missing(ports, "schedule", name)
    return schedule_state, schedule


def _list_command(kind: str, parent: str) -> str:
    """How the command line lists the definitions of a kind in an app or a namespace."""
    of_parent = f" -{'a' if '.' in parent else 'n'} {parent}" if parent else ""
    return f"sluice get {plural(kind)}{of_parent}"


def missing(ports: Ports, kind: Kind | Literal["schedule"], name: str) -> SluiceError:
    """The error ``not_found`` (404) for a definition, with the nearest name, or the app or namespace that is missing
    too."""
    parent = name.rpartition(".")[0]
    above: Kind = "app" if parent.count(".") else "namespace"
    if parent and ports.rows.get(Definition, above, parent) is None:
        reason = missing(ports, above, parent)
        return errors.not_found(kind, name, joined([reason.said, *filter(None, [reason.hinted])], ": "))
    known = (
        [full for full in ports.catalog.schedules(parent, MAX_KNOWN, None).items if ids.DAG not in full]
        if kind == "schedule"
        else [row.name for row in ports.catalog.definitions(kind, parent, MAX_KNOWN, None).items]
    )
    return errors.not_found(kind, name, f"{_list_command(kind, parent)} lists what is there", known)


def workflow_of(ports: Ports, name: str) -> Workflow | None:
    if ids.is_dag_graph(name):
        return rounds.begins()
    definition = ports.rows.get(Definition, "workflow", name)
    return Workflow.model_validate(definition.document) if definition else None


def goes_on(ports: Ports, schedule: str, backfill: str) -> bool:
    """Whether a backfill may still start jobs (L12)."""
    row = ports.rows.get(Backfill, schedule, backfill)
    return row is not None and row.state == "RUNNING"


T = TypeVar("T")


def require(ports: Ports, kind: Kind, name: str) -> None:
    """Raise ``not_found`` (404) if a definition, such as a namespace or an app, does not exist."""
    if ports.rows.get(Definition, kind, name) is None:
        error = missing(ports, kind, name)
        raise error if error.hinted and error.hinted.names else errors.not_found(kind, name, f"create the {kind} first")


def schedules_of(ports: Ports, app: str, beginning: str = "") -> list[str]:
    """The names of the schedules of an app that start with ``beginning``."""
    return list(every(partial(ports.catalog.schedules, app, beginning=beginning)))


def definitions_in(ports: Ports, kind: Kind, parent: str) -> Iterator[Definition]:
    """Every definition of a kind in a namespace or app."""
    return every(partial(ports.catalog.definitions, kind, parent))


def every(read: Callable[[int, str | None], Page[T]], size: int = 1000) -> Iterator[T]:
    """The items of all pages of a list. A page is read when the items of the page before it have been used."""
    for page in every_page(read, size):
        yield from page.items


def find_job(ports: Ports, job_id: str) -> Job:
    """A waiting job. Raises ``not_found`` (404) with its outcome if it no longer waits."""
    job = ports.jobs.find(job_id) or fire_events.job(ports, job_id)
    if job is None or job.closed:
        run = attempts(ports, job_id)
        became = plain("it has become a run: ask for the run of the same id")
        raise errors.not_found("job", job_id, became if run else _ending(ports, "jobs", job_id))
    return job


def find_run(ports: Ports, run_id: str) -> tuple[Run, ...]:
    """All attempts of a run, in order. Raises ``not_found`` (404) if there is none."""
    found = attempts(ports, run_id)
    if not found:
        waiting = ports.jobs.find(run_id) or fire_events.job(ports, run_id)
        is_job = waiting is not None and not waiting.closed
        still = plain("it is still a job: ", waiting.reason) if waiting is not None and is_job else NONE
        if not still and ports.rows.get(Fire, run_id) is not None:
            still = plain(f"it is a fire of many events: sluice fires {run_id}, or GET /v1/fires/{run_id}")
        raise errors.not_found("run", run_id, still or _ending(ports, "runs list", run_id))
    return found


def attempts(ports: Ports, run_id: str) -> tuple[Run, ...]:
    """All attempts of a run, in order; that of an event which was sent in a bundle, too. Empty if there is none."""
    found = ports.runs.attempts(run_id)
    in_bundle = fire_events.run(ports, run_id) if not found else None
    return (in_bundle,) if in_bundle is not None else found


def record_of(ports: Ports, job_id: str) -> Record | None:
    """The record of work that never became a run; that of an event which was dropped in a bundle, too."""
    return ports.rows.get(Record, job_id) or fire_events.record(ports, job_id)


def runs_for(ports: Ports, upstream: Upstream, values: Mapping[str, str] | None) -> Iterator[Run]:
    """The runs for which a leaf waits and whose status carries these partition values, the newest first; without
    values, all of them. Only the last `MAX_SEARCHED` attempts of the workflow are searched."""
    wanted = (values or {}).items()
    for run in ports.runs.runs("workflow", upstream.workflow, MAX_SEARCHED, None).items:
        if upstream.counts(run.workflow, run.schedule) and wanted <= (rounds.announced(run) or {}).items():
            yield run


def _ending(ports: Ports, command: str, job_id: str) -> Why:
    """How a job ended that never became a run, from its record. Without one, the command that lists the jobs or runs of
    the schedule that the id names."""
    record = record_of(ports, job_id)
    if record is not None:
        return plain(f"it was {record.kind.lower()} at {iso(record.recorded_at)}: ", record.reason)
    parsed = ids.parse_job_id(job_id)
    return plain(f"sluice {command} -s {parsed.schedule if parsed else 'NAME'} lists those of its schedule")
