"""The decision of the step *emit*: which fires of a timer to prepare now, and when the timer wakes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import bundles, catch_up, fire, lifetime, walls
from chalicelib.core.fires.catch_up import Skipped
from chalicelib.core.fires.fire import Begun, Shape
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf
from chalicelib.core.triggers.time import Recurrence, rule_of
from chalicelib.core.triggers.tree import NumberedLeaf
from chalicelib.core.why import Why

# How many fire events of one timer one emit prepares; the next emit prepares the rest.
MAX_FIRES = 500
# The same for bundles and the rows of their fires, which are written in the transaction that moves the timer.
MAX_ROWS = 80


@dataclass(frozen=True, slots=True)
class Emission:
    """The fire events to write, the timer after them, and the records of skipped fires. ``more``: there is more to
    prepare, so the next emit follows at once."""

    fires: tuple[Job, ...]
    timer: Timer
    skipped: tuple[Record, ...]
    more: bool = False

    @property
    def bundles(self) -> tuple[Job, ...]:
        return tuple(job for job in self.fires if job.is_bundle)


def first_timer(schedule: Schedule, schedule_state: ScheduleState, now: Instant) -> Timer | None:
    """The timer of a schedule that begins to gather at ``now``; None if no fire and no end of life follows. Enabling
    never catches up. For an elapsed leaf only runs that start from ``now`` on count (T13)."""
    blank = Timer(schedule_state.schedule, schedule_state.generation, schedule_state.version, now, {})
    upcoming = {}
    for leaf in tree.timed_leaves(schedule.trigger):
        # Fires come after the instant at which a schedule begins. A due_time may be that instant: it means now.
        is_now = leaf.trigger.is_due_at(now)
        nominal = _next(leaf.trigger, schedule, blank, now - 1 if is_now else now)
        if nominal is not None:
            upcoming[leaf.id] = nominal
    made = walls.stamped(walls.kept(replace(blank, next=upcoming), schedule), schedule)
    if lifetime.is_used_up(made, schedule):
        return replace(made, wake_at=now)  # complete before it began, so the next emit completes the schedule
    wake_at = wakes_at(made, schedule)
    return None if wake_at is None else replace(made, wake_at=wake_at)


def emit(timer: Timer, schedule: Schedule, now: Instant, horizon: Instant, bundled: bool = False) -> Emission:
    """All events that are due before ``horizon``, at most `MAX_FIRES`; with ``bundled``, many of a fire in one row. A
    repeat after a crash computes the same ids."""
    portion = _Portion(timer, schedule, now, horizon, bundled and may_bundle(timer, schedule))
    portion.continue_begun()
    upcoming: dict[str, Instant] = {}
    for leaf in tree.timed_leaves(schedule.trigger):
        nominal, rule = timer.next.get(leaf.id), rule_of(leaf.trigger)
        if rule is not None:
            nominal = portion.times(leaf.id, rule, nominal)
        elif nominal is not None:
            nominal = portion.evaluated(leaf, nominal)
        if nominal is not None:
            upcoming[leaf.id] = nominal
    begun = tuple(one.stored for one in portion.begun)
    bundled = portion.bundled
    later = replace(timer, next=upcoming, fired=portion.fired, begun=begun, rev=timer.rev + 1, bundled=bundled)
    later = set_to(replace(later, shapes=_needed(timer.shapes, begun)), schedule)
    more = later.wake_at is not None and later.wake_at < horizon and not portion.capacity()
    return Emission(tuple(portion.fires), later, tuple(portion.skipped), more or portion.continues)


def may_bundle(timer: Timer, schedule: Schedule) -> bool:
    """Whether fires of a timer have enough events for bundles."""
    shapes = (fire.shape(schedule), *(Shape(events, span) for _, events, span in timer.shapes))
    return any(bundles.size(shape) > 1 for shape in shapes)


def set_to(timer: Timer, schedule: Schedule) -> Timer:
    """The timer with the ``wake_at`` and the wall times that follow from its next instants."""
    return walls.kept(replace(timer, wake_at=wakes_at(timer, schedule)), schedule)


def wakes_at(timer: Timer, schedule: Schedule) -> Instant | None:
    """When a timer wakes next: at its earliest event, or at the end of its schedule's life; None if never."""
    instants_due = [end] if (end := lifetime.closes_at(schedule)) is not None else []
    for one in fire.begun(timer):
        instants_due.append(fire.due_of(fire.shape_in(timer, schedule, one.nominal), one, one.written))
    for leaf in tree.timed_leaves(schedule.trigger):
        nominal, rule = timer.next.get(leaf.id), rule_of(leaf.trigger)
        if nominal is not None and rule is not None:
            nominal = fire.series(timer, schedule, leaf.id, rule).due(nominal)
        instants_due += [] if nominal is None else [nominal]
    return min(instants_due, default=None)


