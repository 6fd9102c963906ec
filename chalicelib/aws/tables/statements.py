"""Each write of `core/writes` as a DynamoDB statement: the action, the key, the item or update, and the condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.aws.tables import items, limit_statements
from chalicelib.aws.tables.expressions import ABSENT, Built, Shards, check, condition, delete, update
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition, Partition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Timer
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.rows.stops import StopsRow
from chalicelib.core.writes import (
    ClearStateWake,
    CloseGeneration,
    CountFailure,
    Create,
    Delete,
    DeleteDeadLetter,
    DeleteJob,
    DeleteNotice,
    EndLease,
    EndTimer,
    ExpectBackfillRunning,
    ExpectDefinition,
    ExpectGrants,
    ExpectMode,
    ExpectNewest,
    ExpectNoneGathering,
    ExpectNoPartition,
    ExpectNoRun,
    ExpectNotQueued,
    ExpectNotWaiting,
    ExpectOpen,
    ExpectStops,
    MarkWoken,
    Put,
    PutDefinition,
    PutLastArrival,
    PutNewest,
    PutState,
    RemoveDefinition,
    RemoveSubscription,
    RemoveWaiter,
    Replace,
    Row,
    TakeLease,
    TrackStarts,
    WakeBackfill,
    Write,
)

_OWN_LEASE = "holder = :holder"
_SAME_TIMER = "rev = :rev AND generation = :generation AND anchor = :anchor"


@dataclass(frozen=True, slots=True)
class Statement:
    """One item of a transaction, or one conditional write: both take the same arguments."""

    action: str  # Put, Update, Delete or ConditionCheck
    key: Key
    arguments: dict[str, Any]


def statement(write: Write, table_names: Mapping[Any, str], shards: Shards) -> Statement:
    build: Callable[[Any, Shards], Built] = _BUILDERS[type(write)]
    action, key, arguments = build(write, shards)
    named = {"TableName": table_names[key.table], **arguments}
    if action != "Put":
        named["Key"] = {"pk": {"S": key.pk}, "sk": {"S": key.sk}}
    return Statement(action, key, named)


def _put(row: Row, shards: Shards, expected: str | None, **values: Any) -> Built:
    item = items.to_item(row, shards.wake, shards.history)
    expires_at: Instant | None = getattr(row, "expires_at", None)
    if shards.sooner and expires_at is not None and kinds.ROWS[type(row)].history:
        # The row keeps the expiry with which it was written; the installation's setting decides when DynamoDB deletes
        # it.
        item["ttl"] = items.value((expires_at - shards.sooner) // 1000)
    arguments: dict[str, Any] = {"Item": item}
    return "Put", kinds.key_of(row), arguments | condition(expected, values)


def _replace(write: Replace, shards: Shards) -> Built:
    row: Any = write.row
    if isinstance(row, Job):
        # A tombstone has the revision of the job that it replaced, so the condition excludes it explicitly.
        expected = "rev = :rev AND job_id = :job AND closed = :closed"
        over = write.over if isinstance(write.over, Job) else row
        return _put(row, shards, expected, rev=row.rev - 1, job=over.job_id, closed=over.closed)
    if isinstance(row, Timer):
        # The timers of all generations begin with the same revision. With generation and anchor in the condition, a
        # stalled emitter loses against a replacement, and against a drain and resume that changed the anchor.
        generation = write.over.generation if isinstance(write.over, Timer) else row.generation
        return _put(row, shards, _SAME_TIMER, rev=row.rev - 1, generation=generation, anchor=row.anchor)
    return _put(row, shards, "rev = :rev", rev=row.rev - 1)


def _clear_state_wake(write: ClearStateWake, shards: Shards) -> Built:
    key, rev = kinds.key(ScheduleState, write.schedule_state.schedule), write.schedule_state.rev
    place = items.listed(write.schedule_state, key.pk, shards.wake)
    if not place:
        return update(key, "REMOVE wake_at, wake_shard, wake_cursor", "rev = :rev", rev=rev)
    expression = "SET wake_at = :wake_at, wake_shard = :wake_shard REMOVE wake_cursor"
    return update(key, expression, "rev = :rev", rev=rev, **place)


def _mark_woken(write: MarkWoken, _: Shards) -> Built:
    key, rev = kinds.key(ScheduleState, write.schedule_state.schedule), write.schedule_state.rev
    return update(key, "SET wake_cursor = :cursor", "rev = :rev", rev=rev, cursor=f"{rev}|{write.cursor}")


def _put_last_arrival(write: PutLastArrival, shards: Shards) -> Built:
    if write.over is None:
        return _put(write.last_arrival, shards, ABSENT)
    # Only this attribute changes: the row was not read, and newer code may keep more attributes in it.
    key = kinds.key_of(write.last_arrival)
    return update(key, "SET #at = :at", "#at = :over", at=write.last_arrival.at, over=write.over)


def _put_newest(write: PutNewest, _: Shards) -> Built:
    # Only these attributes change: the row was not read, and newer code may keep more attributes in it.
    newest, key = write.newest, kinds.key_of(write.newest)
    values = {"dataset": newest.dataset, "partition": newest.partition, "at": newest.at, "format": items.FORMAT}
    expression = "SET dataset = :dataset, #partition = :partition, #at = :at, #format = :format"
    return update(key, expression, "attribute_not_exists(#at) OR #at < :at", **values)


def _expect_newest(write: ExpectNewest, _: Shards) -> Built:
    key = kinds.key(NewestPartition, write.dataset)
    return check(key, ABSENT) if write.newest is None else check(key, "#at = :at", at=write.newest.at)


def _count_failure(write: CountFailure, _: Shards) -> Built:
    expression = "SET #count = if_not_exists(#count, :zero) + :one, schedule = :schedule, #format = :format"
    values = {"zero": 0, "one": 1, "schedule": write.schedule, "format": items.FORMAT}
    return update(kinds.key(Failures, write.schedule), expression, None, **values)


def _put_state(write: PutState, shards: Shards) -> Built:
    if write.over is None:
        return _put(write.schedule_state, shards, ABSENT)
    expected, values = _mode(write.over, write.over.mode)
    return _put(write.schedule_state, shards, expected, **values)


def _mode(schedule_state: ScheduleState, *modes: str) -> tuple[str, dict[str, Any]]:
    listed = ", ".join(f":m{index}" for index in range(len(modes)))
    values = {"generation": schedule_state.generation, "version": schedule_state.version, "rev": schedule_state.rev}
    expected_modes = {f"m{index}": mode for index, mode in enumerate(modes)}
    expected = f"generation = :generation AND version = :version AND rev = :rev AND #mode IN ({listed})"
    return expected, values | expected_modes


def _put_definition(write: PutDefinition, shards: Shards) -> Built:
    if write.over is None:
        return _put(write.definition, shards, ABSENT)
    # A concurrent request to count starts (`TrackStarts`) does not change the version and must not be undone.
    expected = "version = :over AND counted = :counted"
    values: dict[str, Any] = {"over": write.over, "counted": write.definition.counted}
    if write.edition is not None:
        expected, values["edition"] = f"{expected} AND edition = :edition", write.edition
    return _put(write.definition, shards, expected, **values)


def _expect_grants(write: ExpectGrants, _: Shards) -> Built:
    key = kinds.key(GrantsRow, write.namespace)
    if write.read is None:
        return check(key, ABSENT)
    # A namespace that was deleted and created again begins with the first version again, at another instant.
    return check(key, "version = :version AND updated_at = :at", version=write.read.version, at=write.read.updated_at)


def _expect_stops(write: ExpectStops, _: Shards) -> Built:
    key = kinds.key(StopsRow, write.namespace, write.copy)
    return check(key, ABSENT) if write.read is None else check(key, "rev = :rev", rev=write.read.rev)


def _end_timer(write: EndTimer, shards: Shards) -> Built:
    read = write.read
    values = {"rev": read.rev, "generation": read.generation, "anchor": read.anchor}
    if write.next is not None:
        return _put(write.next, shards, _SAME_TIMER, **values)
    return delete(read, _SAME_TIMER, **values)


def _remove_waiter(write: RemoveWaiter, _: Shards) -> Built:
    expected = "job_id = :job AND job_sort_key = :sort_key"
    return delete(write.row, expected, job=write.row.job_id, sort_key=write.row.job_sort_key)


def _expect_not_waiting(write: ExpectNotWaiting, _: Shards) -> Built:
    waiter, read = write.waiter, write.read
    if waiter.run is not None:
        key = kinds.key(Run, *waiter.run)
    else:
        key = kinds.key(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    if read is None:
        return check(key, ABSENT)
    if isinstance(read, Run):
        return check(key, "rev = :rev", rev=read.rev)
    # Another job with the same revision may have this sort key by now.
    return check(key, "rev = :rev AND job_id = :job", rev=read.rev, job=read.job_id)


def _delete_job(write: DeleteJob, _: Shards) -> Built:
    expected = "job_id = :job AND closed = :closed"
    values: dict[str, Any] = {"job": write.job.job_id, "closed": write.job.closed}
    if write.job.queued_in is not None:
        # The plan releases the permits of the job and removes its waiter, so the job must still be in the same queue.
        expected += " AND queued_in = :limit"
        values["limit"] = write.job.queued_in
    elif not write.job.closed:
        expected += " AND attribute_not_exists(queued_in)"
    if write.exact:
        expected += " AND rev = :rev"
        values["rev"] = write.job.rev
    return delete(write.job, expected, **values)


def _take_lease(write: TakeLease, shards: Shards) -> Built:
    if write.over is not None:
        own = f"leased_until = :over AND {_OWN_LEASE}"
        return _put(write.lease, shards, own, over=write.over, holder=write.lease.holder)
    return _put(write.lease, shards, f"{ABSENT} OR leased_until <= :now", now=write.now)


def _end_lease(write: EndLease, _: Shards) -> Built:
    own = f"leased_until = :until AND {_OWN_LEASE}"
    return delete(write.lease, own, until=write.lease.leased_until, holder=write.lease.holder)


def _expect_mode(write: ExpectMode, _: Shards) -> Built:
    expected, values = _mode(write.schedule_state, *write.modes)
    return check(kinds.key(ScheduleState, write.schedule_state.schedule), expected, **values)


def _gathering(write: ExpectOpen | CloseGeneration) -> Key:
    return kinds.key(Job, write.schedule, write.generation, GATHERING)


def _close_generation(write: CloseGeneration, shards: Shards) -> Built:
    key = _gathering(write)
    blank = {
        "format": items.FORMAT,
        "schedule": write.schedule,
        "generation": write.generation,
        "sort_key": GATHERING,
        "job_id": "",
        "kind": "gathering",
        "state": "PENDING_TRIGGER",
        "created_at": write.at,
        "rev": 1,
    }
    kept = ", ".join(f"#{name} = if_not_exists(#{name}, :{name})" for name in blank)
    wake = items.wake(write.at, key.pk, shards.wake)
    # When a tombstone is closed again, the step that handles it sets its expiry again once it is done.
    expression = f"SET {kept}, closed = :true, wake_shard = :shard, wake_at = :at REMOVE expires_at, #ttl"
    values = blank | {"true": True, "shard": wake["wake_shard"], "at": wake["wake_at"]}
    return update(key, expression, None, **values)


def _wake_backfill(write: WakeBackfill, shards: Shards) -> Built:
    key = kinds.key(Backfill, write.schedule, write.backfill)
    wake = items.wake(write.at, key.pk, shards.wake)
    expression = "SET rev = rev + :one, leases = :zero, wake_shard = :wake_shard, wake_at = :wake_at"
    return update(key, expression, "attribute_exists(pk)", one=1, zero=0, **wake)


_BUILDERS: dict[type, Callable[[Any, Shards], Built]] = {
    Create: lambda write, shards: _put(write.row, shards, ABSENT),
    Replace: _replace,
    Put: lambda write, shards: _put(write.row, shards, None),
    PutState: _put_state,
    PutDefinition: _put_definition,
    PutLastArrival: _put_last_arrival,
    PutNewest: _put_newest,
    TakeLease: _take_lease,
    EndTimer: _end_timer,
    ClearStateWake: _clear_state_wake,
    MarkWoken: _mark_woken,
    CountFailure: _count_failure,
    TrackStarts: lambda write, _: update(
        kinds.key(Definition, "workflow", write.workflow), "SET counted = :true", "attribute_exists(pk)", true=True
    ),
    CloseGeneration: _close_generation,
    WakeBackfill: _wake_backfill,
    Delete: lambda write, _: delete(write.row),
    DeleteJob: _delete_job,
    DeleteNotice: lambda write, _: delete(write.row, "rev = :rev", rev=write.row.rev),
    # The same attempt may have another dead letter by now, if its redrive was cancelled.
    DeleteDeadLetter: lambda write, _: delete(write.letter, "failed_at = :at", at=write.letter.failed_at),
    EndLease: _end_lease,
    RemoveDefinition: lambda write, _: delete(
        write.definition, "version = :version", version=write.definition.version
    ),
    RemoveSubscription: lambda write, _: delete(write.subscription, "since = :since", since=write.subscription.since),
    RemoveWaiter: _remove_waiter,
    ExpectBackfillRunning: lambda write, _: check(
        kinds.key(Backfill, write.schedule, write.backfill), "#state = :running", running="RUNNING"
    ),
    ExpectDefinition: lambda write, _: check(
        kinds.key_of(write.definition), "version = :version AND edition = :edition",
        version=write.definition.version, edition=write.definition.edition,
    ),
    ExpectGrants: _expect_grants,
    ExpectMode: _expect_mode,
    ExpectNewest: _expect_newest,
    ExpectStops: _expect_stops,
    ExpectNotWaiting: _expect_not_waiting,
    ExpectNotQueued: lambda write, _: check(kinds.key_of(write.waiter), ABSENT),
    ExpectNoRun: lambda write, _: check(kinds.key(Run, write.job.job_id, write.job.attempt), ABSENT),
    ExpectNoPartition: lambda write, _: check(kinds.key(Partition, write.dataset, write.values), ABSENT),
    ExpectOpen: lambda write, _: check(
        _gathering(write), "attribute_not_exists(closed) OR closed = :false", false=False
    ),
    ExpectNoneGathering: lambda write, _: check(
        kinds.key(Job, write.schedule, write.generation, write.sort_key), f"{ABSENT} OR closed = :true", true=True
    ),
    **limit_statements.BUILDERS,
}  # fmt: skip
