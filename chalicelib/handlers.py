"""The handlers of the Lambdas: decode the event, call the step, report failures message by message."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from chalicelib import collector  # noqa: F401 - sets how often the garbage collector runs, before other imports
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import parse_instant
from chalicelib.core.rows.ref import Ref, events_of
from chalicelib.log import logger
from chalicelib.ports import Ports
from chalicelib.wiring import failed_messages, metrics, ports

if TYPE_CHECKING:
    from chalicelib.core.events.alarms import AlarmChange
    from chalicelib.flow.fires.zone_rules import Follower
    from chalicelib.flow.ingest.outbox import Envelope

gc.freeze()  # what is imported by now stays, so a full search need not visit it


def measured(event: Any, handle: Callable[[Any], Any]) -> Any:
    """Middleware of every Lambda: write the metrics of the invocation at its end, even if it fails."""
    try:
        return handle(event)
    finally:
        metrics().flush()


def serves_routes() -> bool:
    """Whether this process may serve the API. Lambda names the handler of its function, ``app.check`` for example.

    The others do without the routes, whose import delays the first invocation. Outside of Lambda no handler is named:
    Chalice reads the routes for the template, and tests call them.
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
    """
    handler = os.environ.get("_HANDLER", "app.app")
    return handler == "app.app" or not handler.startswith("app.")  # a layer may put its own handler before ours


def tick() -> dict[str, int]:
    """One tick: prepare the fires of the next minute, hint the jobs that wake soon, then sweep overdue rows. After a
    deployment with other rules of time zones, bring stored instants to them.

    Returns the counts of the steps. The first three share what they read of the wake indexes. One failure does not stop
    the others; the errors are raised at the end.
    """
    from chalicelib.flow.each import run_each
    from chalicelib.flow.fires.emit import emit_due
    from chalicelib.flow.shards import read_once
    from chalicelib.flow.system.sweep import hint_soon, sweep_all

    done: dict[str, int] = {}
    shared = read_once(ports())
    began = shared.clock.now()
    run_each(
        (
            *(("emitted", emit_due), ("soon", hint_soon), ("hinted", lambda ports: sweep_all(ports, began))),
            ("zones", lambda _: follower().step(ports())),
        ),
        lambda step: done.update({step[0]: step[1](shared)}),
    )
    if ports().settings.keep_warm:
        ports().hints.keep_warm()
    logger.info("tick", extra=done)
    return done


@cache
def follower() -> Follower:
    from chalicelib.flow.fires.zone_rules import Follower

    return Follower()


def objects(event: dict[str, Any]) -> dict[str, Any]:
    """Handle notifications of new objects from SQS, sent by S3 or by EventBridge. Returns the messages that failed.

    A malformed message fails alone, and SQS moves it to the dead-letter queue after its last delivery. So does a record
    that fails beside others: it becomes a message of its own.
    """
    from chalicelib.aws.s3.notifications import objects_of, parts_of
    from chalicelib.flow.ingest.objects import match_object

    def part(body: str) -> None:
        for created in objects_of(body):
            outcome = match_object(ports(), created)
            logger.info("object", extra={"bucket": created.bucket, "key": created.key, "outcome": outcome})

    def each(body: str, message_id: str) -> None:
        failed, parts = [], parts_of(body)
        for record in parts:
            try:
                part(record)
            except Exception as error:
                failed.append((record, error))
        if len(failed) == len(parts):
            errors = [error for _, error in failed]
            raise errors[0] if len(errors) == 1 else ExceptionGroup(f"{len(errors)} records failed", errors)
        for record, cause in failed:
            logger.error("record failed", exc_info=cause, extra={"message_id": message_id})
            failed_messages(event["Records"][0]["eventSourceARN"]).send_again(record)

    return _response(event, _failures(event, each))


def hints(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    """Handle hints from SQS. Returns the messages that failed: those with a ref that failed.

    No ref is handled before it is due: the handler waits for the last seconds. Refs that are due at one instant are
    handled together, no matter which messages name them. ``context`` is that of the runtime, with the remaining time.
    """
    from chalicelib.aws.hints import decode, is_early
    from chalicelib.flow.system.dispatch import dispatch_together

    timed = _with_its_end(ports(), context)
    named: dict[int, dict[Ref, list[str]]] = {}

    def collect(body: str, message_id: str) -> None:
        refs, due = decode(body)
        now = ports().clock.now()
        if is_early(sum(map(events_of, refs)), due, now):
            ports().hints.send_all([(due, refs)], now, must=True)
            return
        for ref in refs:
            named.setdefault(due, {}).setdefault(ref, []).append(message_id)

    failed = _failures(event, collect)
    for due, messages in sorted(named.items(), key=lambda group: group[0]):
        for ref in dispatch_together(timed, tuple(messages), due):
            failed += [message for message in messages[ref] if message not in failed]
    return _response(event, failed)


def _with_its_end(ports: Ports, context: Any) -> Ports:
    """The ports with the instant at which the runtime stops this invocation."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    return ports if left is None else replace(ports, ends_at=ports.clock.now() + int(left()))


