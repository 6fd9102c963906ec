"""Emit: write the fires of timers ahead of their instants, and hint them for these instants.

A shard with many due timers is handed on, part by part, to other invocations; the tick handles few timers itself.
Timers are handled a hundred at a time. They need one read for their rows, one batch for all fires, and one message for
the hints of an instant. The timers of a failed batch, and a timer with more fires than one portion, go through
`emit_timer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import bundles, fire, lifetime
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import plain
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.ref import Ref, ShardPart, by_instant, crowd_of, fires_ref, ref_of
from chalicelib.core.rows.run import Fire, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.schedules import timer_step
from chalicelib.core.schedules.timer_step import TimerStep
from chalicelib.core.system import bursts
from chalicelib.core.writes import MAX_WRITES, Put
from chalicelib.flow import lookup, shards
from chalicelib.flow.each import run_each
from chalicelib.flow.limits import policies
from chalicelib.log import logger
from chalicelib.ports import Page, Ports, every_page

# How long one invocation handles timers. It leaves those that are due last to the next one. Fires are prepared more
# than a minute ahead, so that delay makes none late.
MAX_ROUND: Millis = 40 * SECOND
TIME_FOR_ROUND: Millis = 10 * SECOND  # needed for a batch of timers
# How many portions of one timer are prepared at once. The timer is hinted for the rest, so another Lambda continues.
MAX_PORTIONS = 10
BATCH_SIZE = 100  # timers that are read together
# How many timers of a part that was handed on are moved in one transaction, with the other writes of their plans. That
# costs one more write unit per timer but saves calls: such a part is short of time, not of units.
MAX_MOVES = 25
# Hints are collected over the timers of a tick, so that one message carries many refs of one instant. They are sent
# when they are many, or when their instant is near: preparing many fires takes seconds.
MAX_KEPT, SOON = 5_000, bursts.LONGEST_LEAD
# Timers of a shard that are due at one instant are read ahead, so that their messages suit the size of the burst.
MAX_READ_AHEAD = 12_500
# A tick finds the timers of a minute. Over so much of that minute their preparation is spread, first the nearest. What
# is left is for the next tick, which must not find them unprepared.
SPREAD_OVER: Millis = 55 * SECOND


@dataclass
class Hints:
    """Collects the hints of a tick and sends them by instant. ``crowd`` as in `ports.Hints`."""

    ports: Ports
    crowd: int = 0
    kept: list[tuple[Ref, Instant]] = field(default_factory=list)

    def keep(self, steps: Iterable[TimerStep], now: Instant) -> None:
        for step in steps:
            self.kept += [(ref_of(fire), fire.due_at or now) for fire in step.fires]
            if step.again is not None and step.again <= now + self.ports.settings.horizon_seconds * SECOND:
                self.kept.append((kinds.ref(Timer, step.schedule), max(step.again, now)))
        now = self.ports.clock.now()
        if len(self.kept) >= MAX_KEPT:
            self.flush(now, patient=True)
        soon = [hint for hint in self.kept if hint[1] <= now + SOON]
        if soon:
            self.kept = [hint for hint in self.kept if hint[1] > now + SOON]
            self._send(soon, now)

    def flush(self, now: Instant, patient: bool = False) -> None:
        """Send the collected hints. ``patient``: no caller waits, so a send may be delayed for a better moment."""
        kept, self.kept = self.kept, []
        self._send(kept, now, patient)

    def _send(self, hints: list[tuple[Ref, Instant]], now: Instant, patient: bool = False) -> None:
        """Send one hint per due instant, because the receiver of a hint waits for a single instant."""
        if hints:
            self.ports.hints.send_all(by_instant(hints), now, patient=patient, crowd=self.crowd)


def emit_due(ports: Ports) -> int:
    """Prepare the fires of all timers due before the horizon, or hand them on. Concurrent emitters do no harm (E1).

    Returns how many timers were handled here. The shards with few due rows are handled at once, up to `PAGE` rows. Each
    other one is handed on to an invocation of its own. One failure does not stop the other timers; the errors are
    raised at the end.
    """
    now = ports.clock.now()
    horizon = now + ports.settings.horizon_seconds * SECOND
    pages = [
        (ShardPart("catalog", shard, horizon), ports.wakes.due("catalog", shard, horizon, shards.PAGE, None))
        for shard in range(ports.settings.wake_shards)
    ]
    here: list[tuple[Ref, Instant]] = []
    away: list[tuple[ShardPart, Page[tuple[Ref, Instant]]]] = []
    for part, page in sorted(pages, key=lambda found: len(found[1].items)):
        if page.cursor is None and len(here) + len(page.items) <= shards.PAGE:
            here += page.items
        else:
            away.append((part, page))
    many = bool(away) and not shards.hand_on(ports, [part for part, _ in away])
    if many:  # the queue is down: this invocation does what it can
        here += [row for _, page in away for row in page.items]
    timers = [ref for ref, _ in sorted(here, key=lambda row: row[1]) if ref.kind == "timer"]
    return _emit_all(ports, timers, now, horizon, many)


def split(ports: Ports, part: ShardPart) -> tuple[Ref, ...]:
    """Hint the timers of a part of a shard that the tick handed on. Each message gets an invocation of its own, so
    several invocations prepare the fires at once. Returns the refs of the rows that are no timers.

    A repeated message finds its timers moved, and does nothing. The next tick finds the timers of a lost message. If
    the time is used up, the rest of the shard is handed on.
    """
    now, others = ports.clock.now(), list[Ref]()
    division = _Division(ports)
    for page in every_page(partial(ports.wakes.due, "catalog", part.shard, part.until), shards.PAGE, part.cursor):
        others += [ref for ref, _ in page.items if ref.kind != "timer"]
        last = page.cursor is None or not _has_time(ports, now)
        division.add([row for row in page.items if row[0].kind == "timer"], last)
        if last and page.cursor is not None:
            shards.hand_on(ports, [replace(part, cursor=page.cursor)])
            break
    return tuple(others)


class _Division:
    """Divides the timers of a shard into messages. Those of a burst, which are due at one instant, have messages of
    their own, which say about how large it is. They are prepared at once, since a burst takes long to prepare. The
    others are prepared one message after the other, each about as long before its first instant: all at once would
    take the tables and processes from the deliveries of this minute."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._before = ports.settings.horizon_seconds * SECOND - SPREAD_OVER
        self._waiting: list[tuple[Ref, Instant]] = []
        self._instant: Instant = 0
        self._seen = 0  # timers that are due at this instant

    def add(self, page: Sequence[tuple[Ref, Instant]], last: bool) -> None:
        """Add the timers of a page, and hint those whose burst is known, or all of them after the last page."""
        self._waiting += page
        if not last and page and page[0][1] == page[-1][1] and len(self._waiting) < MAX_READ_AHEAD:
            return
        few: list[tuple[Instant, Ref]] = []
        for instant, group in groupby(self._waiting, key=lambda row: row[1]):
            names = [ref.parts[0] for ref, _ in group]
            self._seen = len(names) + (self._seen if instant == self._instant else 0)
            self._instant = instant
            if self._seen < bursts.BURST:
                few += [(instant, fires_ref(name)) for name in names]
                continue
            # Other shards have about as many. If more pages follow, as many again are expected.
            more = 1 if last or instant != self._waiting[-1][1] else 2
            crowd = self._seen * self._ports.settings.wake_shards * more
            self._hint([(0, [fires_ref(name, crowd) for name in names])], crowd)
        self._waiting = []
        size = bursts.rows_of_each(len(few), len(few)) if few else 1
        parts = [few[start : start + size] for start in range(0, len(few), size)]
        self._hint([(part[0][0] - self._before, [ref for _, ref in part]) for part in parts], len(few))

    def _hint(self, parts: Sequence[tuple[Instant, Sequence[Ref]]], crowd: int) -> None:
        """Hint timers for the instants from which they are to be prepared, or for now. ``crowd`` as in `ports.Hints`:
        a part that is smaller than a burst stays with the others in the queue of bursts."""
        if parts:
            now = self._ports.clock.now()
            self._ports.hints.send_all([(max(at, now), refs) for at, refs in parts], now, must=True, crowd=crowd)


