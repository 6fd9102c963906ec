"""Between the Lambda runtime and the flows: unwrap the event, call the one flow, report failures message by message."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND, parse_instant
from chalicelib.core.rows.ref import Ref
from chalicelib.log import logger
from chalicelib.ports import Ports
from chalicelib.wiring import failed_messages, metrics, ports

if TYPE_CHECKING:
    from chalicelib.core.events.alarms import AlarmChange
    from chalicelib.flow.ingest.custom_events import Envelope

# A hint that comes this much earlier than it was to come is waited for; any other is sent on its way again.
MAX_WAIT = 2 * SECOND


def measured(event: Any, handle: Callable[[Any], Any]) -> Any:
    """Middleware of every Lambda: what an invocation measured is written at its end, also if it failed."""
    try:
        return handle(event)
    finally:
        metrics().flush()


def tick() -> dict[str, int]:
    """One tick: prepare the fires of the next minute, then find what is overdue."""
    from chalicelib.flow.each import run_each
    from chalicelib.flow.fires.emit import emit_due
    from chalicelib.flow.system.sweep import hint_soon, sweep_all

    done: dict[str, int] = {}
    began = ports().clock.now()
    run_each(
        (("emitted", emit_due), ("soon", hint_soon), ("hinted", lambda ports: sweep_all(ports, began))),
        lambda step: done.update({step[0]: step[1](ports())}),
    )
    logger.info("tick", extra=done)
    return done


def objects(event: dict[str, Any]) -> dict[str, Any]:
    """News of objects out of SQS, from S3 or from EventBridge. A message that is none goes to the dead letters; its
    neighbours are not harmed."""
    from chalicelib.aws.s3.notifications import objects_of
    from chalicelib.flow.ingest.objects import match_object

    def each(body: str) -> None:
        for created in objects_of(body):
            outcome = match_object(ports(), created)
            logger.info("object", extra={"bucket": created.bucket, "key": created.key, "outcome": outcome})

    return _one_by_one(event, each)


def hints(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    """Hints out of SQS. Nothing is acted on before it is due: the last fraction is waited out here. What is due at one
    instant is attended to together, whichever messages name it; a message fails if something that it names does.

    ``context`` is the runtime's: it says how much time this invocation has left."""
    from chalicelib.aws.hints import decode, head_start
    from chalicelib.flow.system.dispatch import dispatch_together

    timed = _with_its_end(ports(), context)
    named: dict[int, dict[Ref, list[str]]] = {}

    def sort(body: str, message_id: str) -> None:
        refs, due = decode(body)
        now = ports().clock.now()
        if due - now > head_start(len(refs)) + MAX_WAIT:
            ports().hints.send_all([(due, refs)], now, must=True)
            return
        for ref in refs:
            named.setdefault(due, {}).setdefault(ref, []).append(message_id)

    failed = _failures(event, sort)
    for due, messages in sorted(named.items(), key=lambda group: group[0]):
        for ref in dispatch_together(timed, tuple(messages), due):
            failed += [message for message in messages[ref] if message not in failed]
    return _told(event, failed)


def _with_its_end(ports: Ports, context: Any) -> Ports:
    """The ports, knowing when the runtime will stop this invocation."""
    left = getattr(context, "get_remaining_time_in_millis", None)
    return ports if left is None else replace(ports, ends_at=ports.clock.now() + int(left()))


def run_state(event: dict[str, Any]) -> str:
    """One state change of a run at its target, as EventBridge tells it. Raises KeyError for an event that no target
    sends."""
    from chalicelib.core.targets import registry
    from chalicelib.flow.runs.complete import on_state_change

    change = registry.of_event(event).read_event(event)
    outcome = on_state_change(ports(), change)
    logger.info("run state", extra={"target_id": change.target_id, "state": change.state, "outcome": outcome})
    return outcome


def custom(event: dict[str, Any]) -> dict[str, Any]:
    """Events of the bus out of SQS: custom ones, and changes of alarms. An event that is malformed, or refused, goes to
    the dead letters at once, and an alarm tells of it. Any other failure may pass: the message comes again, for eight
    hours."""

    def each(body: str, message_id: str) -> None:
        try:
            ingest = _read_of_bus(json.loads(body))
        except (KeyError, TypeError, ValueError):
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

    return _told(event, _failures(event, each))