def run_state(event: dict[str, Any]) -> str:
    """Apply the state change of a run that EventBridge sends. Returns what was done, in words. Raises KeyError for an
    event of another source."""
    from chalicelib.core.targets import registry
    from chalicelib.flow.runs.complete import on_state_change

    change = registry.of_event(event).read_event(event)
    outcome = on_state_change(ports(), change)
    logger.info("run state", extra={"target_id": change.target_id, "state": change.state, "outcome": outcome})
    return outcome


def custom(event: dict[str, Any]) -> dict[str, Any]:
    """Handle custom events and alarm changes from SQS. Returns the messages that failed.

    A malformed or refused event goes to the dead-letter queue at once, which has an alarm. Any other failure may be
    temporary: SQS delivers the message again, for eight hours.
    """

    def each(body: str, message_id: str) -> None:
        try:
            ingest = _read_of_bus(json.loads(body))
        except (KeyError, RecursionError, TypeError, ValueError):
            return refused(body, message_id)
        try:
            ingest()
        except SluiceError as error:
            if error.code in ("unavailable", "throttled", "changed_meanwhile", "internal"):
                raise
            refused(body, message_id)

    def refused(body: str, message_id: str) -> None:
        logger.exception("custom event refused", extra={"message_id": message_id})
        failed_messages(event["Records"][0]["eventSourceARN"]).set_aside(body)

    return _response(event, _failures(event, each))


def _read_of_bus(event: dict[str, Any]) -> Callable[[], object]:
    """The function that ingests an event of the bus. Raises KeyError, TypeError or ValueError for a malformed event."""
    from chalicelib.aws.alarm_events import SOURCE, change_of

    if event["source"] == SOURCE:
        return partial(_match_alarm, change_of(event))
    return partial(_post_custom, *_read_custom(event))


def _match_alarm(change: AlarmChange) -> None:
    from chalicelib.flow.ingest.outbox import match_alarm

    outcome = match_alarm(ports(), change)
    logger.info("alarm", extra={"alarm": change.alarm, "state": change.state, "outcome": outcome})


def _read_custom(event: dict[str, Any]) -> tuple[str, Envelope]:
    """The namespace and the envelope of a custom event. Raises KeyError, TypeError or ValueError if it is malformed.

    ``source`` names the namespace, ``detail-type`` the type of the event, ``detail`` the payload. EventBridge delivers
    at least once and keeps the id, so a repeat is the same event.
    https://docs.aws.amazon.com/eventbridge/latest/ref/events-structure.html"""
    from chalicelib.flow.ingest.outbox import Envelope
    from chalicelib.web.bodies import NewEvent

    namespace = str(event["source"]).removeprefix("sluice/")
    body = NewEvent(type=event["detail-type"], timestamp=event["time"], payload=event["detail"], id=event["id"])
    return namespace, Envelope(body.type, event["id"], body.payload, parse_instant(event["time"]))