def emit_together(ports: Ports, refs: Sequence[Ref]) -> tuple[list[Ref], list[Ref]]:
    """Prepare the fires of timers that a message names. Returns the refs that failed, and those for which no time is
    left."""
    now = ports.clock.now()
    horizon = now + ports.settings.horizon_seconds * SECOND
    try:
        handled = _emit_all(ports, refs, now, horizon, many=True, crowd=crowd_of(refs))
    except ExceptionGroup:  # what is left is repeated with what failed; timers that moved are left alone then
        logger.exception("timers failed", extra={"size": len(refs)})
        return list(refs), []
    return [], list(refs[handled:])


def _emit_all(
    ports: Ports, refs: Sequence[Ref], now: Instant, horizon: Instant, many: bool, crowd: int = 0
) -> int:  # fmt: skip
    """Prepare the fires of these timers, a hundred at a time, while there is time."""
    hints, handled = Hints(ports, crowd), 0
    failed: list[Exception] = []
    for start in range(0, len(refs), BATCH_SIZE):
        if start and not _has_time(ports, now):
            hint = "the rest is handed on, or left to the next tick; the tables are slow"
            logger.warning("emission out of time", extra={"left": len(refs) - start, "hint": hint})
            break
        part = [ref.parts[0] for ref in refs[start : start + BATCH_SIZE]]
        failed += _round_or_each(ports, part, now, horizon, hints, many)
        handled += len(part)
    hints.flush(ports.clock.now(), patient=True)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {handled} timers failed", failed)
    return handled


