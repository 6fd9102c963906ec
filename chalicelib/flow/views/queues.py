"""What holds waiting jobs, and their places in the queues of limits: one count for all views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from chalicelib.core.dags import rounds
from chalicelib.core.fires import bundles
from chalicelib.core.instants import iso, iso_or_none
from chalicelib.core.jobs import holds
from chalicelib.core.jobs.holds import Hold, HoldKind
from chalicelib.core.jobs.priority import waits_since
from chalicelib.core.limits import names, permits, pools
from chalicelib.core.limits.pools import Pool
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs.queued import waiter_of
from chalicelib.core.states import JobKind, JobState
from chalicelib.core.views import At, Code, ForMaybe, Sentence, View, shown
from chalicelib.core.why import Mention, Why
from chalicelib.flow import many
from chalicelib.flow.facts import Parsed
from chalicelib.flow.limits import queues
from chalicelib.flow.lookup import definitions_in
from chalicelib.flow.views.views import PartOfDagView, PlaceInFireView
from chalicelib.ports import Page, Ports

MAX_SHOWN = 20  # waiters of each queue in the view of a policy or pool
MAX_COUNTED = 1_000  # waiters that are read to find a position; behind them a job has none

Read = Callable[[int, str | None], Page[Job]]


class HoldView(View):
    """What a job waits for, in few kinds. ``name`` is that of a limit, a constraint, a schedule or a namespace, ``of``
    says the same in words, and ``changes_at`` is when time alone may end the wait."""

    kind: HoldKind
    name: str
    of: str
    changes_at: At | None


class PlaceInQueueView(View):
    """The queue in which a job waits. ``position`` is null behind a thousand others. ``more_urgent`` of those before it
    have a higher priority. It has waited ``since`` an instant."""

    of: str
    position: int | None
    waiting: int
    more_urgent: int
    since: At


class GivenApprovalView(ForMaybe):
    by: str
    at: At


class JobView(View):
    """A job that waits. ``queued_in`` is the limit in whose queue it stands, ``holds`` are its permits.
    ``inherited_priority`` names the priority and where it comes from. ``waits_for`` has at least one item: of several
    constraints that are not met, each, in the order of the schedule. ``count`` is how many events of a large ``fire``
    wait in the job; 1 for any other job. ``spread`` is for an event of a spread."""

    job_id: str
    schedule: str
    kind: JobKind
    state: JobState
    reason: Sentence
    code: Code | None
    created_at: At
    due_at: At | None
    nominal_at: At | None
    met_at: At | None
    wake_at: At | None
    queued_in: str | None
    holds: list[str]
    correlation: dict[str, str] | None
    dag: PartOfDagView | None
    attempt: int
    inherited_priority: Sentence | None
    approvals: list[GivenApprovalView]
    backfill: str | None
    progress: dict[str, int]
    requested_by: str | None
    waits_for: list[HoldView]
    queue: PlaceInQueueView | None
    count: int
    fire: str | None
    spread: PlaceInFireView | None


class WaiterView(View):
    """A job or run in a queue. ``attempt`` is that of a run that waits to be started again. ``count`` is how many
    events of a large fire it was made for; 1 for any other."""

    position: int
    job_id: str
    schedule: str
    attempt: int | None
    count: int


class PartOfQueueView(View):
    """What waits at one part of a limit, and the head of that queue."""

    of: str
    waiting: int
    queue: list[WaiterView]


class Queues:
    """The queues of limits, and what holds waiting jobs, during one request. Each queue is read at most once, however
    many of its jobs are shown, and the rows of their schedules a hundred per call, eventually consistent."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._known: dict[str, tuple[int, dict[Waiter, int]]] = {}
        self._parsed = Parsed()
        self._states: dict[str, ScheduleState | None] = {}

    def page(self, read: Read) -> Read:
        """The same read of a list, which also reads what the views of its jobs need."""

        def reading(limit: int, cursor: str | None) -> Page[Job]:
            page = read(limit, cursor)
            self._read_schedules(page.items)
            return page

        return reading

    def of(self, row: Job | Run) -> PlaceInQueueView | None:
        """The queue in which a job or run waits, how many wait there, and its position (None behind a thousand others).
        Also how many of those before it have a higher priority, and since when it has waited. None if it waits in
        none."""
        waiter = waiter_of(row)
        if waiter is None:
            return None
        waiting, positions = self._read(names.whole(waiter.limit_name))
        position = positions.get(waiter)
        waiting = max(waiting, position or 1)
        ahead = [other.rank for other, number in positions.items() if position is None or number < position]
        place = names.describe(waiter.limit_name), position, waiting
        return place_view(*place, row, ahead)

    def job(self, job: Job) -> JobView:
        """The view of a job, with what holds it and its place in its queue."""
        now = self._ports.clock.now()
        if holds.by_row(job, now) is None and job.schedule not in self._states:
            self._read_schedules([job])
        state = self._states.get(job.schedule)
        held = holds.holds_of(job, state, self._parsed.schedule(self._ports, state), now)
        return waiting_view(job, self.of(job), held)

    def _read_schedules(self, jobs: Iterable[Job]) -> None:
        """Read the schedules of those jobs whose own rows do not say what holds them."""
        now = self._ports.clock.now()
        unclear = {job.schedule for job in jobs if holds.by_row(job, now) is None}
        names = sorted(unclear - self._states.keys())
        known, states = many.states(self._ports, names, strong=False)
        known = many.versions(known, states, strong=False)
        self._states |= dict.fromkeys(names) | {state.schedule: state for state in states}
        for state in states:
            self._parsed.schedule(known, state)

    def _read(self, limit_name: str) -> tuple[int, dict[Waiter, int]]:
        """How many wait at a limit, and the positions of the first. Each event of a large fire has one."""
        if limit_name not in self._known:
            state = queues.state_of(self._ports, limit_name)
            waiters = queues.head_of(self._ports, state, MAX_COUNTED)
            before = accumulate((queues.events_among([waiter]) for waiter in waiters), initial=1)
            waiting = queues.events_among(waiters) + max(0, state.waiters - len(waiters))
            self._known[limit_name] = waiting, dict(zip(waiters, before, strict=False))
        return self._known[limit_name]


