"""Each write of `core/writes` as a DynamoDB statement: the action, the key, the item or update, and the condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalicelib.aws.tables import backfill_statements, items, limit_statements
from chalicelib.aws.tables.expressions import Built, Shards, condition, update
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Timer
from chalicelib.core.rows.sort_keys import GATHERING
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
    ExpectDefinition,
    ExpectGrants,
    ExpectMode,
    ExpectNoneGathering,
    ExpectNoRun,
    ExpectNotQueued,
    ExpectNotWaiting,
    ExpectOpen,
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
    Write,
)

ABSENT = "attribute_not_exists(pk)"


@dataclass(frozen=True, slots=True)
class Statement:
    """One item of a transaction, or one conditional write: both take the same arguments."""

    action: str  # Put, Update, Delete or ConditionCheck
    key: Key
    arguments: dict[str, Any]


def statement(write: Write, table_names: dict[str, str], shards: Shards) -> Statement:
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


def _create(write: Create, shards: Shards) -> Built:
    return _put(write.row, shards, ABSENT)


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
        expected = "rev = :rev AND generation = :generation AND anchor = :anchor"
        generation = write.over.generation if isinstance(write.over, Timer) else row.generation
        return _put(row, shards, expected, rev=row.rev - 1, generation=generation, anchor=row.anchor)
    return _put(row, shards, "rev = :rev", rev=row.rev - 1)


def _put_row(write: Put, shards: Shards) -> Built:
    return _put(write.row, shards, None)


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
    key, values = kinds.key_of(write.last_arrival), {"at": write.last_arrival.at, "over": write.over}
    action, key, arguments = update(key, "SET #at = :at", "#at = :over", **values)
    return action, key, arguments | {"ExpressionAttributeNames": {"#at": "at"}}


def _put_newest(write: PutNewest, _: Shards) -> Built:
    # Only these attributes change: the row was not read, and newer code may keep more attributes in it. Three of the
    # names are reserved words in expressions.
    newest, key = write.newest, kinds.key_of(write.newest)
    values = {"dataset": newest.dataset, "partition": newest.partition, "at": newest.at, "format": items.FORMAT}
    expression = "SET dataset = :dataset, #partition = :partition, #at = :at, #format = :format"
    action, key, arguments = update(key, expression, "attribute_not_exists(#at) OR #at < :at", **values)
    names = {"#partition": "partition", "#at": "at", "#format": "format"}
    return action, key, arguments | {"ExpressionAttributeNames": names}


def _count_failure(write: CountFailure, _: Shards) -> Built:
    # "count" is a reserved word in expressions.
    expression = "SET #count = if_not_exists(#count, :zero) + :one, schedule = :schedule, #format = :format"
    values = {"zero": 0, "one": 1, "schedule": write.schedule, "format": items.FORMAT}
    action, key, arguments = update(kinds.key(Failures, write.schedule), expression, None, **values)
    return action, key, arguments | {"ExpressionAttributeNames": {"#count": "count", "#format": "format"}}


def _put_state(write: PutState, shards: Shards) -> Built:
    if write.over is None:
        return _put(write.schedule_state, shards, ABSENT)
    action, key, arguments = _put(write.schedule_state, shards, None)
    return action, key, arguments | _mode_condition(write.over, (write.over.mode,))


def _mode_condition(schedule_state: ScheduleState, modes: tuple[str, ...]) -> dict[str, Any]:
    listed = ", ".join(f":m{index}" for index in range(len(modes)))
    values = {"generation": schedule_state.generation, "version": schedule_state.version, "rev": schedule_state.rev}
    expected_modes = {f"m{index}": mode for index, mode in enumerate(modes)}
    condition_text = f"generation = :generation AND version = :version AND rev = :rev AND #mode IN ({listed})"
    return condition(condition_text, values | expected_modes) | {"ExpressionAttributeNames": {"#mode": "mode"}}


def _put_definition(write: PutDefinition, shards: Shards) -> Built:
    if write.over is None:
        return _put(write.definition, shards, ABSENT)
    # A concurrent request to count starts (`TrackStarts`) does not change the version and must not be undone.
    expected = "version = :over AND counted = :counted"
    values: dict[str, Any] = {"over": write.over, "counted": write.definition.counted}
    if write.edition is not None:
        expected, values["edition"] = f"{expected} AND edition = :edition", write.edition
    return _put(write.definition, shards, expected, **values)


def _expect_definition(write: ExpectDefinition, _: Shards) -> Built:
    found = write.definition
    values = {"version": found.version, "edition": found.edition}
    return "ConditionCheck", kinds.key_of(found), condition("version = :version AND edition = :edition", values)


def _expect_grants(write: ExpectGrants, _: Shards) -> Built:
    key = kinds.key(GrantsRow, write.namespace)
    if write.read is None:
        return "ConditionCheck", key, condition(ABSENT, {})
    # A namespace that was deleted and created again begins with the first version again, at another instant.
    values = {"version": write.read.version, "at": write.read.updated_at}
    return "ConditionCheck", key, condition("version = :version AND updated_at = :at", values)


def _track_starts(write: TrackStarts, _: Shards) -> Built:
    key = kinds.key(Definition, "workflow", write.workflow)
    return update(key, "SET counted = :true", "attribute_exists(pk)", true=True)


def _remove_definition(write: RemoveDefinition, _: Shards) -> Built:
    found = write.definition
    return "Delete", kinds.key_of(found), condition("version = :version", {"version": found.version})


def _end_timer(write: EndTimer, shards: Shards) -> Built:
    read = write.read
    expected = "rev = :rev AND generation = :generation AND anchor = :anchor"
    values = {"rev": read.rev, "generation": read.generation, "anchor": read.anchor}
    if write.next is not None:
        return _put(write.next, shards, expected, **values)
    return "Delete", kinds.key_of(read), condition(expected, values)


def _remove_subscription(write: RemoveSubscription, _: Shards) -> Built:
    found = write.subscription
    return "Delete", kinds.key_of(found), condition("since = :since", {"since": found.since})


def _delete(write: Delete, _: Shards) -> Built:
    return "Delete", kinds.key_of(write.row), {}


def _delete_notice(write: DeleteNotice, _: Shards) -> Built:
    return "Delete", kinds.key_of(write.row), condition("rev = :rev", {"rev": write.row.rev})


def _delete_dead_letter(write: DeleteDeadLetter, _: Shards) -> Built:
    # The same attempt may have another dead letter by now, if its redrive was cancelled.
    return "Delete", kinds.key_of(write.letter), condition("failed_at = :at", {"at": write.letter.failed_at})


def _remove_waiter(write: RemoveWaiter, _: Shards) -> Built:
    expected = "job_id = :job AND job_sort_key = :sort_key"
    return (
        "Delete",
        kinds.key_of(write.row),
        condition(expected, {"job": write.row.job_id, "sort_key": write.row.job_sort_key}),
    )


def _expect_not_waiting(write: ExpectNotWaiting, _: Shards) -> Built:
    waiter = write.waiter
    if waiter.run is not None:
        key = kinds.key(Run, *waiter.run)
    else:
        key = kinds.key(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    if write.read is None:
        return "ConditionCheck", key, condition(ABSENT, {})
    if isinstance(write.read, Run):
        return "ConditionCheck", key, condition("rev = :rev", {"rev": write.read.rev})
    # Another job with the same revision may have this sort key by now.
    return (
        "ConditionCheck",
        key,
        condition("rev = :rev AND job_id = :job", {"rev": write.read.rev, "job": write.read.job_id}),
    )


def _expect_not_queued(write: ExpectNotQueued, _: Shards) -> Built:
    return "ConditionCheck", kinds.key_of(write.waiter), condition(ABSENT, {})


def _expect_no_run(write: ExpectNoRun, _: Shards) -> Built:
    return "ConditionCheck", kinds.key(Run, write.job.job_id, write.job.attempt), condition(ABSENT, {})


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
    return "Delete", kinds.key_of(write.job), condition(expected, values)


def _take_lease(write: TakeLease, shards: Shards) -> Built:
    if write.over is not None:
        own = "leased_until = :over AND holder = :holder"
        return _put(write.lease, shards, own, over=write.over, holder=write.lease.holder)
    return _put(write.lease, shards, f"{ABSENT} OR leased_until <= :now", now=write.now)


def _end_lease(write: EndLease, _: Shards) -> Built:
    own = {"until": write.lease.leased_until, "holder": write.lease.holder}
    return "Delete", kinds.key_of(write.lease), condition("leased_until = :until AND holder = :holder", own)


def _expect_mode(write: ExpectMode, _: Shards) -> Built:
    schedule_state = write.schedule_state
    return (
        "ConditionCheck",
        kinds.key(ScheduleState, schedule_state.schedule),
        _mode_condition(schedule_state, write.modes),
    )


def _expect_open(write: ExpectOpen, _: Shards) -> Built:
    expected = "attribute_not_exists(closed) OR closed = :false"
    return (
        "ConditionCheck",
        kinds.key(Job, write.schedule, write.generation, GATHERING),
        condition(expected, {"false": False}),
    )


def _expect_none_gathering(write: ExpectNoneGathering, _: Shards) -> Built:
    expected = f"{ABSENT} OR closed = :true"
    return (
        "ConditionCheck",
        kinds.key(Job, write.schedule, write.generation, GATHERING),
        condition(expected, {"true": True}),
    )


def _close_generation(write: CloseGeneration, shards: Shards) -> Built:
    key = kinds.key(Job, write.schedule, write.generation, GATHERING)
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
    names = {f"#{name}": name for name in blank}
    kept = ", ".join(f"#{name} = if_not_exists(#{name}, :{name})" for name in blank)
    wake = items.wake(write.at, key.pk, shards.wake)
    # When a tombstone is closed again, the step that handles it sets its expiry again once it is done.
    expression = f"SET {kept}, closed = :true, wake_shard = :shard, wake_at = :at REMOVE expires_at, #ttl"
    values = blank | {"true": True, "shard": wake["wake_shard"], "at": wake["wake_at"]}
    action, key, arguments = update(key, expression, None, **values)
    return action, key, arguments | {"ExpressionAttributeNames": names | {"#ttl": "ttl"}}


_BUILDERS: dict[type, Callable[[Any, Shards], Built]] = {
    Create: _create,
    Replace: _replace,
    Put: _put_row,
    PutState: _put_state,
    PutDefinition: _put_definition,
    ExpectDefinition: _expect_definition,
    ExpectGrants: _expect_grants,
    TrackStarts: _track_starts,
    RemoveDefinition: _remove_definition,
    EndTimer: _end_timer,
    RemoveSubscription: _remove_subscription,
    Delete: _delete,
    DeleteNotice: _delete_notice,
    DeleteDeadLetter: _delete_dead_letter,
    RemoveWaiter: _remove_waiter,
    ExpectNotWaiting: _expect_not_waiting,
    ExpectNotQueued: _expect_not_queued,
    ExpectNoRun: _expect_no_run,
    DeleteJob: _delete_job,
    TakeLease: _take_lease,
    EndLease: _end_lease,
    ExpectMode: _expect_mode,
    ExpectOpen: _expect_open,
    ExpectNoneGathering: _expect_none_gathering,
    CloseGeneration: _close_generation,
    ClearStateWake: _clear_state_wake,
    MarkWoken: _mark_woken,
    PutLastArrival: _put_last_arrival,
    PutNewest: _put_newest,
    CountFailure: _count_failure,
    **limit_statements.BUILDERS,
    **backfill_statements.BUILDERS,
}