def _has_time(ports: Ports, since: Instant) -> bool:
    return ports.clock.now() - since <= MAX_ROUND and ports.has_time(TIME_FOR_ROUND)


def emit_soon(ports: Ports, schedule: str) -> int:
    """Prepare the fires of one schedule whose timer changed within the horizon that the last tick covered (E4).
    Returns how many fires were written."""
    return emit_timer(ports, schedule, ports.clock.now(), horizon_of(ports))


def emit_these(ports: Ports, schedules: Sequence[str]) -> None:
    """The same for many schedules, a hundred at a time. One failure does not stop the others; the errors are raised at
    the end."""
    hints = Hints(ports)
    failed: list[Exception] = []
    for start in range(0, len(schedules), BATCH_SIZE):
        part, now = schedules[start : start + BATCH_SIZE], ports.clock.now()
        failed += _round_or_each(ports, part, now, horizon_of(ports), hints, many=True)
    hints.flush(ports.clock.now())
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(schedules)} timers failed", failed)


def horizon_of(ports: Ports) -> Instant:
    """The instant up to which fires are prepared now."""
    return ports.clock.now() + ports.settings.horizon_seconds * SECOND


def is_due(timer: Timer, schedule: Schedule, horizon: Instant) -> bool:
    """Whether a timer has a step before the horizon, or its repeats are used up."""
    return lifetime.is_used_up(timer, schedule) or (timer.wake_at is not None and timer.wake_at < horizon)


def emit_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> int:
    """Write the fires of one timer, hint them and move the timer, portion by portion. Returns how many were written.

    After a crash the same fires are written again under the same ids.
    """
    hints = Hints(ports)
    try:
        made, more = _portions(ports, schedule, now, horizon, hints)
    finally:
        hints.flush(ports.clock.now())
    if more:
        ports.hints.send([kinds.ref(Timer, schedule)], now, now)
    return made


