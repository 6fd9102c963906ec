"""What a receiver of events answers, and what follows (H6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis

# The stream of the table keeps a change for a day. An event that its receiver does not take for so long becomes a dead
# letter, with all that it says, while the stream still has its change.
GIVE_UP: Millis = 12 * HOUR
# An event that failed while the receiver took others is given up sooner, counted from then: others wait behind it. So
# is a change that cannot be read.
GIVE_UP_ALONE: Millis = 15 * MINUTE
MOST_ALONE = 8  # if more fail in a call in which none is taken, that is the receiver, and not these events
MAX_REASON = 500  # characters of what a receiver has answered

# Answers about the event itself, which the same event will get again. Any other one than 2xx is about the receiver or
# its address: a wrong path, a token that has expired, an overload, an outage.
ABOUT_THE_EVENT = (400, 409, 413, 422)
# Answers that another event gets as well: the token is wrong, or the receiver asks for a pause.
ABOUT_ALL = (401, 429)


@dataclass(frozen=True, slots=True)
class Item:
    """An event on its way. ``sequence`` is that of the change in the stream, which was made at ``since``."""

    sequence: str
    since: Instant
    event: dict[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.event["run"]["runId"])

    @property
    def id(self) -> str:
        """The same for the same event, however often it is made."""
        return event_id(self.event)


@dataclass(frozen=True, slots=True)
class Sent:
    """The receiver has the event."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The receiver will never take the event, and says ``why``."""

    why: str


@dataclass(frozen=True, slots=True)
class Later:
    """The receiver has not taken the event, and may take it later. ``failed``: it failed at this very event. ``tried``:
    the receiver was asked to take it; otherwise it waits for its turn."""

    why: str
    failed: bool = False
    tried: bool = True


Outcome = Sent | Refused | Later


def event_id(event: dict[str, Any]) -> str:
    """The id of an event: a digest of what it says."""
    return ids.digest(repr(event), length=32)


def judge(status: int, text: str) -> Outcome:
    """What an answer of an HTTP endpoint means."""
    if 200 <= status < 300:
        return Sent()
    why = f"the endpoint answered with HTTP {status}" + (f": {text[:MAX_REASON]}" if text else "")
    if status in ABOUT_THE_EVENT:
        return Refused(why)
    return Later(why, failed=status not in ABOUT_ALL)


def is_given_up(item: Item, outcome: Later, alone: Instant | None, taken: Instant, now: Instant) -> bool:
    """Whether an event that its receiver did not take is kept as a dead letter. Otherwise it is sent again.

    ``alone`` is when it first failed while others were taken; None if it never did. ``taken`` is when the receiver last
    took one.

    An event that was not tried waits behind others. It is given up only if these are not taken either."""
    if alone is not None and outcome.failed and now - alone >= GIVE_UP_ALONE:
        return True
    return now - item.since >= GIVE_UP and (outcome.tried or now - taken >= GIVE_UP_ALONE)
