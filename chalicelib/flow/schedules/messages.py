"""What users do to messages: put, get, list, delete (L16). A put is in effect when it is answered, and starts over.

A message that fires within the horizon of the last tick has its fires prepared by the put. Any other put costs two
reads and one transaction (docs/internals/messages.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.definitions import message as definition_message
from chalicelib.core.definitions.data import Carried
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.documents import Described
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import upcoming as fire_upcoming
from chalicelib.core.instants import SECOND, Instant, iso, iso_or_none
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle, messages
from chalicelib.core.writes import Write
from chalicelib.flow import lookup
from chalicelib.flow.definitions import addresses, data, of_kind, store
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.lookup import definition_of
from chalicelib.flow.schedules import stops
from chalicelib.ports import MAX_CONFLICTS, Page, Ports

_LISTED = "sluice message list -a {} lists those that have sends left"


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored message: its schedule state, definition, own target if it has one, and next fire."""

    schedule_state: ScheduleState
    schedule: Schedule
    target: Mapping[str, Any] | None
    next_fire: Instant | None


def put(
    ports: Ports, app: str, name: str, message: Message, by: str, if_match: int | None = None
) -> tuple[Stored, bool]:
    """Create or replace a message. Returns the stored message and whether it is new.

    Unsent fires of the replaced message are never sent. Raises SluiceError for a bad reference, and if ``if_match`` is
    not the present version.
    """
    full = ids.message_schedule(app, name)
    row = _check_target(ports, app, message)
    bucket = row.document.get("data_bucket") if row else data.bucket_of(ports, app, message)
    for _ in range(MAX_CONFLICTS):
        seen = stops.read_ahead(ports, [full], kinds.key(ScheduleState, full))  # in one call
        schedule_state, now = seen.rows.get(ScheduleState, full), ports.clock.now()
        alive = schedule_state if schedule_state is not None and schedule_state.exists else None
        if if_match is not None and if_match != (alive.version if alive else None):
            raise errors.changed_meanwhile(f"message {shown(full)}")
        schedule = data.stored(ports, full, message.to_schedule(full, now), bucket)
        store.check_size(schedule.model_dump(mode="json"))
        covering = stops.covering(seen, full, schedule.tags)
        after, plan = covering.applied(*messages.put(full, schedule, message.target, schedule_state, now, by), now)
        data.keep(ports, full, message, bucket)
        if ports.ledger.commit(plan) is None:
            _wake_changed(ports, alive, after, plan, now)
            target = message.target.model_dump(mode="json") if message.target is not None else None
            return Stored(after, schedule, target, _first(plan)), alive is None
    raise errors.changed_meanwhile(f"message {shown(full)}")


def get(ports: Ports, app: str, name: str) -> Stored:
    """A message that has fires left. Raises ``not_found`` (404) after its last fire was sent."""
    full = ids.message_schedule(app, name)
    return _stored(ports, *_living(ports, full))


def delete(ports: Ports, app: str, name: str, by: str, if_match: int | None = None) -> None:
    """Delete a message: once this returns, none of its fires is sent any more (C13)."""
    full = ids.message_schedule(app, name)
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = _living(ports, full)
        if if_match is not None and if_match != schedule_state.version:
            raise errors.changed_meanwhile(f"message {shown(full)}")
        timer = lookup.timer_of(ports, schedule_state, schedule)
        _, plan = lifecycle.delete(schedule_state, schedule, ports.clock.now(), by, timer)
        if ports.ledger.commit(plan) is None:
            drain(ports, full, schedule_state.generation)
            return
    raise errors.changed_meanwhile(f"message {shown(full)}")


def delete_all(ports: Ports, app: str, by: str) -> None:
    """Delete every message of an app, one by one. A repeat finishes an interrupted request."""
    for row in of_kind.messages_of(ports, app):
        name = row.schedule.rpartition(".")[2].removeprefix(ids.MESSAGE)
        try:
            delete(ports, app, name, by)
        except SluiceError as error:
            if error.code != "not_found":  # the message has sent its last fire since it was listed
                raise


def of_app(ports: Ports, app: str, limit: int, cursor: str | None) -> Page[Stored]:
    """A page of the messages of an app, by name. It may hold fewer than ``limit``: messages without fires are left
    out."""
    lookup.require(ports, "app", app)
    page = ports.catalog.messages(app, limit, cursor)
    found = [_or_none(ports, row.schedule) for row in page.items]
    return Page(tuple(each for each in found if each is not None), page.cursor)


