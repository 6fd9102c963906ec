"""How Sluice groups notices about failures and missed deadlines (W9, H5).

Each notice is a message to the target of a rule (`core/definitions/workflow.py`). Sluice sends the first notice about a
workflow at once and opens a window of five minutes. At its end, Sluice sends one notice about all events within the
window, and opens the next one. A window without a pending notice is the last one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core import ids, masks
from chalicelib.core.definitions.workflow import Notify
from chalicelib.core.instants import MINUTE, Instant, Millis, iso
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice

WINDOW: Millis = 5 * MINUTE  # in which notices of one workflow for one target are combined


MAX_MESSAGE = 7  # rows that the message of one notice writes


MAX_LISTED = 10  # events that a combined notice lists; it counts the others


@dataclass(frozen=True, slots=True)
class AlertStep:
    """The result of a step: the notice window after it (None: it is over), and the notice to send now, if any."""

    window: NoticeWindow | None
    notice: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """Where notices of a rule go, and in which form. ``console`` is the address for links."""

    target: Mapping[str, Any]
    form: str | None = None
    console: str | None = None

    @property
    def id(self) -> str:
        form = [] if self.form is None else [self.form, self.console or ""]
        return ids.digest(json.dumps(self.target, sort_keys=True), *form, length=12)


def channels(rules: Iterable[Notify], what: str) -> dict[str, Channel]:
    """The channels of the rules about ``what`` by their ids, each once."""
    found = [Channel(rule.to.model_dump(mode="json"), rule.form, rule.console) for rule in rules if what in rule.on]
    return {channel.id: channel for channel in found}


def writes_of(window: NoticeWindow | None) -> int:
    """How many rows a channel with this window writes at most when it takes notices in: without one, also a message."""
    return 1 if window is not None else 1 + MAX_MESSAGE


def rests_until(alerts: Collection[NoticeWindow | None], now: Instant) -> Instant | None:
    """Until when a pending notice may wait, because all its channels have an open window: the first end of these
    windows. None without channels, or if a channel has no window and so gets its notice at once."""
    if not alerts or None in alerts:
        return None
    ends = [window.until for window in alerts if window is not None and window.until > now]
    return min(ends, default=now + MINUTE)  # if all windows are over, their notices are being sent now


def add_notices(
    notices_due: Sequence[PendingNotice],
    channel: Channel,
    window: NoticeWindow | None,
    now: Instant,
) -> AlertStep:
    """The step that adds pending notices of one workflow to a channel. Without a window, the notice is sent at once and
    a window begins; else the notices wait for the end of the window."""
    events = sorted((_event_of(notice) for notice in notices_due), key=_by_time)
    if window is None:
        workflow = notices_due[0].workflow
        begun = NoticeWindow(
            workflow,
            channel.id,
            channel.target,
            since=now,
            until=now + WINDOW,
            wake_at=now + WINDOW,
            form=channel.form,
            console=channel.console,
        )
        return AlertStep(begun, _notice(workflow, events[:MAX_LISTED], len(events), now, now))
    kept = tuple(sorted([*window.events, *events], key=_by_time)[:MAX_LISTED])
    return AlertStep(replace(window, count=window.count + len(events), events=kept, rev=window.rev + 1, leases=0))


def close(window: NoticeWindow, now: Instant) -> AlertStep:
    """The step at the end of a window: one notice about all events within the window, and the next window. A window
    without events has no successor."""
    if window.count == 0:
        return AlertStep(None)
    later = replace(
        window, count=0, events=(), since=now, until=now + WINDOW, rev=window.rev + 1, leases=0, wake_at=now + WINDOW
    )
    return AlertStep(later, _notice(window.workflow, list(window.events), window.count, window.since, now))


def message_name(workflow: str, channel: str, source: object) -> str:
    """The name of the message of a notice. A repeated send computes the same name, so it is idempotent."""
    return f"{ids.NOTICE}{ids.digest(workflow, channel, source, length=24)}"


def _event_of(notice: PendingNotice) -> dict[str, str]:
    """A pending notice as an entry of the events of a notice. The schedule of a node has a name that Sluice made: the
    DAG and the node are named beside it."""
    of = notice.schedule
    node = {"dag": ids.dag_of(of), "node": of.rpartition(ids.DAG)[2]} if ids.is_dag_node(of) else {}
    return {
        "what": notice.what,
        "schedule": ids.plain(of),
        **node,
        "id": notice.id,
        "reason": masks.text(notice.reason),
        "at": iso(notice.at),
    }


def _by_time(event: Mapping[str, str]) -> str:
    return event["at"]


def _notice(workflow: str, events: list[Any], count: int, since: Instant, until: Instant) -> dict[str, Any]:
    return {"workflow": ids.plain(workflow), "count": count, "since": iso(since), "until": iso(until), "events": events}