def _read_of_bus(event: dict[str, Any]) -> Callable[[], object]:
    """How to ingest an event of the bus. Raises KeyError, TypeError or ValueError if the event is malformed."""
    from chalicelib.aws.alarm_events import SOURCE, change_of

    if event["source"] == SOURCE:
        return partial(_match_alarm, change_of(event))
    return partial(_post_custom, *_read_custom(event))


def _match_alarm(change: AlarmChange) -> None:
    from chalicelib.flow.ingest.alarms import match_alarm

    outcome = match_alarm(ports(), change)
    logger.info("alarm", extra={"alarm": change.alarm, "state": change.state, "outcome": outcome})


def custom_event(event: dict[str, Any]) -> str:
    """Take in one custom event from the event bus, and return its id.

    ``source`` names the namespace, ``detail-type`` the type of the event, ``detail`` the payload. EventBridge delivers
    at least once and keeps the id, so a repeat is the same event. Raises KeyError or ValueError if the event is
    malformed, SluiceError if it is refused.
    https://docs.aws.amazon.com/eventbridge/latest/ref/events-structure.html"""
    return _post_custom(*_read_custom(event))


def _read_custom(event: dict[str, Any]) -> tuple[str, Envelope]:
    """The namespace of a custom event, and what is posted there."""
    from chalicelib.flow.ingest.custom_events import Envelope
    from chalicelib.web.bodies import NewEvent

    namespace = event["source"].removeprefix("sluice/")
    told = NewEvent(type=event["detail-type"], timestamp=event["time"], payload=event["detail"], id=event["id"])
    return namespace, Envelope(told.type, event["id"], told.payload, parse_instant(event["time"]))


def _post_custom(namespace: str, envelope: Envelope) -> str:
    from chalicelib.flow.ingest.custom_events import post
    from chalicelib.flow.lookup import require

    require(ports(), "namespace", namespace)
    (posted,) = post(ports(), namespace, [envelope])
    logger.info("custom event", extra={"namespace": namespace, "type": envelope.kind, "event": posted.id})
    return posted.id


def lake(event: dict[str, Any]) -> dict[str, Any]:
    """Changes of the runs table, out of its stream. The stream goes on before the first that failed.

    https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
    """
    from chalicelib.aws.s3.history import change_of, sequence_of
    from chalicelib.flow.history.export import land
    from chalicelib.wiring import SystemClock, history_lake

    changes, failed = [], []
    for record in event["Records"]:
        try:
            changes.append(change_of(record))
        except Exception:  # one row that cannot be read keeps no other from the lake
            logger.exception("row not read", extra={"keys": record["dynamodb"].get("Keys")})
            failed.append(sequence_of(record))
    store, prices = history_lake()
    failed += land(store, [change for change in changes if change is not None], prices, SystemClock().now())
    first = min(failed, key=int, default=None)
    return {"batchItemFailures": [] if first is None else [{"itemIdentifier": first}]}


def _one_by_one(event: dict[str, Any], each: Callable[[str], None]) -> dict[str, Any]:
    """Handle each message by itself and name those that failed: SQS brings back these alone.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
    """
    return _told(event, _failures(event, lambda body, _: each(body)))


def _told(event: dict[str, Any], failed: list[str]) -> dict[str, Any]:
    """The answer that names what failed. These messages come back soon, not when their visibility ends."""
    records = [record for record in event["Records"] if record["messageId"] in failed]
    if records:
        failed_messages(records[0]["eventSourceARN"]).come_again(records)
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _failures(event: dict[str, Any], each: Callable[[str, str], None]) -> list[str]:
    """Handle each message by itself; the ids of those that failed."""
    failed: list[str] = []
    for record in event["Records"]:
        try:
            each(record["body"], record["messageId"])
        except Exception:  # whatever it is, its neighbours go on and the queue brings it back
            logger.exception("message failed", extra={"message_id": record["messageId"]})
            failed.append(record["messageId"])
    return failed