def _portions(ports: Ports, schedule: str, now: Instant, horizon: Instant, hints: Hints) -> tuple[int, bool]:
    """Prepare at most ``MAX_PORTIONS`` of a timer. Returns how many fires were written, and whether more are left."""
    made = 0
    for _ in range(MAX_PORTIONS):
        step = _plan_timer(ports, schedule, now, horizon)
        if step is None:
            return made, False
        made += len(step.fires)
        moved = _carry_out(ports, [step], now, hints)
        if not moved or step.emission is None or not step.emission.more:
            return made, False
    return made, True


def _round_or_each(
    ports: Ports, schedules: Sequence[str], now: Instant, horizon: Instant, hints: Hints, many: bool
) -> list[Exception]:  # fmt: skip
    """Handle timers together. If that fails, each is handled alone, so only the one that caused the error fails.
    Returns the errors."""
    try:
        _round(ports, schedules, now, horizon, hints, many)
    except Exception:
        logger.exception("round failed", extra={"timers": len(schedules)})
        try:
            run_each(schedules, lambda name: emit_timer(ports, name, now, horizon))
        except ExceptionGroup as group:
            return list(group.exceptions)
    return []


def _round(
    ports: Ports, schedules: Sequence[str], now: Instant, horizon: Instant, hints: Hints, many: bool
) -> None:  # fmt: skip
    seen, found = timers_of(ports, schedules)
    # A timer that another invocation has moved is left alone. Its definition is read only if it may be used up.
    timers = [timer for timer in found if not timer.next or (timer.wake_at or horizon) < horizon]
    seen = seen.prefetch.read(seen, [kinds.key(Version, timer.schedule, timer.version) for timer in timers])
    planned = (_plan_timer(seen, timer.schedule, now, horizon) for timer in timers)
    steps = [step for step in planned if step is not None]
    moved = _carry_out(ports, steps, now, hints, many)
    more = [step.schedule for step in moved if step.emission is not None and step.emission.more]
    run_each(more, lambda name: emit_timer(ports, name, now, horizon))


def timers_of(ports: Ports, schedules: Sequence[str]) -> tuple[Ports, list[Timer]]:
    """The timers of these schedules, and the ports with them and the states of their schedules read ahead."""
    wanted: list[Key] = [kinds.key(row, name) for name in schedules for row in (Timer, ScheduleState)]
    seen = ports.prefetch.read(ports, wanted)
    return seen, [timer for name in schedules if (timer := seen.rows.get(Timer, name)) is not None]


def _plan_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> TimerStep | None:
    """The next step of a timer, bounded to one portion; None if there is nothing to prepare."""
    timer, schedule_state = ports.rows.get(Timer, schedule), ports.rows.get(ScheduleState, schedule)
    definition = lookup.definition_of(ports, timer)
    if timer is None or schedule_state is None or definition is None or schedule_state.generation != timer.generation:
        return None
    if gone := timer_step.unknown_zones(timer, definition, schedule_state):
        logger.warning("zone unknown", extra={"schedule": schedule, "hint": "; ".join(gone)})
        return None
    if not fire_timer.may_bundle(timer, definition):
        return timer_step.next_step(timer, definition, schedule_state, now, horizon)
    step = timer_step.next_step(timer, definition, schedule_state, now, horizon, _is_bundled(ports, definition))
    if step is not None and step.emission is not None and _has_jobs(ports, timer, step.emission.bundles, now):
        step = timer_step.next_step(timer, definition, schedule_state, now, horizon)
    return _with_bundles(ports, step, now)


def _has_jobs(ports: Ports, timer: Timer, prepared: Sequence[Job], now: Instant) -> bool:
    """Whether one of these fires was written as jobs: before a policy or a workflow changed, or by an emitter that died
    before it moved the timer. It stays so: an event in a bundle has another id, and the bundles of a fire follow each
    other."""
    for bundle in {bundles.fire_of_bundle(job.job_id): job for job in reversed(prepared)}.values():
        nominal, due = fire.nominal_of(bundle), bundles.due(bundle, bundle.index)
        row = ports.rows.get(Fire, bundles.fire_of_bundle(bundle.job_id)) if bundle.index else None
        if bundle.index and (row is None or row.written < bundle.index):
            return True
        first = fire.fire_of(timer, bundles.LEAF, nominal, due, bundle.index)
        if _is_written(ports, first, nominal) or (due <= now and ports.rows.get(Run, first.job_id, 1) is not None):
            return True
    return False