def view(stored: Stored) -> dict[str, Any]:
    """A message as the API and the CLI show it: its fields, with instants instead of spans, and its next fire."""
    schedule_state, schedule = stored.schedule_state, stored.schedule
    document = schedule.model_dump(mode="json")
    trigger = document["trigger"]
    where = {"target": stored.target} if stored.target is not None else {"workflow": schedule.workflow}
    own = (
        {"target": None}
        if schedule.workflow == ids.default_workflow(schedule_state.schedule.rpartition(".")[0])
        else where
    )
    carried = {name: document[name] for name in Carried.model_fields if name in document}
    return {
        "name": shown(schedule_state.schedule),
        "kind": "message",
        "schedule": trigger.get("expression"),
        "due_time": trigger.get("due_time"),
        "repeats": trigger.get("repeats"),
        "ttl": document["ttl"],
        "zone": document["zone"],
        **own,
        **carried,
        **{name: document[name] for name in Described.model_fields},
        "next_fire": iso_or_none(stored.next_fire),
        "version": schedule_state.version,
        "updated_at": iso(schedule_state.updated_at),
        "updated_by": schedule_state.by,
    }


def shown(full: str) -> str:
    """The full name of a message as users write it, without the internal prefix of its schedule."""
    app, _, name = full.rpartition(".")
    return f"{app}.{name.removeprefix(ids.MESSAGE)}"


def known(ports: Ports, app: str, name: str) -> str:
    """The full name of a message's schedule. Raises ``not_found`` (404) if there never was such a message."""
    full = ids.message_schedule(app, name)
    if ports.rows.get(ScheduleState, full) is None:
        raise errors.not_found("message", shown(full), _LISTED.format(app))
    return full


def _check_target(ports: Ports, app: str, message: Message) -> Definition | None:
    """Raise SluiceError if the message has no valid target or workflow. Returns the app's row if it was read.

    Makes as few reads as possible, because a put of a message has to be cheap.
    """
    if message.target is None and message.workflow is None:
        # The default workflow is written with its app, so the app exists if the workflow does.
        if ports.rows.get(Definition, "workflow", ids.default_workflow(app)) is not None:
            return None
        lookup.require(ports, "app", app)
        hint = "name a target or a workflow, or deploy the app with a default_target"
        raise errors.invalid(
            "target", f"a target or a workflow, because app {app} has no default_target", "neither", hint
        )
    if message.target is not None:
        addresses.check_target(
            ports, app.partition(".")[0], message.target.model_dump(mode="json"), "target", lately=True
        )
    row = ports.rows.get(Definition, "app", app)
    if row is None:
        raise errors.not_found("app", app, "create the app first")
    if message.workflow is not None:
        _check_workflow(ports, app, message)
    return row


def _check_workflow(ports: Ports, app: str, message: Message) -> None:
    """Raise SluiceError unless the workflow exists in the namespace of the app.

    A workflow that messages use cannot be deleted. That check reads the messages of one namespace only: there may be
    very many.
    """
    namespace = app.partition(".")[0]
    full = definition_message.workflow_of(message, app)
    if full.partition(".")[0] != namespace:
        raise errors.invalid(
            "workflow", f"a workflow of namespace {namespace}", full, "name a workflow of the namespace of the message"
        )
    if ports.rows.get(Definition, "workflow", full) is None:
        known = [row.name for row in ports.catalog.definitions("workflow", app, 1000, None).items]
        raise errors.unknown_reference("workflow", "workflow", full, known)


def _wake_changed(
    ports: Ports, before: ScheduleState | None, after: ScheduleState, plan: list[Write], now: Instant
) -> None:
    """After an acknowledged put: put the old generation's fires on record, and prepare the new one's near fires."""
    if before is not None:
        drain(ports, before.schedule, before.generation)
    timer = messages.timer_in(plan)
    if (
        timer is not None
        and timer.wake_at is not None
        and timer.wake_at < now + ports.settings.horizon_seconds * SECOND
    ):
        emit.emit_soon(ports, after.schedule)


def _first(plan: list[Write]) -> Instant | None:
    timer = messages.timer_in(plan)
    return min(timer.next.values()) if timer else None


def _living(ports: Ports, full: str) -> tuple[ScheduleState, Schedule]:
    """The schedule state and definition of a message. Raises ``not_found`` (404) if it does not exist."""
    schedule_state = ports.rows.get(ScheduleState, full)
    schedule = definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None or not schedule_state.exists:
        raise errors.not_found("message", shown(full), _LISTED.format(full.rpartition(".")[0]))
    return schedule_state, schedule


def _or_none(ports: Ports, full: str) -> Stored | None:
    """A message of a list; None if it was deleted after the list was read."""
    try:
        return _stored(ports, *_living(ports, full))
    except SluiceError as error:
        if error.code != "not_found":
            raise
        return None


def _stored(ports: Ports, schedule_state: ScheduleState, schedule: Schedule) -> Stored:
    full = schedule_state.schedule
    own = ports.rows.get(Definition, "workflow", full) if schedule.workflow == full else None
    upcoming = fire_upcoming.preview(schedule, ports.clock.now(), 1, ports.rows.get(Timer, full))
    return Stored(schedule_state, schedule, messages.target_of(own), upcoming[0] if upcoming else None)
