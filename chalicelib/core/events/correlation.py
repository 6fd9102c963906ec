"""The decisions of the step *match*: which partition an object belongs to, whether it makes it ready, and which events
there are. What a job is once events have been applied to it is in `core/jobs/gather.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from chalicelib.core import ids
from chalicelib.core.events.partitions import MAX_SORT_KEY
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING


def counts_for(event: Event, subscription: Subscription) -> bool:
    """An event counts for a leaf only if it was accepted after the leaf began to gather (L3, L6)."""
    return event.accepted_at >= subscription.since


def correlate(by: tuple[str, ...], event: Event) -> dict[str, str] | None:
    """The values of the correlation keys that an event carries; None if it lacks one of them (T19). A custom event
    carries them in its payload."""
    values = event.partition or {key: str(value) for key, value in (event.payload or {}).items() if _names(value)}
    return {key: values[key] for key in by} if all(key in values for key in by) else None


def _names(value: object) -> bool:
    """Whether a value of a payload can be that of a partition key: text or a whole number, and not empty."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def gathering_key(correlation: Mapping[str, str] | None) -> str:
    """The sort key of the gathering job, one per value of the correlation keys."""
    if not correlation:
        return GATHERING
    place = "/".join(quote(value, safe="").replace("~", "%7E") for value in correlation.values())
    # A sort key holds 1,024 bytes; a digest stands for what is long. No quoted value begins with '~'.
    return f"{GATHERING}#{place}" if len(place) <= MAX_SORT_KEY else f"{GATHERING}#~{ids.digest(*correlation.values())}"
