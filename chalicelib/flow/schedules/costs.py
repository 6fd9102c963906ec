"""Count what a put or a deletion of schedules does to their work in flight, before it is made (L25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.instants import Instant
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.rows.stops import Stop
from chalicelib.core.schedules import cost
from chalicelib.core.schedules.cost import NOTHING, Cost
from chalicelib.core.schedules.effect import Code, Effect
from chalicelib.core.states import GATHERING_MODES, JobKind
from chalicelib.core.views import View, shown
from chalicelib.flow import lookup
from chalicelib.flow.schedules.over import Found
from chalicelib.flow.schedules.stops import StopView, view_of
from chalicelib.ports import Ports

MAX_JOBS = 1_000  # waiting jobs of a schedule that are counted
MAX_COUNTED = 100  # schedules of a deployment whose waiting jobs are counted
MAX_NAMED = 20  # jobs that a view names


class DroppedJobView(View):
    """A job that is dropped. ``name`` is its partition, or the instant of its fire, in words."""

    job_id: str
    kind: JobKind
    name: str


class EffectOfPutView(View):
    """What a put or a deletion does to the trigger and the work in flight of a schedule. ``text`` says the same in
    words. ``dropped`` counts the waiting jobs to drop, and ``jobs`` has the first 20. ``backfills`` and ``dag_runs``
    end, ``spans`` begin again. ``prepared`` fires are deleted and prepared again. ``more``: not all of it was counted.
    ``stops`` are those that cover a new schedule, so nothing of it starts."""

    code: Code
    text: str
    dropped: int
    jobs: list[DroppedJobView]
    backfills: list[str]
    spans: list[str]
    prepared: int
    dag_runs: list[str]
    more: bool
    stops: list[StopView]


@dataclass(slots=True)
class Costs:
    """The costs of the changes of one request. The jobs of the first `MAX_COUNTED` schedules are counted."""

    ports: Ports
    left: int = MAX_COUNTED

    def of_put(self, found: Found, enabled: bool | None, carry: bool) -> EffectOfPutView:
        """The effect of a put that finds this."""
        change = found.effect(enabled, carry)
        if found.alive is None or found.old is None or found.is_same:
            return view(change)
        old, new = found.old.definition, found.new.definition
        total = self._of(change, found.alive, old, new, found.timer, found.now)
        return view(change, replace(total, spread=change.code == "carried" and old.spread != new.spread))

    def of_deletion(self, ports: Ports, names: Sequence[str], dag_runs: Sequence[str] = ()) -> EffectOfPutView:
        """The effect of the deletion of a schedule, or of all schedules of a DAG with its active ``dag_runs``.
        ``ports`` may have rows read ahead."""
        change, total = Effect("deleted", "deleted"), Cost(dag_runs=tuple(dag_runs))
        for name in names:
            state = ports.rows.get(ScheduleState, name)
            old = lookup.definition_of(ports, state)
            if state is not None and old is not None and state.exists:
                timer = lookup.timer_of(ports, state, old)
                total = total.plus(self._of(change, state, old, None, timer, ports.clock.now()))
        return view(change, total)

    def _of(
        self, change: Effect, state: ScheduleState, old: Schedule, new: Schedule | None, timer: Timer | None,
        now: Instant,
    ) -> Cost:  # fmt: skip
        if not cost.reads_jobs(change, old, new):
            return NOTHING
        if self.left <= 0:
            return Cost(more=True)
        self.left -= 1
        read = lookup.every(partial(self.ports.jobs.jobs, state.schedule, state.generation), MAX_JOBS)
        jobs = list(islice(read, MAX_JOBS + 1))
        running = [row for row in self.ports.jobs.backfills(state.schedule) if row.state == "RUNNING"]
        found = cost.of_change(change, state, old, new, jobs[:MAX_JOBS], running, now)
        rest = None
        if timer is not None and timer.generation == state.generation and state.mode in GATHERING_MODES:
            left = fire.beside(timer, jobs)
            if not change.keeps_trigger:
                rest = fire.unprepared(left, old, now)
            elif new is not None:
                rest = fire.removed(left, old, new, now, change.keeps_jobs)
        more = len(jobs) > MAX_JOBS or (rest is not None and not rest.exact)
        return replace(found, dropped=found.dropped + (rest.events if rest is not None else 0), more=more)


def view(change: Effect, total: Cost = NOTHING, stops: Sequence[Stop] = ()) -> EffectOfPutView:
    """An effect with its cost, and with the stops that cover a new schedule, as an answer shows it."""
    stopped = "".join(f"; starts nothing, because {stop.of.said} is stopped" for stop in stops)
    return EffectOfPutView(
        code=change.code,
        text=f"{change.text}{stopped or f'; {total.text}'}",
        dropped=total.dropped,
        jobs=[shown(DroppedJobView, job, name=cost.name_of(job)) for job in total.jobs[:MAX_NAMED]],
        backfills=list(total.backfills),
        spans=list(total.spans),
        prepared=total.prepared,
        dag_runs=list(total.dag_runs),
        more=total.more,
        stops=[view_of(stop) for stop in stops],
    )