def carried(timer: Timer, old: Schedule, new: Schedule, version: int, now: Instant) -> Timer:
    """The timer of a schedule whose definition changes and whose trigger does not. It keeps its next instants, and its
    begun fires keep their shapes.

    A prepared fire after the end of the new definition is dropped when it is due: `after_end`.
    """
    upcoming: dict[str, Instant] = {}
    for leaf in tree.timed_leaves(new.trigger):
        nominal = timer.next.get(leaf.id)
        if nominal is None:
            nominal = reopened(timer, leaf, old, new, now)
        if nominal is not None and (new.ends_at is None or nominal <= new.ends_at):
            upcoming[leaf.id] = nominal
    begun = tuple(one for one in timer.begun if new.ends_at is None or one[0] <= new.ends_at)
    later = replace(timer, version=version, next=upcoming, begun=begun, rev=timer.rev + 1)
    return set_to(replace(later, shapes=_kept(timer, old, new, begun)), new)


def _kept(
    timer: Timer, old: Schedule, new: Schedule, begun: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, int, int], ...]:
    """The shapes of the fires that are begun at an update."""
    last = max((nominal for nominal, *_ in begun), default=0)
    shapes, own = _needed(timer.shapes, begun), fire.shape(old)
    if own == fire.shape(new) or not begun or (shapes and last <= shapes[-1][0]):
        return shapes
    return (*shapes, (last, *own))


def _needed(
    shapes: tuple[tuple[int, int, int], ...], begun: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, int, int], ...]:
    """The shapes that a begun fire has. They are in the order of their last fires."""
    first = min((nominal for nominal, *_ in begun), default=None)
    return tuple(each for each in shapes if first is not None and first <= each[0])


def reopened(timer: Timer, leaf: NumberedLeaf[TimedLeaf], old: Schedule, new: Schedule, now: Instant) -> Instant | None:
    """The next instant of a leaf that had none before the old end, and has one before the new end; None if it has
    none."""
    rule, end = rule_of(leaf.trigger), old.ends_at
    if end is None:
        return None
    if rule is not None and rule.repeats is not None and timer.fired.get(leaf.id, 0) >= rule.repeats:
        return None
    if leaf.trigger.span is None:
        return _next(leaf.trigger, new, timer, max(end, now))
    return max(end, now) + 1  # evaluated when it is due, and then postponed to its true instant


def by_present_rules(timer: Timer, schedule: Schedule, now: Instant) -> Timer:
    """The timer, with each next instant at the same wall time by the present rules of its zone."""
    later = walls.following(timer, schedule, now)
    return replace(later, wake_at=wakes_at(later, schedule)) if timer.next else later


def before_moved(
    timer: Timer, schedule: Schedule, prepared: Sequence[Job], now: Instant
) -> tuple[Timer, tuple[Job, ...]]:
    """The timer as it was before it prepared fires that the present rules of a zone have at another instant, so that it
    prepares them again, and those of its ``prepared`` fires that no longer are one. Fires that have begun stay."""
    upcoming, fired, known = dict(timer.next), dict(timer.fired), dict(timer.walls)
    gone: list[Job] = []
    again: set[Instant] = set()
    for leaf in tree.timed_leaves(schedule.trigger):
        own = [job for job in prepared if job.leaf == leaf.id and fire.nominal_of(job) > now]
        last = walls.last_prepared(timer, leaf.id)
        first = min(map(fire.nominal_of, own), default=None)
        if first is None or not last:
            continue
        moved = walls.moved_to(leaf.trigger, timer.anchor, first, last[1], now, schedule.ends_at)
        if moved == first:
            continue
        upcoming.pop(leaf.id, None)
        known.pop(leaf.id, None)
        if moved is not None:
            upcoming[leaf.id] = moved
        gone += [job for job in own if moved is None or not _comes_again(leaf.trigger, timer, schedule, moved, job)]
        nominals = {fire.nominal_of(job) for job in own}
        again |= nominals
        if leaf.id in fired:
            fired[leaf.id] -= len(nominals)
    begun = tuple(one for one in timer.begun if one[0] not in again)
    later = replace(timer, next=upcoming, fired=fired, begun=begun, walls=known)
    later = set_to(later, schedule)
    return later if again else timer, tuple(gone)


