"""What a receiver of events answers, and what follows (H6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis

# The stream of the table keeps a change for a day. An event that its receiver does not take for so long becomes a dead
# letter, with all that it says, while the stream still has its change.
GIVE_UP: Millis = 12 * HOUR
# If the receiver takes others meanwhile, an event that it fails to take is given up sooner: others wait behind it.
GIVE_UP_ALONE: Millis = 15 * MINUTE
MAX_REASON = 500  # characters of what a receiver has answered

# Answers about the event itself, which the same event will get again. Any other one than 2xx is about the receiver or
# its address: a wrong path, a token that has expired, an overload, an outage.
ABOUT_THE_EVENT = (400, 409, 413, 422)


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
    the receiver could have taken it; otherwise it waits for its turn."""

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
    return Later(why, failed=status >= 500)


def is_given_up(item: Item, outcome: Later, others_taken: bool, now: Instant) -> bool:
    """Whether an event that its receiver did not take is kept as a dead letter. Otherwise it is sent again."""
    return outcome.tried and now - item.since >= (GIVE_UP_ALONE if others_taken and outcome.failed else GIVE_UP)