def place_view(of: str, position: int | None, waiting: int, row: Job | Run, ahead: Iterable[str]) -> PlaceInQueueView:
    """The place of a job or run in a queue. ``ahead`` are the ranks of those before it."""
    own = permits.priority_in(row.rank) if row.rank is not None else 9
    since = iso(waits_since(row) if isinstance(row, Job) else row.created_at)
    urgent = sum(permits.priority_in(rank) > own for rank in ahead)
    return {"of": of, "position": position, "waiting": waiting, "more_urgent": urgent, "since": since}


def waiting_view(job: Job, queue: PlaceInQueueView | None, held: Sequence[Hold]) -> JobView:
    """The view of a job that waits, from its place in its queue and what holds it."""
    return shown(
        JobView,
        job,
        reason=with_place(job.reason, queue),
        nominal_at=iso_or_none(job.nominal_at if job.nominal_at is not None else job.due_at),
        holds=list(job.held),
        correlation=rounds.without(job.correlation),
        dag=rounds.dag_view(job),
        inherited_priority=job.inherited or None,
        approvals=[{"for": key, "by": given["by"], "at": iso(given["at"])} for key, given in job.approved.items()],
        progress={leaf: gathered.count for leaf, gathered in job.leaves.items()},
        waits_for=[shown(HoldView, hold) for hold in held],
        queue=queue,
        count=job.waiting,
        fire=bundles.fire_of(job.job_id),
        spread=_spread(job),
    )


