"""What waits in a namespace, by what holds it, what runs, what is overdue, and which schedules failures have paused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chalicelib.core.instants import Instant, iso, iso_or_none
from chalicelib.core.jobs import holds
from chalicelib.core.jobs.check import is_upcoming
from chalicelib.core.jobs.holds import Hold
from chalicelib.core.jobs.timeout import due_by
from chalicelib.core.limits import names
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import Mode, RunState
from chalicelib.core.views import At, Sentence, View, shown
from chalicelib.core.why import Why, joined, plain
from chalicelib.flow import many
from chalicelib.flow.facts import Parsed
from chalicelib.flow.limits import queues
from chalicelib.flow.schedules.stops import StopView, of_namespace, view_of
from chalicelib.flow.views import lists
from chalicelib.flow.views.chosen import Chooser
from chalicelib.flow.views.queues import HoldView, JobView, place_view, waiting_view
from chalicelib.ports import Ports, Soonest

MAX_ROWS = 2_000  # jobs, and runs, that one request reads at most
MAX_SHOWN = 20  # runs, paused schedules, and schedules with overdue work or approvals
MAX_JOBS = 5  # of each group
MAX_QUEUED = 1_000  # rows of the queue of a policy, whose events are counted
MAX_CHOSEN = 200  # the first jobs of a queue, of which a request with a filter chooses
MAX_GROUPS = 100  # the largest ones
BY = "sluice"  # who paused a schedule whose runs failed in a row


class HeldJobsView(HoldView):
    """The jobs that one thing holds. ``why`` is the reason of the first of ``jobs``, and ``changes_at`` the first
    instant at which one of them is checked again. ``count`` counts each event of a large fire."""

    why: Sentence
    count: int
    oldest: At
    jobs: list[JobView]


class CountView(View):
    count: int
    at_least: bool


class WaitingNowView(CountView):
    """The waiting jobs, of all groups; the list has the largest hundred groups."""

    groups: list[HeldJobsView]
    groups_left_out: int


class ApprovalsOfView(View):
    """The jobs of a schedule that wait for an approval. ``late`` have not started by their deadlines. ``jobs`` has the
    oldest."""

    schedule: str
    count: int
    late: int
    oldest: At
    jobs: list[JobView]


class ApprovalsNowView(CountView):
    """The jobs that wait for an approval, by schedule, the longest wait first."""

    schedules: list[ApprovalsOfView]


class RunInShortView(View):
    run_id: str
    attempt: int
    schedule: str
    workflow: str
    state: RunState
    claimed_at: At
    started_at: At | None
    end_by: At | None


class RunningNowView(CountView):
    """The runs in progress; the list has the oldest."""

    runs: list[RunInShortView]


class OverdueWorkView(View):
    """Jobs of a schedule that have not started, or runs that have not ended, by their deadlines. All but ``count`` is
    of the one with the earliest deadline. It goes on by itself at ``goes_on_at``; None if that depends on more than a
    clock."""

    id: str
    kind: Literal["job", "run"]
    schedule: str
    why: Sentence
    by: At
    count: int
    goes_on_at: At | None


class OverdueNowView(CountView):
    """The late work, by schedule, without the jobs that wait for an approval. ``going_on`` of it only waits for a
    clock."""

    going_on: int
    items: list[OverdueWorkView]


class PausedScheduleView(View):
    schedule: str
    state: Mode
    since: At
    reason: str
    by: str


class PausedNowView(CountView):
    """The schedules that Sluice has paused because their runs failed in a row."""

    schedules: list[PausedScheduleView]


class NowView(View):
    """The present of a namespace. With ``at_least`` a bound was reached: counts are lower bounds."""

    at: At
    at_least: bool
    waiting: WaitingNowView
    approvals: ApprovalsNowView
    running: RunningNowView
    overdue: OverdueNowView
    paused: PausedNowView
    stopped: list[StopView]


@dataclass(slots=True)
class Group:
    """The jobs that one thing holds, each with all that holds it. ``count`` counts each event of a large fire."""

    hold: Hold
    jobs: list[Job] = field(default_factory=list)
    count: int = 0
    holds: dict[str, tuple[Hold, ...]] = field(default_factory=dict)

    def holds_of(self, job: Job) -> tuple[Hold, ...]:
        """All that holds a job of the group. One that was read from a queue has not been asked about."""
        return self.holds.get(job.job_id, (self.hold,))

    @property
    def oldest(self) -> Job:
        return min(self.jobs, key=lambda job: job.created_at)

    @property
    def changes_at(self) -> Instant | None:
        found = (job.wake_at if job.queued_in is None else None for job in self.jobs)
        return min((at for at in (self.hold.changes_at, *found) if at is not None), default=None)


Groups = dict[tuple[str, str, str], Group]  # by the kind, name and words of what holds their jobs


def now_of(ports: Ports, namespace: str, most: int = MAX_ROWS, only: Chooser | None = None) -> NowView:
    """The present of a namespace, or the part of it that ``only`` chooses. It reads at most ``most`` jobs and as many
    runs, however many there are; then ``at_least`` is true. All reads are eventually consistent, as the indexes are
    that name the rows."""
    now = ports.clock.now()
    keys = most if most < MAX_ROWS else lists.MAX_KEYS
    waking = ports.wakes.soonest("jobs", 0, lists.EVER, keys)
    jobs, more_jobs = _jobs(ports, namespace, waking, now, most)
    jobs = jobs if only is None else only.kept(jobs)
    known, parsed = _definitions(ports, jobs)
    groups = _groups(known, parsed, jobs, now)
    more = _queues(ports, namespace, waking, groups, only)
    runs, more_runs = lists.active_runs(ports, namespace, most, keys, strong=False)
    runs = runs if only is None else only.kept(runs)
    ordered = sorted(groups.values(), key=lambda group: (-group.count, group.oldest.created_at))
    late = [*_late_jobs(known, parsed, jobs, now), *_late_runs(runs, now)]
    asked = _asked(ordered)
    stopped = map(view_of, of_namespace(ports, namespace))
    return {
        "at": iso(now),
        "at_least": more_jobs or more_runs or more,
        "waiting": {
            "count": sum(group.count for group in ordered),
            "at_least": more_jobs or more,
            "groups": [_group_view(group, now) for group in ordered[:MAX_GROUPS]],
            "groups_left_out": len(ordered[MAX_GROUPS:]),
        },
        "approvals": _approvals(asked, {one.id for one in late}, more_jobs),
        "running": {
            "count": len(runs),
            "at_least": more_runs,
            "runs": [shown(RunInShortView, run) for run in sorted(runs, key=lambda run: run.claimed_at)[:MAX_SHOWN]],
        },
        "overdue": _overdue([one for one in late if one.id not in asked], groups, more_jobs or more_runs),
        "paused": _paused(ports, namespace, only),
        "stopped": [stop for stop in stopped if only is None or only.is_of(stop["app"])],
    }


def _jobs(ports: Ports, namespace: str, waking: Soonest, now: Instant, most: int) -> tuple[list[Job], bool]:
    """The waiting jobs without a queue, or with a deadline: from the list of the namespace and the wake index. Prepared
    fires that are not due yet are left out: they are upcoming, and wait for nothing."""
    listed = ports.wakes.listed("waits", namespace, most, None)
    refs = dict.fromkeys([*listed.items, *(ref for ref, _ in waking.refs)])
    wanted = [ref for ref in refs if ref.kind == "job" and lists.is_shown(ref.parts[0], namespace)]
    found = lists.of_refs(ports, wanted[:most])
    jobs = [job for job in found if not is_upcoming(job, now)]
    more = listed.cursor is not None or waking.complete_to is not None or len(wanted) > most
    return jobs, more


def _definitions(ports: Ports, jobs: Sequence[Job]) -> tuple[Ports, Parsed]:
    """The ports that know the state, the definition and the workflow of the schedule of each job that needs them."""
    schedules = sorted({job.schedule for job in jobs if not _only_gathers(job)})
    known, states = many.states(ports, schedules, strong=False)
    known = many.versions(known, states, strong=False)
    parsed = Parsed()
    found = (parsed.schedule(known, state) for state in states)
    workflows = {schedule.workflow for schedule in found if schedule is not None}
    return known.prefetch.read(
        known, [kinds.key(Definition, "workflow", name) for name in sorted(workflows)], strong=False
    ), parsed


def _only_gathers(job: Job) -> bool:
    """Whether a job waits for its trigger and has no instant from which a deadline counts: its row says all."""
    return job.state == "PENDING_TRIGGER" and all(
        of is None for of in (job.accepted_at, job.nominal_at, job.due_at, job.event, job.rerun_of)
    )


def _groups(ports: Ports, parsed: Parsed, jobs: Iterable[Job], now: Instant) -> Groups:
    groups: Groups = {}
    for job in jobs:
        state = ports.rows.get(ScheduleState, job.schedule) if not _only_gathers(job) else None
        held = holds.holds_of(job, state, parsed.schedule(ports, state), now)
        group = groups.setdefault((held[0].kind, held[0].name, held[0].of), Group(held[0]))
        group.jobs.append(job)
        group.holds[job.job_id] = held
        group.count += job.waiting
    return groups


def _queues(ports: Ports, namespace: str, waking: Soonest, groups: Groups, only: Chooser | None) -> bool:
    """Give each limit at which jobs of a namespace queue a group with the first jobs of its queue. Its count is that of
    the limit. Returns whether limits, or jobs at the limits of all namespaces, were left out."""
    limit_names, more = lists.limits_among(waking, namespace)
    counted: dict[str, int] = {}  # a queue in parts has a row for each
    for state in ports.jobs.limit_states(limit_names):
        if state.waiters:
            if only is None:
                more |= _add_queue(ports, namespace, state, groups, counted)
            else:
                more |= _add_chosen(ports, namespace, state, groups, only)
    return more


def _add_queue(ports: Ports, namespace: str, state: LimitState, groups: Groups, counted: dict[str, int]) -> bool:
    """Add the first jobs of a queue to the group of its limit. Returns whether jobs at a limit of all namespaces may
    have been left out."""
    own = state.limit_name.partition(":")[2].startswith(f"{namespace}.")
    head = ports.jobs.queue(state.limit_name, MAX_JOBS if own else MAX_SHOWN, None).items
    jobs = [job for job in lists.of_waiters(ports, head) if lists.is_shown(job.schedule, namespace)]
    if not jobs:
        return not own and state.waiters > len(head)
    of = names.describe(state.limit_name)
    name = names.whole(state.limit_name)
    group = groups.setdefault(("limit", name, of), Group(Hold("limit", name, of)))
    first = {job.job_id for job in jobs}
    group.jobs = [*jobs, *(job for job in group.jobs if job.job_id not in first)]
    counted[name] = counted.get(name, 0) + queues.waiting(ports, state, MAX_QUEUED)
    group.count = counted[name] if own else max(group.count, sum(job.waiting for job in jobs))
    return not own and state.waiters > group.count


def _add_chosen(ports: Ports, namespace: str, state: LimitState, groups: Groups, only: Chooser) -> bool:
    """Add the chosen ones among the first jobs of a queue to the group of its limit. Returns whether jobs were left
    unread."""
    head = ports.jobs.queue(state.limit_name, MAX_CHOSEN, None).items
    jobs = only.kept([job for job in lists.of_waiters(ports, head) if lists.is_shown(job.schedule, namespace)])
    name, of = names.whole(state.limit_name), names.describe(state.limit_name)
    group = groups.get(("limit", name, of), Group(Hold("limit", name, of)))
    known = {job.job_id for job in group.jobs}
    group.jobs += [job for job in jobs if job.job_id not in known]
    group.count = sum(job.waiting for job in group.jobs)
    if group.jobs:
        groups["limit", name, of] = group
    return state.waiters > len(head)


@dataclass(frozen=True, slots=True)
class Late:
    """A job that has not started, or a run that has not ended, by its deadline. ``count``: its events."""

    row: Job | Run
    why: Why
    by: Instant
    count: int = 1

    @property
    def id(self) -> str:
        return self.row.job_id if isinstance(self.row, Job) else self.row.run_id

    @property
    def kind(self) -> Literal["job", "run"]:
        return "job" if isinstance(self.row, Job) else "run"


def _late_jobs(ports: Ports, parsed: Parsed, jobs: Iterable[Job], now: Instant) -> Iterator[Late]:
    """The jobs that have not started by their deadline, in the words of its notice."""
    for job in jobs:
        if _only_gathers(job):
            continue
        state = ports.rows.get(ScheduleState, job.schedule)
        schedule = parsed.schedule(ports, state)
        if schedule is None:
            continue
        start_by, _ = due_by(job, schedule, parsed.workflow(ports, schedule.workflow)[0])
        if start_by is not None and start_by < now:
            why = joined([f"not started by {iso(start_by)}", job.reason], ": ")
            yield Late(job, why, start_by, job.waiting)


def _late_runs(runs: Iterable[Run], now: Instant) -> Iterator[Late]:
    for run in runs:
        if run.end_by is not None and run.end_by < now:
            yield Late(run, plain(f"not ended by {iso(run.end_by)}: the run is {run.state}"), run.end_by)
        elif run.start_by is not None and run.start_by < now and run.start_requested_at is None:
            yield Late(run, plain(f"not started by {iso(run.start_by)}: the run is {run.state}"), run.start_by)


def _overdue(late: Iterable[Late], groups: Groups, more: bool) -> OverdueNowView:
    clocks = {job.job_id: _clock(group, job) for group in groups.values() for job in group.jobs}
    by_schedule: dict[tuple[str, str, bool], list[Late]] = {}
    for one in sorted(late, key=lambda one: one.by):
        key = (one.row.schedule, one.kind, clocks.get(one.id) is not None)
        by_schedule.setdefault(key, []).append(one)
    items: list[OverdueWorkView] = [
        {
            "id": own[0].id,
            "kind": own[0].kind,
            "schedule": own[0].row.schedule,
            "why": own[0].why,
            "by": iso(own[0].by),
            "count": sum(one.count for one in own),
            "goes_on_at": iso_or_none(clocks.get(own[0].id)),
        }
        for own in by_schedule.values()
    ]
    return {
        "count": sum(item["count"] for item in items),
        "at_least": more,
        "going_on": sum(item["count"] for item in items if item["goes_on_at"] is not None),
        "items": items[:MAX_SHOWN],
    }


def _clock(group: Group, job: Job) -> Instant | None:
    """When a job goes on by itself; None if more than a clock holds it."""
    held = group.holds_of(job)
    if not all(hold.kind in ("window", "clock") for hold in held):
        return None
    found = [hold.changes_at for hold in held]
    return None if None in found else max(at for at in found if at is not None)


def _paused(ports: Ports, namespace: str, only: Chooser | None) -> PausedNowView:
    """The schedules that Sluice has paused because their runs failed in a row."""
    page = ports.wakes.listed("paused", namespace, MAX_ROWS, None)
    _, found = many.states(ports, [ref.parts[0] for ref in page.items], strong=False)
    paused = [state for state in found if state.mode == "hold" and state.by == BY]
    if only is not None:
        wanted = only.schedules([state.schedule for state in paused])
        paused = [state for state in paused if state.schedule in wanted]
    paused.sort(key=lambda state: state.mode_at)
    views = [
        shown(PausedScheduleView, state, state=state.mode, since=iso(state.mode_at)) for state in paused[:MAX_SHOWN]
    ]
    return {"count": len(paused), "at_least": page.cursor is not None, "schedules": views}


Asked = dict[str, tuple[Job, tuple[Hold, ...]]]  # the jobs that wait for an approval, by their ids, the oldest first


def _asked(groups: Iterable[Group]) -> Asked:
    """The jobs among whose holds an approval is, each with its holds."""
    held = [(job, group.holds_of(job)) for group in groups for job in group.jobs]
    found = [(job, holds) for job, holds in held if any(hold.kind == "approval" for hold in holds)]
    return {job.job_id: (job, holds) for job, holds in sorted(found, key=lambda each: each[0].created_at)}


def _approvals(asked: Asked, late: Collection[str], more: bool) -> ApprovalsNowView:
    by_schedule: dict[str, list[tuple[Job, tuple[Hold, ...]]]] = {}
    for job, held in asked.values():
        by_schedule.setdefault(job.schedule, []).append((job, held))
    schedules: list[ApprovalsOfView] = [
        {
            "schedule": schedule,
            "count": len(own),
            "late": sum(job.job_id in late for job, _ in own),
            "oldest": iso(own[0][0].created_at),
            "jobs": [waiting_view(job, None, held) for job, held in own[:MAX_JOBS]],
        }
        for schedule, own in by_schedule.items()
    ]
    return {"count": len(asked), "at_least": more, "schedules": schedules[:MAX_SHOWN]}


def _group_view(group: Group, now: Instant) -> HeldJobsView:
    is_queue = group.hold.kind == "limit"
    shown = group.jobs[:MAX_JOBS] if is_queue else sorted(group.jobs, key=lambda job: job.created_at)[:MAX_JOBS]
    first = shown[0]
    ranks = [job.rank for job in shown if job.rank is not None]
    places = [
        place_view(group.hold.of, number, group.count, job, ranks[: number - 1]) if is_queue else None
        for number, job in enumerate(shown, 1)
    ]
    return {
        "kind": group.hold.kind,
        "name": group.hold.name,
        "of": group.hold.of,
        "why": holds.why(first, now),
        "count": group.count,
        "oldest": iso(group.oldest.created_at),
        "changes_at": iso_or_none(group.changes_at),
        "jobs": [waiting_view(job, place, group.holds_of(job)) for job, place in zip(shown, places, strict=True)],
    }
