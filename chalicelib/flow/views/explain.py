"""Explain why something has not run: make the decision about it on the present facts, and show that decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, Literal

from chalicelib.core import ids, states
from chalicelib.core.access.grants import waiting_for
from chalicelib.core.constraints.constraint import Condition
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import foreign
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import upcoming as fire_upcoming
from chalicelib.core.fires import walls
from chalicelib.core.history.durations import waited
from chalicelib.core.instants import Instant, iso, iso_or_none
from chalicelib.core.jobs import check, timeout
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.run import Record, RecordKind, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.rows.stops import marks_of, why_of
from chalicelib.core.states import GATHERING_MODES, JobState, Mode, RunState
from chalicelib.core.text import count_of
from chalicelib.core.triggers import parts, tree
from chalicelib.core.views import At, Code, Sentence, View, shown
from chalicelib.core.why import NONE, Mention, Why, joined, mention, plain
from chalicelib.flow import facts, grants, lookup
from chalicelib.flow.definitions import buckets, store
from chalicelib.flow.ingest import absences
from chalicelib.flow.jobs import arrangers
from chalicelib.flow.runs import failures
from chalicelib.flow.views import last_failures, limits, missing, refs, stopped
from chalicelib.flow.views.last_failures import LastFailureView
from chalicelib.flow.views.limits import UseOfLimitView, UseView
from chalicelib.flow.views.queues import PlaceInQueueView, Queues, with_place
from chalicelib.flow.views.refs import Refs
from chalicelib.flow.views.views import EndedWorkView, ended_view
from chalicelib.ports import Ports

MAX_ENDED = 5  # in the explanation of a schedule; the lists of records and of runs have all
MAX_RECENT = 10  # the newest runs of a schedule, which say whether its last one has failed
MAX_SEARCHED = 100  # the same for each partition, if its jobs have one


class PartOfTriggerView(View):
    """A part of a trigger. A leaf needs events, of a ``size`` leaf bytes; a combination needs ``need`` of its children.
    ``leaf`` is the number of a leaf; ``changes_at`` is when the part is met without a further event. ``lacks`` has the
    first partitions that a leaf lacks, if it waits for certain ones."""

    type: str
    text: str
    need: int
    have: int
    met: bool
    arrived: list[str]
    missing: list[str]
    lacks: list[dict[str, str]]
    changes_at: At | None
    leaf: str | None
    children: list[PartOfTriggerView]


class StateOfConstraintView(UseView):
    """``used`` of ``max`` permits of its limit are taken, by the runs in ``held_by``, at most 20. All are null if it
    has no limit, or the limit does not list its holders."""

    type: str
    met: bool
    why: Sentence
    until: At | None


class WhyJobView(View):
    """Why a job has not run: the decision on the present facts, and what would change it. ``count`` is how many events
    of a large fire wait in the job; 1 for any other job."""

    job_id: str
    schedule: str
    state: JobState
    decision: str
    why: Sentence
    code: Code
    queue: PlaceInQueueView | None
    fired_by: Sentence | None
    arrived: list[str]
    missing: list[str]
    since: At
    correlation: dict[str, str] | None
    wakes: str
    constraints: list[StateOfConstraintView]
    tree: PartOfTriggerView | None
    limits: list[UseOfLimitView]
    count: int
    refs: Refs


class WhyScheduleView(View):
    """Why a schedule has not run. ``ended`` is its last work that never ran, or whose run was aborted or cancelled.
    ``failures`` are its last runs that failed, if nothing ran since: the newest of all, or with ``by`` and ``per`` the
    newest of each partition. ``constraints`` and ``limits`` are those of the first waiting job, or of one that would
    begin now."""

    schedule: str
    state: Mode
    why: Sentence
    next_fire: At | None
    constraints: list[StateOfConstraintView]
    limits: list[UseOfLimitView]
    jobs: list[WhyJobView]
    ended: list[EndedWorkView]
    failures: list[LastFailureView]
    tree: PartOfTriggerView
    refs: Refs


class WhyRunView(View):
    """Why a run is in its state, or what became of a job that ended without a run (``kind`` is ``record``)."""

    run_id: str
    kind: Literal["run", "record"]
    schedule: str
    state: RunState | RecordKind
    why: Sentence
    code: Code | None
    at: At | None
    fired_by: Sentence | None
    waited_ms: int | None
    refs: Refs


def why_job(
    ports: Ports,
    job: Job,
    queues: Queues | None = None,
    searches: bool = True,
    parsed: facts.Parsed | None = None,
) -> WhyJobView:
    """Why a job has not run yet and what would make it run, from a decision on the present facts. With ``searches``, it
    also says which upstream run has failed, which takes a search among the runs of that workflow."""
    now = ports.clock.now()
    known = facts.read(ports, job, parsed)
    decision = check.decide(job, known, now)
    verdict = check.verdict_of(job, known.schedule, now) if known.schedule else None
    lacks = verdict is not None and not verdict.met
    queue = (queues or Queues(ports)).of(job)
    before = _attempt_before(ports, job)
    why = decision.why if before is None else _after(before, decision.why)
    if searches:
        why = joined([why, *_searched(ports, job, known, lacks, now)])
    asks = known.asks(job.schedule.partition(".")[0])
    view: WhyJobView = {
        "job_id": job.job_id,
        "schedule": job.schedule,
        "state": job.state,
        "decision": type(decision).__name__.lower(),
        "why": with_place(why, queue),
        "code": decision.why.code,
        "queue": queue,
        "fired_by": before.fired_by if before is not None else None,
        "arrived": list(verdict.arrived) if verdict else [],
        "missing": list(verdict.missing) if verdict and lacks else [],
        "since": iso(job.created_at),
        "correlation": rounds.without(job.correlation),
        "wakes": _wakes(job, known, lacks, decision, now),
        "constraints": _constraints(job, known, now),
        "tree": _tree_of(job, known.schedule, verdict, now),
        "limits": limits.use_by_job(ports, job, known, asks, now),
        "count": job.waiting,
        "refs": refs.NONE,
    }
    view["refs"] = refs.of(view, refs.of_job(job, known.schedule, asks))
    return view


def _read_ahead(ports: Ports, jobs: Sequence[Job]) -> Ports:
    """The ports that know what a decision about each of these jobs of one schedule reads, a hundred rows per call. Each
    limit, and the manifests of each dataset, are read once, however many of the jobs wait for them."""
    if not jobs:
        return ports
    wanted: list[Key] = [kinds.key(ScheduleState, jobs[0].schedule)]
    wanted += [kinds.key(Run, job.job_id, job.attempt) for job in jobs]
    wanted += [kinds.key(Run, job.job_id, job.attempt - 1) for job in jobs if job.traits.retries]
    wanted += [kinds.key(Record, job.job_id) for job in jobs if job.traits.leaves_record]
    known = ports.prefetch.read(ports, wanted)
    jobs_once: Any = _Once(known.jobs, "limit_state")
    catalog_once: Any = _Once(known.catalog, "manifests")
    return replace(known, jobs=jobs_once, catalog=catalog_once)


class _Once:
    """Reads of a table, of which one kind is made at most once for the same arguments."""

    def __init__(self, table: Any, read: str) -> None:
        self._table = table
        setattr(self, read, cache(getattr(table, read)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def _tree_of(
    job: Job, schedule: Schedule | None, verdict: tree.Verdict | None, now: Instant
) -> PartOfTriggerView | None:
    """The trigger of a job that gathers or has gathered events, part by part; None for any other job. A locked match
    stays met, so its root is shown as met even if a part is not."""
    if schedule is None or not job.traits.of_events or job.element is not None:
        return None
    root = tree.evaluate(schedule.trigger, job.leaves, now)
    return _part(replace(root, met=True) if verdict is None or verdict.met else root)


def _part(part: tree.Verdict) -> PartOfTriggerView:
    """A part of a trigger. Only its leaves show what has arrived and is missing."""
    phrases: dict[str, list[str]] = {"arrived": [], "missing": []} if part.leaf is None else {}
    lacks = list(parts.lacks(part.parts)) if part.parts is not None else []
    return shown(PartOfTriggerView, part, lacks=lacks, children=[_part(child) for child in part.children], **phrases)


def _attempt_before(ports: Ports, job: Job) -> Run | None:
    """The attempt that a retry follows, with its error; None for any other job, whose decision says what fires it."""
    before = ports.rows.get(Run, job.job_id, job.attempt - 1) if job.traits.retries else None
    return failures.with_reason(ports, before) if before is not None else None


def _after(before: Run, why: Why) -> Why:
    """Why a retry waits, after which attempt failed, and why."""
    failed = joined([f"attempt {before.attempt} of {before.attempts} failed", before.reason], ": ")
    return Why.of(why.code, failed, f"; attempt {before.attempt + 1}: ", why)


def why_schedule(ports: Ports, name: str, limit: int = 100) -> WhyScheduleView:
    """Why a schedule has not run: its state, the events that it waits for, and its waiting jobs. ``ended`` is the last
    work that never ran or was cancelled."""
    return why_and_count(ports, name, limit, limit)[0]


MAX_NAMED = 3  # waiting jobs whose reasons are in the sentence about a schedule


def why_and_count(
    ports: Ports,
    name: str,
    limit: int,
    explained: int = MAX_NAMED,
    searches: bool = True,
    parsed: facts.Parsed | None = None,
    newest: Sequence[Run] | None = None,
) -> tuple[WhyScheduleView, int, bool]:
    """The explanation of a schedule with its first ``explained`` waiting jobs. Then the number of those that wait among
    the first ``limit`` jobs, each event of a large fire counted, and whether it has more. ``searches`` is as for
    `why_job`. ``parsed`` is what explanations of other schedules have read in the same request, and ``newest`` the last
    runs, if the caller has read them."""
    schedule_state, schedule = lookup.existing(ports, name)
    now = ports.clock.now()
    present, more = _present(ports, schedule_state, limit, now)
    ahead, queues, parsed = _read_ahead(ports, present[:explained]), Queues(ports), parsed or facts.Parsed()
    waiting = [why_job(ahead, job, queues, searches, parsed) for job in present[:explained]]
    read = MAX_SEARCHED if schedule.keys and searches else MAX_RECENT
    recent = newest if newest is not None else ports.runs.runs("schedule", name, read, None).items
    # What failed in a DAG run, its nodes say.
    ended_runs = [] if ids.is_of_dag(name) and name.endswith(ids.DAG) else recent
    runs, failed = recent[:MAX_ENDED], last_failures.of_schedule(ports, ended_runs, bool(schedule.keys), searches)
    next_fire = _next_fire(ports, schedule_state, schedule, now)
    # Without searches only the sentence counts, and what waits says more than what has ended.
    ended, ran_at = _ended(ports, name, runs) if searches or not waiting else ([], "")
    stopped, wrong = why_of(schedule_state), _went_wrong(failed, recent, waiting)
    if schedule_state.mode != "enabled":
        reasons = [_not_enabled(schedule_state, _events(present)), *wrong, *_last_ended(ended, ran_at, waiting)]
    else:
        reasons = [*wrong, *_reasons(waiting[:MAX_NAMED])]
        reasons += [] if waiting else _nothing_waits(ports, name, schedule, runs, next_fire, searches)
        reasons += _last_ended(ended, ran_at, waiting)
        reasons += _of_definition(ports, name, schedule, waiting, searches)
    view: WhyScheduleView = {
        "schedule": name,
        "state": schedule_state.mode,
        "why": joined([stopped, *(reason for reason in reasons if reason != stopped)]),
        "next_fire": next_fire,
        **_holding(ahead, schedule_state, waiting, parsed if searches else None, now),
        "jobs": waiting,
        "ended": ended,
        "failures": failed,
        "tree": _part(tree.evaluate(schedule.trigger, {}, now)),
        "refs": refs.NONE,
    }
    of_jobs = (each for job in waiting for each in job["refs"].own)
    view["refs"] = refs.of(view, chain(refs.of_schedule(name, schedule), of_jobs))
    return view, _events(present), more


class _Holding(View):
    constraints: list[StateOfConstraintView]
    limits: list[UseOfLimitView]


def _holding(
    ports: Ports, state: ScheduleState, waiting: Sequence[WhyJobView], parsed: facts.Parsed | None, now: Instant
) -> _Holding:
    """The constraints and limits of the first waiting job; without one, those of a job that would begin now. They are
    left out without ``parsed``."""
    if waiting:
        return {"constraints": waiting[0]["constraints"], "limits": waiting[0]["limits"]}
    if parsed is None:
        return {"constraints": [], "limits": []}
    job = limits.begun_now(state, now)
    known = facts.read(ports, job, parsed)
    asks = known.asks(state.schedule.partition(".")[0])
    return {
        "constraints": _constraints(job, known, now),
        "limits": limits.use_by_job(ports, job, known, asks, now),
    }


def _present(ports: Ports, schedule_state: ScheduleState, limit: int, now: Instant) -> tuple[list[Job], bool]:
    """The jobs that wait among the first ``limit`` jobs of a schedule, and whether it has more."""
    page = ports.jobs.jobs(schedule_state.schedule, schedule_state.generation, limit, None)
    waiting = [job for job in page.items if not (job.closed or check.is_upcoming(job, now))]
    return waiting, page.cursor is not None


def _events(jobs: Iterable[Job]) -> int:
    """How many jobs wait, each event of a large fire counted."""
    return sum(job.waiting for job in jobs)


def _next_fire(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, now: Instant) -> str | None:
    timer = ports.rows.get(Timer, schedule_state.schedule) if schedule_state.mode in GATHERING_MODES else None
    upcoming = fire_upcoming.preview(schedule, now, 1, timer) if timer else []
    return iso(upcoming[0]) if upcoming else None


def _searched(ports: Ports, job: Job, known: Facts, lacks: bool, now: Instant) -> list[Why]:
    """What a search finds about what a job waits for."""
    found = _lacking(ports, job.schedule, known.schedule, job) if known.schedule is not None and lacks else []
    return [*found, plain(arrangers.words_of(ports, job))] if _waits_for_person(job, known, now) else found


def _lacking(ports: Ports, name: str, schedule: Schedule, job: Job | None) -> list[Why]:
    """What a search finds about what a trigger waits for, for a job or for a schedule without a waiting one."""
    own = job.correlation if job is not None else None
    if own is not None and schedule.per is not None:  # the folders of its partitions have other values than its period
        own = {key: own[key] for key in schedule.by}
    of_manifests = missing.manifests(ports, name, schedule, own)
    return [*missing.upstreams(ports, name, schedule, job, ports.clock.now()), *map(plain, of_manifests)]


def _last_ended(ended: Sequence[EndedWorkView], ran_at: str, waiting: Sequence[WhyJobView]) -> list[Why]:
    """The last work that never ran or was cut short, if no run was claimed since and nothing waits."""
    last = ended[0] if ended else None
    if last is None or last["at"] <= ran_at or waiting:
        return []
    return [plain(f"the last work was {str(last['kind']).lower()} at {last['at']}: ", last["reason"])]


def _of_definition(
    ports: Ports, name: str, schedule: Schedule, waiting: Sequence[WhyJobView], searches: bool
) -> list[Why]:
    """Why events may not reach an enabled schedule, or do not join, because of what its definition names."""
    texts = [*walls.unknown(schedule), *buckets.not_watched(ports, datasets_of(schedule))]
    strays = missing.unjoined([job["correlation"] for job in waiting]) if searches else []
    strays += missing.ignored(ports, name, schedule, ports.clock.now()) if searches else []
    elsewhere = stopped.upstreams(ports, name, schedule) if searches else []
    return [*elsewhere, *map(plain, texts), _not_granted(ports, name, schedule), *map(plain, strays)]


def _not_granted(ports: Ports, name: str, schedule: Schedule) -> Why:
    """Why events of other namespaces do not count for a schedule, if their grants are missing."""
    uses = (use for leaf in tree.leaves(schedule.trigger) for use in foreign.of_leaf(name, leaf.trigger))
    lacking = grants.used_of(ports, uses).missing
    return waiting_for(lacking) if lacking else NONE


def _reasons(waiting: Sequence[WhyJobView]) -> list[Why]:
    """The reasons of some jobs, each once. Jobs of one queue differ in their position: that of the first is shown."""
    first: dict[Why, Why] = {}
    for job in waiting:
        first.setdefault(job["why"].without("place"), job["why"])
    return list(first.values())


def _went_wrong(failed: Sequence[LastFailureView], recent: Sequence[Run], waiting: Sequence[WhyJobView]) -> list[Why]:
    """The failures in words, if nothing waits. They are among the first `MAX_RECENT` runs, so that each explanation of
    the schedule says the same, however many runs it has read."""
    known = {run.run_id for run in recent[:MAX_RECENT]}
    told = [each for each in failed if each["run_id"] in known]
    return [plain("nothing waits"), *last_failures.said(told)] if told and not waiting else []


def _nothing_waits(
    ports: Ports, name: str, schedule: Schedule, runs: Sequence[Run], next_fire: str | None, searches: bool
) -> list[Why]:
    """Why a schedule without a waiting job does not run: what has arrived has an active run, or nothing has arrived."""
    active = [run for run in runs if not states.is_terminal(run.state)]
    if active:
        last = active[0]
        more = f" and {len(active) - 1} more" if len(active) > 1 else ""
        moved = last.state_at if last.state != "STARTING" else None
        since = f"since {iso(moved if moved is not None else last.claimed_at)}"
        is_active = f"{more} is {last.state} {since}; nothing has arrived since"
        why = plain(last.fired_by, "; run ", mention("run", last.run_id), is_active)
    else:
        lacks = tree.nothing_came(schedule.trigger, bool(runs), next_fire)
        why = plain(f"{lacks}; trigger: {tree.describe(schedule.trigger)}")
    due = _absences(ports, schedule) if searches else []
    return [why, *due, *(_lacking(ports, name, schedule, None) if searches else [])]


def _absences(ports: Ports, schedule: Schedule) -> list[Why]:
    """When leaves about the partition of a period are due next, and what keeps them from firing."""
    found, now = [], ports.clock.now()
    for leaf in (each.trigger for each in tree.timed_leaves(schedule.trigger) if each.trigger.correlates):
        [dataset], due = leaf.periodic(), leaf.next_due(now, now)
        lacking = absences.missing(ports, leaf, due) if due is not None else None
        of = mention("dataset", dataset)
        if due is None or lacking is None:
            found.append(plain("absent never fires, because ", of, " has no periods"))
        elif lacking:
            texts = ["/".join(f"{key}={value}" for key, value in each.items()) for each in lacking[: parts.NAMED]]
            unless, verb = parts.listed(texts, len(lacking)), "arrive" if lacking[1:] else "arrives"
            found.append(plain(f"absent fires at {iso(due)} unless {unless} of ", of, f" {verb}"))
        else:
            found.append(plain("the partition of ", of, f" that is expected by {iso(due)} has come"))
    return found


def _ended(ports: Ports, schedule: str, runs: Sequence[Run]) -> tuple[list[EndedWorkView], str]:
    """The last work of a schedule that never ran, or whose run was aborted or cancelled, newest first. Also when its
    last other run was claimed, or an empty text."""
    records = ports.runs.records("schedule", schedule, MAX_ENDED, None).items
    cut = [run for run in runs if run.state in ("ABORTED", "CANCELLED")]
    never = [shown(EndedWorkView, record, at=iso(record.recorded_at)) for record in records]
    ended = [*never, *map(ended_view, cut)]
    ran_at = max((iso(run.claimed_at) for run in runs if run not in cut), default="")
    return sorted(ended, key=lambda view: str(view["at"]), reverse=True)[:MAX_ENDED], ran_at


def datasets_of(schedule: Schedule) -> list[str]:
    """The datasets that a schedule names."""
    named = store.named(schedule.model_dump(mode="json"))
    # The name of a dataset has two parts, that of a workflow three.
    return [name for name in named if name.count(".") == 1 and " " not in name]


def why_work(ports: Ports, run_id: str) -> WhyRunView:
    """Why a run is in its state; or what became of a job that ended without one. Raises ``not_found`` (404) with the
    reason why the job waits, if it still does."""
    attempts = lookup.attempts(ports, run_id)
    record = None if attempts else lookup.record_of(ports, run_id)
    if record is not None:
        return _with_refs(why_record(record))
    run = failures.with_reason(ports, attempts[-1] if attempts else lookup.find_run(ports, run_id)[-1])
    view, queue = why_run(run), Queues(ports).of(run)
    limit = refs.of_limit(run.queued_in) if run.queued_in is not None else ()
    view["why"] = with_place(view["why"], queue)
    return _with_refs(view, run.workflow, limit)


def _with_refs(view: WhyRunView, workflow: str = "", more: Iterable[Mention] = ()) -> WhyRunView:
    """The explanation of a run or a record with its references."""
    of_workflow = [Mention(f"workflow {workflow}", "workflow", workflow)] if workflow else []
    of_schedule = [Mention(view["schedule"], "schedule", view["schedule"])]
    view["refs"] = refs.of(view, chain(of_workflow, of_schedule, more))
    return view


def why_record(record: Record) -> WhyRunView:
    """What became of a job that never became a run, with the reason and the instant on record."""
    return shown(
        WhyRunView,
        record,
        run_id=record.id,
        kind="record",
        state=record.kind,
        why=record.reason,
        at=iso(record.recorded_at),
        fired_by=None,
        waited_ms=None if record.created_at is None else max(0, record.recorded_at - record.created_at),
        refs=refs.NONE,
    )


def why_run(run: Run) -> WhyRunView:
    """Why a run is in its state: the reason on its row, or a text for the state."""
    texts = {
        "STARTING": "its start was requested and is not confirmed yet"
        if run.calls
        else "its start is not requested yet",
        "RUNNING": "the target is running it",
        "SUCCEEDED": "the run succeeded" if run.sends is None else f"{run.events} events of its fire were sent",
    }
    return shown(
        WhyRunView,
        run,
        kind="run",
        at=iso_or_none(run.ended_at) if states.is_terminal(run.state) else None,
        why=run.reason or plain(texts.get(run.state, "no reason was recorded")),
        waited_ms=waited(run),
        refs=refs.NONE,
    )


def _constraints(job: Job, known: Facts, now: Instant) -> list[StateOfConstraintView]:
    """The state of each constraint, with the reason from the decision."""
    return [
        shown(
            StateOfConstraintView,
            condition,
            type=condition.constraint.type,
            **limits.use_by_constraint(condition.constraint, job, known, now),
        )
        for condition in _conditions(job, known, now)
    ]


def _conditions(job: Job, known: Facts, now: Instant) -> tuple[Condition, ...]:
    return check.conditions_of(job, known, known.schedule, now) if known.schedule else ()


def _not_enabled(schedule_state: ScheduleState, waiting: int) -> Why:
    """Why a schedule that is not enabled does not run, and what to do."""
    reason = f": {schedule_state.reason}" if schedule_state.reason else ""
    since, jobs = f"since {iso(schedule_state.mode_at)}{reason}", count_of(waiting, "job")
    match schedule_state.mode:
        case "hold" | "backlog":
            paused = f"the schedule has been paused ({schedule_state.mode}) {since}; {jobs} waiting"
            return Why.of("paused", f"{paused}: resume the schedule")
        case "drain":
            drains = f"the schedule has taken no new work {since}; {jobs} waiting: resume the schedule to take more"
            return Why.of("paused", drains)
        case "completed":
            return Why.of("schedule_ended", "all fires are done; enable the schedule to start again")
        case _:
            return Why.of("schedule_ended", f"the schedule is {schedule_state.mode}: enable it, or run it now")


def _waits_for_person(job: Job, known: Facts, now: Instant) -> bool:
    """Whether the job lacks an approval."""
    return any(item.constraint.by_person and not item.met for item in _conditions(job, known, now))


def _wakes(job: Job, known: Facts, lacks: bool, decision: check.Decision, now: Instant) -> str:
    """The events, permits and instants that make Sluice check the job again, in words. ``lacks``: its trigger is not
    met."""
    ways = _first_ways(job, known, lacks, now)
    if job.queued_in is not None:
        ways.append(f"a permit of {names.describe(job.queued_in)}")
    until = decision.until if isinstance(decision, check.Wait) else None
    if until is not None:
        deadline = timeout.deadline_of(job, known.schedule, known.schedule_state) if known.schedule else None
        ways.append(f"{'its timeout' if until == deadline else 'its time'} at {iso(until)}")
    return ", or ".join(ways) or "the next check"


def _first_ways(job: Job, known: Facts, lacks: bool, now: Instant) -> list[str]:
    if lacks:
        return ["the next event that its trigger waits for"]
    state = known.schedule_state
    stops = [f"the start of {stop.of.said}" for stop in marks_of(state)]
    if stops:
        return [" and ".join(stops)]
    if state is not None and state.mode in ("hold", "backlog"):
        return ["resuming the schedule"]
    if job.state == "PENDING_CONSTRAINTS" and known.schedule and known.schedule.awaits:
        return list(known.schedule.awaits)
    return ["an approval"] if _waits_for_person(job, known, now) else []
