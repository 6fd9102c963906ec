"""Who is told when something goes wrong, and how often at most (W9, H5).

A rule names what it is about and where the notice goes: any target without a lifecycle. Notices are messages, with the
tries and the dead letters of any delivery. They come grouped: the first at once, what follows it within five minutes
together at the end of these, and so on until it is quiet for that long.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.instants import MINUTE, Instant, Millis, iso
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice

WINDOW: Millis = 5 * MINUTE  # within which notices of one workflow to one target are told together


MAX_TAKEN = 30  # notes that one transaction takes in: with the messages of ten targets there are less than 100 rows


MAX_LISTED = 10  # of those that are told together; the others are counted


NOTICE = "notice-"  # what the names of the messages begin with that notices are


@dataclass(frozen=True, slots=True)
class AlertStep:
    """What follows from a look at an alert: how it stands then (None: it is over), and the message to be sent now."""

    window: NoticeWindow | None
    notice: dict[str, Any] | None = None


def channels(rules: Iterable[Notify], what: str) -> dict[str, dict[str, Any]]:
    """The targets that are to be told of something, each once, by a name that follows from the target."""
    targets = [rule.to.model_dump(mode="json") for rule in rules if what in rule.on]
    return {ids.digest(json.dumps(target, sort_keys=True), length=12): target for target in targets}


def rests_until(alerts: Collection[NoticeWindow | None], now: Instant) -> Instant | None:
    """Until when a note may lie where it is, for all who want to hear of it were told something lately: it is taken in
    with what else comes, at the end of their windows. None if somebody is to be told at once."""
    if not alerts or None in alerts:
        return None
    ends = [window.until for window in alerts if window is not None and window.until > now]
    return min(ends, default=now + MINUTE)  # whose window is over is being told at this moment


def add_notices(
    notices_due: Sequence[PendingNotice],
    channel: str,
    target: dict[str, Any],
    window: NoticeWindow | None,
    now: Instant,
) -> AlertStep:
    """An alert after notes of something more, of one workflow and for one target. The first are told at once, the
    others wait for the end of the window."""
    told = sorted((_told(notice) for notice in notices_due), key=_by_time)
    if window is None:
        workflow = notices_due[0].workflow
        begun = NoticeWindow(workflow, channel, target, since=now, until=now + WINDOW, wake_at=now + WINDOW)
        return AlertStep(begun, _notice(workflow, told[:MAX_LISTED], len(told), now, now))
    kept = tuple(sorted([*window.told, *told], key=_by_time)[:MAX_LISTED])
    return AlertStep(replace(window, count=window.count + len(told), told=kept, rev=window.rev + 1, leases=0))


def close(window: NoticeWindow, now: Instant) -> AlertStep:
    """An alert at the end of its window: what came meanwhile is told together, and another window begins."""
    if window.count == 0:
        return AlertStep(None)
    later = replace(
        window, count=0, told=(), since=now, until=now + WINDOW, rev=window.rev + 1, leases=0, wake_at=now + WINDOW
    )
    return AlertStep(later, _notice(window.workflow, list(window.told), window.count, window.since, now))


def message_name(workflow: str, channel: str, source: object) -> str:
    """The name of the message that a notice is: the same for whoever sends the same one again."""
    return f"{NOTICE}{ids.digest(workflow, channel, source, length=24)}"


def _told(notice: PendingNotice) -> dict[str, str]:
    return {
        "what": notice.what,
        "schedule": notice.schedule,
        "id": notice.id,
        "reason": notice.reason,
        "at": iso(notice.at),
    }


def _by_time(told: Mapping[str, str]) -> str:
    return told["at"]


def _notice(workflow: str, told: list[Any], count: int, since: Instant, until: Instant) -> dict[str, Any]:
    return {"workflow": workflow, "count": count, "since": iso(since), "until": iso(until), "events": told}
