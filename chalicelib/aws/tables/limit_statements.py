"""The writes of a limit as DynamoDB statements: permits, paces, queues, and the starts that a limit remembers.

A start is one entry of the map ``starts``, which is set and removed by its name. So runs that start or end at the same
time do not overwrite each other. ``rev`` counts these changes: a write that relies on the starts expects it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.aws.tables.expressions import NO_WAITER, Built, Shards, update
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits import permits
from chalicelib.core.limits.permits import MOST_RATES, PermitRequest, RateWindow, Slots
from chalicelib.core.limits.writes import (
    AcquireBlock,
    AcquirePermit,
    AdvancePace,
    ClearQueueWake,
    DelayPace,
    JoinQueue,
    LeaseQueue,
    LeaveQueue,
    NameShared,
    NewEdition,
    RecordStart,
    ReleasePermit,
    RememberSuccess,
    TrackRates,
    WakeQueue,
)
from chalicelib.core.rows import kinds
from chalicelib.core.rows.limit import LimitState


@dataclass
class _Update:
    """An update of one limit, assembled step by step."""

    sets: list[str] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)
    expects: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def built(self, limit_name: str) -> Built:
        expression = f"SET {', '.join(self.sets)}" if self.sets else ""
        if self.removes:
            expression += f" REMOVE {', '.join(self.removes)}"
        several = len(self.expects) > 1
        wrapped = (f"({term})" if several and " OR " in term and term != NO_WAITER else term for term in self.expects)
        expected = " AND ".join(wrapped) or None
        action, key, arguments = update(kinds.key(LimitState, limit_name), expression.strip(), expected, **self.values)
        return action, key, arguments | ({"ExpressionAttributeNames": self.names} if self.names else {})

    def expects_no_waiter(self) -> None:
        self.expects.append(NO_WAITER)
        self.values["zero"] = 0

    def counts_up(self) -> None:
        self.sets.append("rev = if_not_exists(rev, :zero) + :one")
        self.values |= {"zero": 0, "one": 1}

    def as_read(self, name: str, read: int) -> None:
        """Expect the attribute that was read; one that was 0 does not exist."""
        if read == 0:
            self.expects.append(f"attribute_not_exists({name})")
        else:
            self.expects.append(f"{name} = :{name}")
            self.values[name] = read

    def numbers(self, read: LimitState) -> None:
        """Assign the next number to the run that starts. Another write with the same number fails, and reads again."""
        self.sets.append("numbered = :number")
        self.values["number"] = read.numbered + 1
        self.as_read("numbered", read.numbered)

    def remembers(self, read: LimitState, holder: str, now: int, dropped: tuple[str, ...] = ()) -> None:
        """Add an entry to ``starts``. A path into a map needs the map, so the first entry creates the map. A new rate
        window has starts that other windows remember."""
        if read.rev == 0:
            self.expects.append("attribute_not_exists(starts)")
            self.sets.append("starts = :first")
            self.values["first"] = {**read.starts, holder: now}
            return
        self.values["now"] = now  # only here: DynamoDB refuses a value that no expression names
        self.expects.append("attribute_exists(starts)")
        self.sets.append("starts.#holder = :now")
        self.names["#holder"] = holder
        for number, old in enumerate(holder_name for holder_name in dropped if holder_name != holder):
            self.removes.append(f"starts.#old{number}")
            self.names[f"#old{number}"] = old

    def forgets(self, holder: str) -> None:
        self.removes.append("starts.#holder")
        self.names["#holder"] = holder


def _acquire_permit(write: AcquirePermit, _: Shards) -> Built:
    made = _Update()
    match write.ask:
        case Slots():
            _acquire_slot(made, write, write.ask)
        case RateWindow():
            _enter_window(made, write, write.ask)
        case _:
            return _take_pace(write)
    if write.from_queue:
        made.sets.append("waiters = waiters - :one")
        made.values["one"] = 1
    elif not permits.is_unlimited(write.ask):
        made.expects_no_waiter()
    return made.built(write.ask.limit_name)


def _acquire_slot(made: _Update, write: AcquirePermit, request: Slots) -> None:
    taken = ":one" if request.units == 1 else ":units"
    made.sets.append(f"active = if_not_exists(active, :zero) + {taken}")
    made.values |= {"zero": 0, taken[1:]: request.units}
    if request.below is not None:
        made.expects.append("attribute_not_exists(active) OR active < :limit")
        made.values["limit"] = request.below
    if write.begins is not None:
        _start_in_slot(made, write.begins, write, request)


def _start_in_slot(made: _Update, holder: str, write: AcquirePermit | RecordStart, request: Slots) -> None:
    """Record a start. With a gap, the write expects the starts that were read; it always expects the rates."""
    now, read = write.now, write.read
    made.counts_up()
    if read.last_start is None or read.last_start <= now:
        made.sets.append("last_start = :now")
        made.values["now"] = now
    if write.numbers:
        made.numbers(read)
    if limit_names.is_of_workflow(request.limit_name):
        made.as_read("edition", read.edition)
    if request.gap is not None:
        made.as_read("rev", read.rev)  # no start was added or removed since
    if read.rates:
        made.expects.append("size(rates) = :rates")
        made.values["rates"] = len(read.rates)
    else:
        made.expects.append("attribute_not_exists(rates)")
    if len(read.starts) < permits.MAX_STARTS:
        made.remembers(read, holder, now)
    else:
        made.sets.append("untracked_start = :now")
        made.values["now"] = now


def _enter_window(made: _Update, write: AcquirePermit, request: RateWindow) -> None:
    made.counts_up()
    made.as_read("rev", write.read.rev)
    made.remembers(write.read, str(write.begins), write.now, permits.outdated(request, write.read))


def _record_start(write: RecordStart, _: Shards) -> Built:
    made = _Update()
    if isinstance(write.ask, Slots):
        _start_in_slot(made, write.begins, write, write.ask)
    else:
        made.counts_up()
        made.as_read("rev", write.read.rev)
        made.remembers(write.read, write.begins, write.now)
    return made.built(write.ask.limit_name)


def _take_pace(write: AcquirePermit) -> Built:
    request, head = write.ask, write.read.head
    if isinstance(request, Slots | RateWindow):
        raise TypeError("expected a pace")
    key, leaving = kinds.key(LimitState, request.limit_name), ", waiters = waiters - :one" if write.from_queue else ""
    # Two forms of max(head, now) + spacing: an update expression has no max.
    behind = head <= write.now
    base = ":now" if behind else "head"
    free = "(attribute_not_exists(head) OR head <= :now)" if behind else "head > :now AND head <= :latest"
    values = {"now": write.now, "spacing": request.spacing}
    if not behind:
        values["latest"] = write.now + request.slack
    if write.from_queue:
        values["one"] = 1
    elif not write.passing:
        # No single row shows whether a queue in parts is empty, so each job acquires its permit through the queue.
        free, values["zero"] = f"{free} AND {NO_WAITER} AND attribute_not_exists(parts)", 0
    return update(key, f"SET head = {base} + :spacing{leaving}", free, **values)


def _acquire_block(write: AcquireBlock, _: Shards) -> Built:
    expected = "head = :read" if write.read else "attribute_not_exists(head) OR head = :read"
    return update(
        kinds.key(LimitState, write.limit_name), "SET head = :head", expected, head=write.head, read=write.read
    )


def _hold_back(write: DelayPace, shards: Shards) -> Built:
    """Move the head forward. The head only grows, so a concurrent longer delay or permit is kept."""
    key, head = kinds.key(LimitState, write.ask.limit_name), write.until + write.ask.slack
    return update(key, "SET head = :head", "attribute_not_exists(head) OR head < :head", head=head)


def _advance_pace(write: AdvancePace, shards: Shards) -> Built:
    key, wake_at = kinds.key(LimitState, write.limit_name), write.read.wake_at
    sets, expected = "SET head = :head", "head = :read"
    values: dict[str, Any] = {"head": write.head, "read": write.read.head}
    if wake_at is not None and wake_at > write.head:
        sets, expected = f"{sets}, wake_at = :at", f"{expected} AND wake_at = :seen"
        values["at"] = items.wake(write.head, key.pk, shards.wake)["wake_at"]
        values["seen"] = items.wake(wake_at, key.pk, shards.wake)["wake_at"]
    return update(key, sets, expected, **values)


def _join_queue(write: JoinQueue, shards: Shards) -> Built:
    key = kinds.key(LimitState, write.ask.limit_name)
    wake = items.wake(write.wake_at, key.pk, shards.wake)
    expression = (
        "SET waiters = if_not_exists(waiters, :zero) + :one, wake_shard = :shard, wake_at = if_not_exists(wake_at, :at)"
    )
    values: dict[str, Any] = {"zero": 0, "one": write.count, "shard": wake["wake_shard"], "at": wake["wake_at"]}
    if write.behind:
        return update(key, expression, None, **values)
    expected, bound = _no_permit(write.ask, write)
    return update(key, expression, f"{expected} OR waiters > :zero", **values, **bound)


def _no_permit(request: PermitRequest, write: JoinQueue) -> tuple[str, dict[str, Any]]:
    match request:
        case Slots():
            empty = "attribute_not_exists(active) OR " if request.below is not None and request.below <= 0 else ""
            return f"{empty}active >= :limit", {"limit": request.below}
        case RateWindow():
            # A condition cannot compare the entries of a map. The window that was read is full; it must be unchanged.
            return ("rev = :rev", {"rev": write.rev}) if write.rev else ("attribute_not_exists(rev)", {})
        case _:
            return "head > :latest", {"latest": write.now + request.slack}


def _leave_queue(write: LeaveQueue, _: Shards) -> Built:
    return update(
        kinds.key(LimitState, write.limit_name), "SET waiters = waiters - :one", "waiters >= :one", one=write.count
    )


def _release_permit(write: ReleasePermit, shards: Shards) -> Built:
    made = _Update(values={"zero": 0})
    remembered = write.ended is not None and write.ended.holder in write.ended.read.starts
    if not limit_names.is_rate_window(write.limit_name):
        made.sets.append("active = active - :units")
        made.values["units"] = write.units
    if remembered or limit_names.is_rate_window(write.limit_name):
        made.counts_up()  # if the window has dropped the start already, only the count changes
    if write.ended is not None and remembered:
        made.forgets(write.ended.holder)
    _remember_success(made, write)
    if write.wake_at is None:
        made.expects_no_waiter()
        return made.built(write.limit_name)
    wake = items.wake(write.wake_at, kinds.key(LimitState, write.limit_name).pk, shards.wake)
    made.sets.append("wake_shard = :shard, wake_at = :at")
    made.expects.append("waiters > :zero")
    made.values |= {"shard": wake["wake_shard"], "at": wake["wake_at"]}
    return made.built(write.limit_name)


def _remember_success(made: _Update, write: ReleasePermit) -> None:
    """Record the end of a successful run. Runs may end in another order than they started: the latest start of a
    success stays the latest."""
    ended = write.ended
    if ended is None or ended.started_at is None:
        return
    if ended.succeeded_at is not None:
        made.sets.append("last_success_at = :ended")
        made.values["ended"] = ended.succeeded_at
    made.values["started"] = ended.started_at
    last = ended.read.last_success_start
    if last is None or last < ended.started_at:
        made.sets.append("last_success_start = :started")
        made.expects.append("attribute_not_exists(last_success_start) OR last_success_start < :started")
    else:
        made.expects.append("last_success_start >= :started")


def _remember_own(write: RememberSuccess, _: Shards) -> Built:
    return update(kinds.key(LimitState, write.limit_name), "SET last_success_at = :at", None, at=write.at)


def _track_rates(write: TrackRates, _: Shards) -> Built:
    """Add rates to those that a workflow counts. It keeps at most `MOST_RATES`; more would let no claim succeed."""
    key = kinds.key(LimitState, write.limit_name)
    each = {f"rate{number}": rate for number, rate in enumerate(write.rates)}
    known = " AND ".join(f"contains(rates, :{name})" for name in each)
    expected = f"attribute_not_exists(rates) OR size(rates) <= :room OR ({known})"
    room = MOST_RATES - len(write.rates)
    return update(key, "ADD rates :rates", expected, rates=set(write.rates), room=room, **each)


def _name_shared(write: NameShared, _: Shards) -> Built:
    return update(kinds.key(LimitState, write.limit_name), "ADD admits :shared", None, shared={write.shared})


def _new_edition(write: NewEdition, _: Shards) -> Built:
    if not write.edition:  # a claim expects that there is none
        return update(kinds.key(LimitState, write.limit_name), "REMOVE edition", None)
    return update(kinds.key(LimitState, write.limit_name), "SET edition = :edition", None, edition=write.edition)


def _lease_queue(write: LeaseQueue, shards: Shards) -> Built:
    key = kinds.key(LimitState, write.limit_name)
    read, until = items.wake(write.read, key.pk, shards.wake), items.wake(write.until, key.pk, shards.wake)
    values: dict[str, Any] = {"until": until["wake_at"], "read": read["wake_at"]}
    sets = "SET wake_at = :until"
    if write.asked is not None:
        sets, values["asked"] = f"{sets}, asked_at = :asked", write.asked
    if write.in_block:
        sets, values["block"] = f"{sets}, block_at = :block", write.until
    return update(key, sets, "wake_at = :read", **values)


def _clear_queue_wake(write: ClearQueueWake, shards: Shards) -> Built:
    key, values = kinds.key(LimitState, write.limit_name), dict[str, Any](zero=0)
    expected = NO_WAITER
    if write.read is not None:
        expected = f"{NO_WAITER} AND wake_at = :read"
        values["read"] = items.wake(write.read, key.pk, shards.wake)["wake_at"]
    return update(key, "REMOVE wake_at, wake_shard", expected, **values)


def _wake_queue(write: WakeQueue, shards: Shards) -> Built:
    key = kinds.key(LimitState, write.limit_name)
    wake = items.wake(write.at, key.pk, shards.wake)
    sets = "SET parts = :parts, wake_shard = :shard, wake_at = if_not_exists(wake_at, :at)"
    values = {"parts": write.parts, "shard": wake["wake_shard"], "at": wake["wake_at"]}
    return update(key, sets, "attribute_not_exists(parts) OR parts <= :parts", **values)


def _with_layout(build: Callable[[Any, Shards], Built]) -> Callable[[Any, Shards], Built]:
    """Add the layout to each SET. An update creates the row of a limit, and any of these updates may be the first."""

    def built(write: Any, shards: Shards) -> Built:
        action, key, arguments = build(write, shards)
        if not arguments["UpdateExpression"].startswith("SET "):
            return action, key, arguments
        expression = f"SET #format = :format, {arguments['UpdateExpression'].removeprefix('SET ')}"
        names = arguments.get("ExpressionAttributeNames", {}) | {"#format": "format"}
        values = arguments.get("ExpressionAttributeValues", {}) | {":format": items.value(items.FORMAT)}
        merged = {
            "UpdateExpression": expression,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        return action, key, arguments | merged

    return built


_BUILDERS: dict[type, Callable[[Any, Shards], Built]] = {
    AcquirePermit: _acquire_permit,
    RecordStart: _record_start,
    RememberSuccess: _remember_own,
    TrackRates: _track_rates,
    NameShared: _name_shared,
    NewEdition: _new_edition,
    JoinQueue: _join_queue,
    LeaveQueue: _leave_queue,
    ReleasePermit: _release_permit,
    LeaseQueue: _lease_queue,
    DelayPace: _hold_back,
    AcquireBlock: _acquire_block,
    AdvancePace: _advance_pace,
    ClearQueueWake: _clear_queue_wake,
    WakeQueue: _wake_queue,
}
BUILDERS = {kind: _with_layout(build) for kind, build in _BUILDERS.items()}
