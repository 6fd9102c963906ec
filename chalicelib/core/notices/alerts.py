"""How Sluice groups notices about failures and missed deadlines (W9, H5).

Each notice is a message to the target of a rule (`core/definitions/notify.py`). Sluice sends the first notice about a
workflow at once and opens a window of five minutes, or of the ``group`` of the rule. At its end, Sluice sends one
notice about all events within the window, and opens the next one. A window without a pending notice is the last one.
In quiet hours a window begins or goes on without a notice, until they end.

For PagerDuty each schedule and kind has a channel of its own, whose messages are those of one incident. While the
incident is open the window stays, at rest, so that a success finds it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chalicelib.core import ids, masks
from chalicelib.core.definitions.notify import ENDS, Notify
from chalicelib.core.instants import DAY, MINUTE, Instant, Millis, iso
from chalicelib.core.notices import quiet
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice

WINDOW: Millis = 5 * MINUTE  # in which notices of one workflow for one target are combined


MAX_MESSAGE = 7  # rows that the message of one notice writes


MAX_LISTED = 10  # events that a combined notice lists; it counts the others


MAX_KEY = 255  # characters of the key of an incident of PagerDuty


FORGOTTEN: Millis = 45 * DAY  # after which no success resolves an incident: a person has to


@dataclass(frozen=True, slots=True)
class AlertStep:
    """The result of a step: the notice window after it (None: there is none), and the notice to send now, if any."""

    window: NoticeWindow | None
    notice: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """Where notices of a rule go, and in which form. ``console`` is the address for links, ``group`` the length of a
    window, ``hours`` are the quiet ones, and ``incident`` is the key of an incident of PagerDuty."""

    target: Mapping[str, Any]
    form: str | None = None
    console: str | None = None
    group: Millis | None = None
    hours: quiet.Hours | None = None
    incident: str | None = None

    @property
    def id(self) -> str:
        form = [] if self.form is None else [self.form, self.console or ""]
        more = {"group": self.group, "hours": self.hours, "incident": self.incident}
        more = {name: value for name, value in more.items() if value is not None}
        parts = [*form, json.dumps(more, sort_keys=True)] if more else form
        return ids.digest(json.dumps(self.target, sort_keys=True), *parts, length=12)


def channels(rules: Iterable[Notify], notice: PendingNotice) -> dict[str, Channel]:
    """The channels of the rules about a notice by their ids, each once."""
    found = [_channel(rule, kind, notice) for rule in rules for kind in rule.told_as(notice.what)]
    return {channel.id: channel for channel in found}


def channel_of(window: NoticeWindow) -> Channel:
    """The channel of a window, whose rule may have changed since."""
    return Channel(window.target, window.form, window.console, window.group, window.hours, window.incident)


def routes(
    notice: PendingNotice, present: Mapping[str, Channel], windows: Mapping[str, NoticeWindow | None]
) -> dict[str, Channel]:
    """Where a pending notice goes: to the channels for which it was written. One that the ``present`` rules no longer
    have is reached while it has a window; the present rules decide in the place of one that has none."""
    meant = notice.channels or tuple(present)
    kept = {channel: channel_of(window) for channel in meant if (window := windows.get(channel)) is not None}
    found = {
        channel: kept.get(channel) or present[channel] for channel in meant if channel in kept or channel in present
    }
    return found if len(found) == len(meant) else {**present, **found}


def _channel(rule: Notify, kind: str, notice: PendingNotice) -> Channel:
    """The channel of a rule for what concerns a ``kind``. Urgent kinds have one without quiet hours."""
    return Channel(
        rule.to.model_dump(mode="json"),
        rule.form,
        rule.console,
        rule.span,
        rule.quiet.hours if rule.quiet is not None and kind not in rule.quiet.urgent else None,
        _incident(kind, notice) if rule.form == "pagerduty" else None,
    )


def _incident(kind: str, notice: PendingNotice) -> str:
    """The key of the incident of PagerDuty that a notice belongs to: its schedule, the kind, and a late dataset. A node
    of a DAG has the same after each change of the DAG."""
    parts = ["sluice", ids.plain(notice.schedule), kind]
    if kind.startswith("data_"):
        parts.append(notice.id.partition("@")[0])
    key = "/".join(parts)
    return key if len(key) <= MAX_KEY else f"{key[: MAX_KEY - 21]}/{ids.digest(key, length=20)}"


def says(window: NoticeWindow) -> Literal["notice", "resolve"] | None:
    """What a window has to tell: a notice of its events, or that its incident is over; None: nothing. What is over
    before anybody was told is nothing."""
    if window.incident is None or window.trouble_at is not None:
        return "notice" if window.count else None
    return "resolve" if window.opened_at is not None else None


def at_rest(window: NoticeWindow | None) -> bool:
    """Whether nothing is collected: there is no window, or one that only remembers an open incident."""
    return window is None or window.forgotten_at is not None


def writes_of(window: NoticeWindow | None) -> int:
    """How many rows a channel with this window writes at most when it takes notices in: without one, also a message."""
    return 1 + MAX_MESSAGE if at_rest(window) else 1


def rests_until(alerts: Collection[NoticeWindow | None], now: Instant) -> Instant | None:
    """Until when a pending notice may wait, because all its channels have an open window: the first end of these
    windows. None without channels, or if a channel has no window and so gets its notice at once."""
    if not alerts or any(map(at_rest, alerts)):
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
    after = _added(notices_due, channel, window or _begun(notices_due[0].workflow, channel, now))
    if window is not None:
        after = replace(after, rev=window.rev + 1, leases=0)
        if not at_rest(window):
            return AlertStep(after)
    match says(after):
        case "notice":
            return _sent(replace(after, since=now), now)
        case "resolve":  # its window begins again, and says so at its end, which is now
            return AlertStep(replace(after, until=now, wake_at=now, forgotten_at=None))
        case _:
            return AlertStep(None if window is None else after)


def close(window: NoticeWindow, now: Instant) -> AlertStep:
    """The step at the end of a window: one notice about all events within the window, and the next window. A window
    with nothing to tell has no successor; while its incident is open it stays, at rest."""
    after = replace(window, rev=window.rev + 1, leases=0)
    if says(window) is not None:
        return _sent(after, now)
    if window.opened_at is None or at_rest(window):
        return AlertStep(None)
    return AlertStep(replace(after, wake_at=now + FORGOTTEN, forgotten_at=now + FORGOTTEN))


def message_name(workflow: str, channel: str, source: object) -> str:
    """The name of the message of a notice. A repeated send computes the same name, so it is idempotent."""
    return f"{ids.NOTICE}{ids.digest(workflow, channel, source, length=24)}"


def _begun(workflow: str, channel: Channel, now: Instant) -> NoticeWindow:
    return NoticeWindow(
        workflow,
        channel.id,
        channel.target,
        since=now,
        until=now,
        form=channel.form,
        console=channel.console,
        group=channel.group,
        hours=channel.hours,
        incident=channel.incident,
    )


def _sent(window: NoticeWindow, now: Instant) -> AlertStep:
    """The step that tells what a window has to tell, and the window that follows. In quiet hours it goes on until their
    end instead; the end of an incident disturbs nobody."""
    resolved = says(window) == "resolve"
    end = None if resolved else quiet.end_of(window.hours, now)
    if end is not None:
        return AlertStep(replace(window, until=end, wake_at=end, forgotten_at=None))
    until = now + (window.group or WINDOW)
    opened = None if resolved or window.incident is None else now
    later = replace(
        window, count=0, events=(), since=now, until=until, wake_at=until, opened_at=opened, forgotten_at=None
    )
    return AlertStep(later, _notice(window, now))


def _added(notices_due: Sequence[PendingNotice], channel: Channel, window: NoticeWindow) -> NoticeWindow:
    """The window with the events of these notices. What ends an incident is no event. Where both came together, the
    troubles count first: a success ends those that were there when its run began."""
    ends = [notice for notice in notices_due if channel.incident is not None and notice.what in ENDS]
    troubles = [notice for notice in notices_due if notice not in ends]
    events = sorted([*window.events, *map(_event_of, troubles)], key=_by_time)[:MAX_LISTED]
    after = replace(window, count=window.count + len(troubles), events=tuple(events))
    if channel.incident is None:
        return after
    for notice in troubles:
        if after.trouble_at is None or notice.at >= after.trouble_at:
            after = replace(after, trouble_at=notice.at, trouble_id=notice.of or notice.id)
    for notice in ends:
        if after.trouble_at is not None and (notice.at >= after.trouble_at or notice.id == after.trouble_id):
            after = replace(after, trouble_at=None, trouble_id=None)
    return after


def _event_of(notice: PendingNotice) -> dict[str, Any]:
    """A pending notice as an entry of the events of a notice. The schedule of a node has a name that Sluice made: the
    DAG and the node are named beside it, and the index of an element."""
    of = notice.schedule
    node = {"dag": ids.dag_of(of), "node": of.rpartition(ids.DAG)[2]} if ids.is_dag_node(of) else {}
    return {
        "what": notice.what,
        "schedule": ids.plain(of),
        **node,
        **({} if notice.element is None else {"element": notice.element}),
        "id": notice.id,
        "reason": masks.text(notice.reason),
        "at": iso(notice.at),
    }


def _by_time(event: Mapping[str, Any]) -> str:
    return str(event["at"])


def _notice(window: NoticeWindow, now: Instant) -> dict[str, Any]:
    return {
        "workflow": ids.plain(window.workflow),
        "count": window.count,
        "since": iso(window.since),
        "until": iso(now),
        "events": list(window.events),
    }