def _post_custom(namespace: str, envelope: Envelope) -> str:
    from chalicelib.flow.ingest.outbox import post
    from chalicelib.flow.lookup import require

    require(ports(), "namespace", namespace)
    (posted,) = post(ports(), namespace, [envelope])
    logger.info("custom event", extra={"namespace": namespace, "type": envelope.kind, "event": posted.id})
    return posted.id


def lake(event: dict[str, Any]) -> dict[str, Any]:
    """Export changes of the runs table from its stream, and keep how the periods of their schedules have ended. Returns
    the first that failed: the stream restarts there.

    https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
    """
    from chalicelib.aws.s3.history import audit_record_of, change_of, sequence_of
    from chalicelib.flow.history.export import keep, land
    from chalicelib.wiring import SystemClock, audit_log, history_lake

    changes, records, failed = [], [], []
    for record in event["Records"]:
        try:
            changes.append(change_of(record))
            records.append(audit_record_of(record))
        except Exception:  # one row that cannot be read does not stop the others
            logger.exception("row not read", extra={"keys": record["dynamodb"].get("Keys")})
            failed.append(sequence_of(record))
    store, prices = history_lake()
    failed += land(store, [change for change in changes if change is not None], prices, SystemClock().now())
    log = audit_log()
    if log is not None:
        failed += keep(log, [record for record in records if record is not None])
    _keep_ends([change.row.schedule for change in changes if change is not None])
    first = min(failed, key=int, default=None)
    return {"batchItemFailures": [] if first is None else [{"itemIdentifier": first}]}


def lineage(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    """Send the events of OpenLineage about changes of the runs table. Returns the first change whose events are to be
    sent later: the stream restarts there. ``context`` is that of the runtime, with the remaining time."""
    from chalicelib.aws.s3.history import change_of, sequence_of
    from chalicelib.flow.openlineage.report import Changed, Unread, said
    from chalicelib.wiring import lineage_reporter

    reporter, until = lineage_reporter()
    until.at = _with_its_end(ports(), context).ends_at
    changes, unread = [], []
    for record in event["Records"]:
        keys = record["dynamodb"].get("Keys", {})
        try:
            change = change_of(record)
        except Exception as error:  # one row that cannot be read does not stop the others
            logger.exception("row not read", extra={"keys": keys})
            unread.append(Unread(sequence_of(record), keys, said(error)))
            continue
        if change is not None:
            written = int(float(record["dynamodb"]["ApproximateCreationDateTime"]) * 1000)
            changes.append(Changed(change.sequence, change.row, record["eventName"] == "INSERT", written, keys))
    first = min(reporter.report(changes, unread), key=int, default=None)
    return {"batchItemFailures": [] if first is None else [{"itemIdentifier": first}]}


def _keep_ends(schedules: list[str]) -> None:
    from chalicelib.flow.history.period_ends import keep

    try:
        logger.info("ends of periods", extra={"rows": keep(ports(), schedules)})
    except Exception:  # the history is exported all the same, and the next run of a schedule tries again
        logger.exception("ends of periods not written")


def _response(event: dict[str, Any], failed: list[str]) -> dict[str, Any]:
    """The batch response with the failed messages: SQS delivers only these again. They are made visible soon, before
    their visibility timeout ends.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
    """
    records = [record for record in event["Records"] if record["messageId"] in failed]
    if records:
        failed_messages(records[0]["eventSourceARN"]).come_again(records)
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _failures(event: dict[str, Any], each: Callable[[str, str], None]) -> list[str]:
    """Handle messages one by one. Returns the ids of those that failed."""
    failed: list[str] = []
    for record in event["Records"]:
        try:
            each(record["body"], record["messageId"])
        except Exception:  # one failure does not stop the others, and SQS delivers this message again
            logger.exception("message failed", extra={"message_id": record["messageId"]})
            failed.append(record["messageId"])
    return failed