def _spread(job: Job) -> PlaceInFireView | None:
    """The place of a job among the events of its fire. The row of a single event does not say how many these are."""
    if job.is_bundle:
        return {"index": next(iter(bundles.numbers(job)), job.index), "count": bundles.Plan(*job.plan).events}
    return {"index": job.index, "count": None} if job.index or bundles.fire_of(job.job_id) is not None else None


def with_place(why: Why, queue: PlaceInQueueView | None) -> Why:
    """The reason why a job waits, with its place in its queue, if it is in one."""
    if queue is None:
        return why
    urgent = queue["more_urgent"]
    first = f"; {urgent} of higher priority go first, and it has waited since {queue['since']}" if urgent else ""
    place = "one" if queue["position"] is None else f"position {queue['position']}"
    return why.then(Mention(f"; {place} of {queue['waiting']} in its queue{first}", "place", queue["of"]))


def of_pool(ports: Ports, row: Definition) -> dict[str, Any]:
    """The use of a pool and its queues, in total and by share."""
    pool = Pool.model_validate(row.document)
    limit_names = list(pools.limits_of(row.name, pool))
    use = pools.use_of(row.name, pool, {name: ports.jobs.limit_state(name) for name in limit_names})
    for part, name in zip(use["parts"], limit_names, strict=True):
        part["queue"] = waiters_view(_head(ports, name, part["waiting"]))
    return use


def of_policy(ports: Ports, row: Definition) -> dict[str, Any]:
    """The queues of a policy. In one, jobs and runs wait for its next start. In the others, jobs wait for admission,
    because they also need permits of a pool, a group or an EMR application."""
    state = queues.state_of(ports, names.policy_limit(row.name))
    head = queues.head_of(ports, state, MAX_SHOWN) if state.waiters else []
    starts = queues.waiting(ports, state, MAX_COUNTED)
    found = [{"of": "the next start", "waiting": starts, "queue": waiters_view(head)}]
    for shared in dict.fromkeys((*_shared(ports, row.name, head), *state.admits)):
        admission = ports.jobs.limit_state(names.admission_limit(row.name, shared))
        if admission.waiters:
            shown = waiters_view(_head(ports, admission.limit_name, admission.waiters))
            of = f"admission, with permits of {names.describe(shared)}"
            found.append({"of": of, "waiting": admission.waiters, "queue": shown})
    waiting = sum(int(str(queue["waiting"])) for queue in found)
    next_at = max(state.head, ports.clock.now()) if waiting else None
    return {"waiting": waiting, "next_start_at": iso_or_none(next_at), "parts": found}


def _shared(ports: Ports, policy: str, head: Sequence[Waiter]) -> list[str]:
    """The limits with which jobs may need admission to a policy. They are those of the pools of its namespace, those of
    EMR applications, and those with which the first waiters were admitted."""
    found = [
        limit_name
        for row in definitions_in(ports, "pool", policy.partition(".")[0])
        for limit_name in pools.limits_of(row.name, Pool.model_validate(row.document))
    ]
    found += [names.application_limit(application) for application, _ in ports.settings.emr_run_limits]
    prefix = names.admission_limit(policy, "")
    for waiter in head:
        job = (
            None if waiter.run else ports.rows.get(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
        )
        found += [held.removeprefix(prefix) for held in (job.held if job else ()) if held.startswith(prefix)]
    return list(dict.fromkeys(found))


def _head(ports: Ports, limit_name: str, waiting: int) -> tuple[Waiter, ...]:
    return ports.jobs.head_of(limit_name, MAX_SHOWN) if waiting else ()


def waiters_view(waiters: Sequence[Waiter]) -> list[WaiterView]:
    """Waiters in the order in which they are served. Each event of a large fire has a position."""
    before = accumulate((queues.events_among([waiter]) for waiter in waiters), initial=1)
    return [
        shown(
            WaiterView,
            waiter,
            position=number,
            schedule=waiter.job_schedule,
            attempt=waiter.run[1] if waiter.run else None,
            count=queues.events_among([waiter]),
        )
        for number, waiter in zip(before, waiters, strict=False)
    ]