def _is_written(ports: Ports, first: Job, nominal: Instant) -> bool:
    """Whether an event of a portion is a job. Jobs are written in any order, so in the first portion each event
    counts. In a later one only the first does, since events of earlier bundles may be jobs."""
    if first.index:
        return ports.rows.get(Job, first.schedule, first.generation, first.sort_key) is not None
    beginning = sort_keys.events(nominal, bundles.LEAF)
    found = ports.jobs.jobs(first.schedule, first.generation, 1, None, beginning).items
    return any(job.sort_key.startswith(beginning) and not job.is_bundle for job in found)


def _is_bundled(ports: Ports, schedule: Schedule) -> bool:
    row = ports.rows.get(Definition, "workflow", schedule.workflow)
    workflow = lookup.workflow_of(ports, schedule.workflow)
    policy = policies.policy_of(ports, schedule.policy) if schedule.policy is not None else None
    return workflow is not None and plain.is_bundled(schedule, workflow, row is not None and row.counted, policy)


def _with_bundles(ports: Ports, step: TimerStep | None, now: Instant) -> TimerStep | None:
    if step is None or step.emission is None:
        return step
    fires = dict.fromkeys(bundles.fire_of_bundle(job.job_id) for job in step.emission.bundles)
    return timer_step.with_bundles(step, {fire_id: ports.rows.get(Fire, fire_id) for fire_id in fires}, now)


def _carry_out(
    ports: Ports, steps: Sequence[TimerStep], now: Instant, hints: Hints, many: bool = False
) -> list[TimerStep]:
    """Write the fires of all steps, move the timers, hint the fires. Returns the steps whose timers were moved.

    Any other timer was moved by a concurrent emitter that wrote the same fires, or its schedule has changed. Only the
    emitter that moves a timer hints its fires: a second hint would make a second invocation handle all of them.
    """
    # The transaction of a step has its bundles.
    fires = [fire for step in steps for fire in step.fires if not fire.is_bundle]
    if fires:
        ports.ledger.put_all([*map(Put, fires)])
    moved = [step for group in _groups(steps, many) for step in _commit(ports, group)]
    moved_names = {step.schedule for step in moved}
    hints.keep([step for step in steps if step.schedule in moved_names or not step.plan], now)
    _log_skipped(steps)
    return moved


def _log_skipped(steps: Sequence[TimerStep]) -> None:
    for record in (each for step in steps if step.emission for each in step.emission.skipped):
        fields = {"schedule": record.schedule, "skipped_fires": record.count, "why": record.reason.text}
        logger.warning("fires skipped", extra=fields)


def _groups(steps: Sequence[TimerStep], many: bool) -> Iterator[list[TimerStep]]:
    """The groups of timers that are moved together: timers of a busy tick, and those whose plans need a transaction."""
    group: list[TimerStep] = []
    for step in (step for step in steps if step.plan):
        if len(step.plan) == 1 and not many:
            yield [step]
            continue
        # After an outage, each leaf of a timer may have a record of its skipped fires.
        writes = sum(len(each.plan) for each in group) + len(step.plan)
        if group and (len(group) == MAX_MOVES or writes > MAX_WRITES):
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def _commit(ports: Ports, steps: list[TimerStep]) -> list[TimerStep]:
    """Move timers in one transaction. Timers with a conflict are left out. Returns the steps that were carried out."""
    while steps:
        refused = ports.ledger.commit([write for step in steps for write in step.plan])
        if refused is None:
            return steps
        steps = [step for step in steps if not any(write in refused.writes for write in step.plan)]
    return []