def _comes_again(leaf: TimedLeaf, timer: Timer, schedule: Schedule, first: Instant, job: Job) -> bool:
    nominal = fire.nominal_of(job)
    return nominal >= first and leaf.next_due(timer.anchor, nominal - 1, schedule.ends_at) == nominal


def may_have_moved(timer: Timer, schedule: Schedule, now: Instant) -> bool:
    """Whether fires that were prepared last may have another instant by the present rules. Most have not, and need no
    search."""
    for leaf in tree.timed_leaves(schedule.trigger):
        last = walls.last_prepared(timer, leaf.id)
        if last and last[0] > now - fire.PREPARED_FOR:
            moved = walls.moved_to(leaf.trigger, timer.anchor, last[0], last[1], now, schedule.ends_at)
            if moved != last[0]:
                return True
    return False


def after_end(job: Job, schedule: Schedule) -> Why | None:
    """Why a prepared fire is dropped: an update that carries its schedule ends it before the fire (L6). Else None."""
    nominal = fire.nominal_of(job)
    if schedule.ends_at is None or nominal <= schedule.ends_at:
        return None
    ends = iso(schedule.ends_at)
    return Why.of("fire_removed", f"the schedule was updated to end at {ends}, before this fire of {iso(nominal)}")


@dataclass
class _Portion:
    """What one emit prepares: at most `MAX_FIRES` events over all leaves."""

    timer: Timer
    schedule: Schedule
    now: Instant
    horizon: Instant
    bundled: bool
    fires: list[Job] = field(default_factory=list)
    skipped: list[Record] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    fired: dict[str, int] = field(default_factory=dict)
    continues: bool = False

    def __post_init__(self) -> None:
        self.fired = dict(self.timer.fired)

    def capacity(self) -> int:
        """How many more events fit, or rows of bundles and their fires."""
        if not self.bundled:
            return MAX_FIRES - len(self.fires)
        return max(0, MAX_ROWS - len(self.fires) - len({job.nominal_at for job in self.fires}))

    def continue_begun(self) -> None:
        """Prepare the unwritten events of fires that were begun before."""
        for one in fire.begun(self.timer):
            self._write("0", one)

    def times(self, leaf: str, rule: Recurrence, nominal: Instant | None) -> Instant | None:
        """Prepare the fires of a time leaf from ``nominal`` on. Returns the first one that is left; None if none is."""
        own = fire.series(self.timer, self.schedule, leaf, rule)
        left = self._left(leaf, rule)
        missed = catch_up.skip(own, nominal, self.schedule.catch_up, self.now, left) if nominal is not None else None
        if missed is not None:
            self.skipped.append(_record(self.timer, leaf, missed, self.now))
            self._count(leaf, rule, missed.count)
            nominal = missed.following
            self.continues = nominal is not None and nominal < missed.until
        while nominal is not None and not self.continues and self.capacity():
            due = own.due(nominal)
            if due >= self.horizon:
                break
            self._write(leaf, Begun(nominal, due, 0))
            self._count(leaf, rule, 1)
            nominal = own.after(nominal) if self._left(leaf, rule) != 0 else None
        return nominal

    def evaluated(self, leaf: NumberedLeaf[TimedLeaf], nominal: Instant) -> Instant | None:
        """Prepare the fires of a leaf that is evaluated when it is due. Returns the first one that is left.

        It is one fire: after an outage the past cannot be evaluated, and the next instant is unknown until this one is
        due. Whether the partition of a period has come can always be evaluated, so each period has its fire."""
        following: Instant | None = nominal
        while following is not None and following < self.horizon and self.capacity():
            self.fires.append(fire.fire_of(self.timer, leaf.id, following, following))
            each = leaf.trigger.correlates
            following = _next(leaf.trigger, self.schedule, self.timer, following if each else max(following, self.now))
            if not each:
                break
        return following

    def _write(self, leaf: str, one: Begun) -> None:
        """Prepare the events of one fire that are not written. The fire stays begun while events are not due yet. If
        they are overdue, all that are left are planned anew, so that they do not start all at once."""
        shape = fire.shape_in(self.timer, self.schedule, one.nominal)
        end = fire.window_end(shape, one.first)
        if end is not None and one.written < shape.events and self._is_missed(fire.due_of(shape, one, one.written)):
            one = one._replace(resumed_at=self.now, resumed_from=one.written)
        while one.written < shape.events and self.capacity():
            due = fire.due_of(shape, one, one.written)
            if due >= self.horizon:
                break
            job = self._job(leaf, one, shape, due)
            # A fire that an outage delayed has its whole timeout from now on.
            prepared_at = self.now if self._is_missed(due) else None
            self.fires.append(replace(job, window_end=end, prepared_at=prepared_at))
            one = one._replace(written=one.written + job.count)
        if one.written < shape.events:
            self.begun.append(one)

    def _job(self, leaf: str, one: Begun, shape: Shape, due: Instant) -> Job:
        """The next event of a fire, or its next bundle."""
        if self.bundled and bundles.size(shape) > 1:
            return bundles.bundle_of(self.timer, one, shape)
        job = fire.fire_of(self.timer, leaf, one.nominal, due, one.written)
        return job if shape == fire.ONE else replace(job, shape=tuple(shape))

    def _is_missed(self, due: Instant) -> bool:
        return due < self.now - catch_up.MISSED_AFTER

    def _left(self, leaf: str, rule: Recurrence) -> int | None:
        return None if rule.repeats is None else max(rule.repeats - self.fired.get(leaf, 0), 0)

    def _count(self, leaf: str, rule: Recurrence, more: int) -> None:
        if rule.repeats is not None:
            self.fired[leaf] = self.fired.get(leaf, 0) + more


