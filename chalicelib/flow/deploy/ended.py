"""The schedules of an app that have ended and deleted themselves: the same document does not run them again (L8, L10).

The state row of such a schedule tells that it existed and ended, and which document it had. The record of the last
deployment tells that it belongs to this app: a schedule that was left out, or an app that was deleted, begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.instants import Instant, parse_when
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import effect, relative
from chalicelib.core.schedules.relative import Counted
from chalicelib.flow import lookup, many
from chalicelib.ports import Ports


def of_app(ports: Ports, app: Definition | None, sent: Mapping[str, Schedule]) -> dict[str, Counted]:
    """Which of these schedules, none of which exists, have ended with the document that is sent, as they were stored.
    Their description may differ. ``app`` is the stored app; None before its first deployment."""
    if app is None:
        return {}
    read, recorded_at = many.ended_of(ports, list(sent)), _recorded_at(app)
    found = {name: at_end for name, schedule in sent.items() if (at_end := _ended(read, name, schedule)) is not None}
    recorded = {name for name, (_, generation) in found.items() if generation < recorded_at}
    deployed = _deployed(ports, app) if recorded else None
    left_out = {name for name in recorded if deployed is not None and name.rpartition(".")[2] not in deployed}
    return {name: old for name, (old, _) in found.items() if name not in left_out}


def _ended(read: Ports, name: str, sent: Schedule) -> tuple[Counted, Instant] | None:
    """The stored schedule that has ended with the document that is sent, and its generation."""
    state = read.rows.get(ScheduleState, name)
    if state is None or state.exists or state.by != lifetime.BY:
        return None
    old = lookup.stored(read, state)
    kept = relative.kept(sent, name, old, old.ttl_from) if old is not None else None
    if old is None or kept is None or not effect.acts_alike(old.definition, kept.definition):
        return None
    return old, state.generation


def _recorded_at(app: Definition) -> Instant:
    """When the last deployment was recorded, or before the first one, when the app was created: a schedule that began
    later belongs to a deployment that was not finished."""
    deployed = app.document.get("deployed")
    return parse_when(deployed["at"], 0, "at") if deployed else app.updated_at


def _deployed(ports: Ports, app: Definition) -> Mapping[str, object] | None:
    """The schedules of the last deployment; empty before the first one, None if its document is gone."""
    deployed = app.document.get("deployed")
    if not deployed:
        return {}
    digest = deployed["uri"].rpartition("/")[2].removesuffix(".json")
    document = ports.payloads.deployment(app.name, digest)
    schedules: Mapping[str, object] | None = document.get("schedules", {}) if document is not None else None
    return schedules
