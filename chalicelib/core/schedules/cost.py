"""What a change of a schedule does to its work in flight (L25): the jobs that it drops, the backfills that it ends, the
spans that begin again, and the fires that are prepared again. It is counted before the change is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import effect
from chalicelib.core.schedules.effect import Effect
from chalicelib.core.text import count_of
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf

SAID = 3  # names of each kind in a text
BOUNDS = ("due_time", "start", "end")  # fields of a time leaf that may be spans from the put
NAMES = {"run_now": "run-now", "retry": "retry", "redrive": "redrive", "backfill": "job of a backfill"}


@dataclass(frozen=True, slots=True)
class Cost:
    """``dropped`` counts the jobs to drop, each event of a fire as one; ``jobs`` are these jobs. ``backfills`` and
    ``dag_runs`` have the ids of those that end, ``spans`` the spans in words. ``prepared`` counts the fires that are
    deleted and prepared again. ``spread``: another spread begins with the next fire. ``more``: not everything was read,
    so the numbers are the least."""

    dropped: int = 0
    jobs: tuple[Job, ...] = ()
    backfills: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    prepared: int = 0
    dag_runs: tuple[str, ...] = ()
    more: bool = False
    spread: bool = False

    def plus(self, other: Cost) -> Cost:
        """The cost of both."""
        return Cost(
            self.dropped + other.dropped,
            self.jobs + other.jobs,
            self.backfills + other.backfills,
            self.spans + other.spans,
            self.prepared + other.prepared,
            self.dag_runs + other.dag_runs,
            self.more or other.more,
            self.spread or other.spread,
        )

    @property
    def text(self) -> str:
        """``drops 2 jobs (day=1, day=2), ends 1 backfill (b1)``; what nothing happens to is left out."""
        parts = [f"drops {self._count(self.dropped, 'job')}{_named(map(name_of, self.jobs))}"] if self.dropped else []
        parts += [f"ends {count_of(len(self.backfills), 'backfill')}{_named(self.backfills)}"] if self.backfills else []
        parts += [f"ends {self._count(len(self.dag_runs), 'DAG run')}{_named(self.dag_runs)}"] if self.dag_runs else []
        parts += [f"prepares {self._count(self.prepared, 'fire')} again"] if self.prepared else []
        parts += [f"begins again: {'; '.join(self.spans)}"] if self.spans else []
        parts = parts or ["may drop what waits: it was not counted" if self.more else "drops nothing"]
        return ", ".join([*parts, *(["the new spread begins with the next fire"] if self.spread else [])])

    def _count(self, number: int, noun: str) -> str:
        return f"{'at least ' if self.more else ''}{count_of(number, noun)}"


NOTHING = Cost()


def reads_jobs(change: Effect, old: Schedule, new: Schedule | None) -> bool:
    """Whether the waiting jobs of the schedule decide what a change costs. ``new`` is None for a deletion."""
    return not change.keeps_jobs or (new is not None and _loses_fires(old, new))


def of_change(
    change: Effect,
    state: ScheduleState,
    old: Schedule,
    new: Schedule | None,
    jobs: Sequence[Job],
    running: Sequence[Backfill],
    now: Instant,
) -> Cost:
    """The cost of a change at ``now``. ``jobs`` are the waiting jobs of the present generation, and ``running`` the
    backfills that run; both may be empty unless `reads_jobs`."""
    dropped, prepared, gone = 0, 0, list[Job]()
    for job in jobs:
        if job.closed or job.traits.replays:
            continue  # the backfill says what becomes of its jobs
        lost, again = _events(change, state, new, job, now)
        dropped, prepared = dropped + lost, prepared + again
        gone += [job] if lost else []
    ends = not change.keeps_jobs and (new is None or not effect.acts_alike(old, new))
    backfills = tuple(row.id for row in running) if ends else ()
    spans = _spans(old, new) if change.code == "begins_again" and new is not None else ()
    return Cost(dropped, tuple(gone), backfills, spans, prepared)


def name_of(job: Job) -> str:
    """A waiting job as users know it: by its partition, the instant of its fire, or its kind."""
    if job.correlation:
        return ", ".join(f"{key}={value}" for key, value in job.correlation.items())
    if job.traits.timed:
        return f"the fire of {iso(fire.nominal_of(job))}"
    return NAMES.get(job.kind, f"what has gathered since {iso(job.created_at)}")


def _events(
    change: Effect, state: ScheduleState, new: Schedule | None, job: Job, now: Instant
) -> tuple[int, int]:  # fmt: skip
    """How many events of a job are dropped, and how many are prepared again."""
    if new is None or not job.traits.timed:
        return (0 if change.keeps_jobs else job.waiting), 0
    events, numbers = fire.shape(new).events, bundles.numbers(job) if job.is_bundle else [job.index]
    wanted = numbers if fire_timer.after_end(job, new) is None else []
    if change.keeps_jobs:
        return len(numbers) - len(wanted), 0
    goes_on = change.keeps_trigger and not fire.is_left(job, new, state)
    if goes_on and wanted and fire.nominal_of(job) > now:  # a fire that has not come has the new number of events
        numbers = [number for number in numbers if number < events]
    later = [number for number in wanted if goes_on and number < events and _due(job, number) > now]
    return len(numbers) - len(later), len(later)


def _due(job: Job, number: int) -> Instant:
    return bundles.due(job, number) if job.is_bundle else job.due_at or 0


def _loses_fires(old: Schedule, new: Schedule) -> bool:
    """Whether prepared fires may have no place in a new definition with the same trigger."""
    return new.ends_at is not None and (old.ends_at is None or new.ends_at < old.ends_at)


def _spans(old: Schedule, new: Schedule) -> tuple[str, ...]:
    """The spans that counted from the former put, and count from this one now."""
    before = {leaf.id: leaf.trigger for leaf in tree.timed_leaves(old.trigger)}
    found = [_span(before.get(leaf.id), leaf.trigger) for leaf in tree.timed_leaves(new.trigger)]
    if old.ttl is not None and new.ttl is not None and old.ttl != new.ttl:
        found.append(f"the ttl, which ended at {old.ttl} and ends at {new.ttl} now")
    return tuple(filter(None, found))


def _span(old: TimedLeaf | None, new: TimedLeaf) -> str:
    if old is None:
        return ""
    if old.counts_from_put and new.counts_from_put:
        return new.describe()
    moved = old != new and {**old.model_dump(), **dict.fromkeys(BOUNDS)} == {
        **new.model_dump(),
        **dict.fromkeys(BOUNDS),
    }
    return f"{new.describe()}, so far {old.describe()}" if moved else ""


def _named(names: Sequence[str] | map[str]) -> str:
    """Some names in brackets behind their number, each once: the events of a fire have one."""
    found = list(dict.fromkeys(names))
    more = ", ..." if len(found) > SAID else ""
    return f" ({', '.join(found[:SAID])}{more})" if found else ""