def recounted(timer: Timer, schedule: Schedule, horizon: Instant) -> Timer:
    """The timer after a change of the holiday calendars of its schedule, or of the periods of its datasets. A fire that
    may be prepared stays; from the horizon on, the fires are those of the present calendars and periods."""
    upcoming = dict(timer.next)
    for leaf in tree.timed_leaves(schedule.trigger):
        nominal, rule = timer.next.get(leaf.id), rule_of(leaf.trigger)
        if leaf.trigger.correlates and (nominal is None or nominal >= horizon):
            following = _next(leaf.trigger, schedule, timer, horizon - 1)
            upcoming = {key: at for key, at in upcoming.items() if key != leaf.id}
            upcoming |= {} if following is None else {leaf.id: following}
        if nominal is None or rule is None or not leaf.trigger.calendars():
            continue
        own = fire.series(timer, schedule, leaf.id, rule)
        if own.due(nominal) < horizon or (nominal < horizon and own.after(nominal - 1) == nominal):
            continue
        following = own.after(horizon - 1)
        upcoming = {key: at for key, at in upcoming.items() if key != leaf.id}
        upcoming |= {} if following is None else {leaf.id: following}
    return set_to(replace(timer, next=upcoming, rev=timer.rev + 1), schedule)


def rearm(timer: Timer, schedule: Schedule, leaf: str, at: Instant) -> Timer:
    """The timer with another instant for a leaf, because the event from which it counts moved (T12, T13, T18). After
    the end of the schedule's life the leaf has none."""
    upcoming = {**timer.next, leaf: at}
    if schedule.ends_at is not None and at > schedule.ends_at:
        del upcoming[leaf]
    return set_to(replace(timer, next=upcoming, rev=timer.rev + 1), schedule)


def _record(timer: Timer, leaf: str, missed: Skipped, now: Instant) -> Record:
    record_id = ids.job_id(timer.schedule, timer.generation, f"skipped:{leaf}:{missed.first}:{timer.rev}")
    why = Why.of("fires_skipped", missed.reason)
    return new_record(record_id, "SKIPPED", timer.schedule, timer.generation, why, now, count=missed.count)


def _next(leaf: TimedLeaf, schedule: Schedule, timer: Timer, after: Instant) -> Instant | None:
    """When a leaf is due next, strictly after ``after``; None if never before the end of its schedule's life."""
    return leaf.next_due(timer.anchor, after, schedule.ends_at)
