"""Which events count for a leaf, and to which gathering job of a schedule an event belongs (T19)."""

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
    """The values of the correlation keys ``by`` in an event; None if it lacks one of them, or if there are no keys
    (T19). A custom event has them in its payload."""
    values = event.partition or {key: str(value) for key, value in (event.payload or {}).items() if _names(value)}
    return {key: values[key] for key in by} if by and all(key in values for key in by) else None


def _names(value: object) -> bool:
    """Whether a value of a payload can be a correlation value: a text that is not empty, or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def gathering_key(correlation: Mapping[str, str] | None) -> str:
    """The sort key of the gathering job: one for each combination of correlation values."""
    if not correlation:
        return GATHERING
    encoded = "/".join(quote(value, safe="").replace("~", "%7E") for value in correlation.values())
    # A sort key holds 1,024 bytes, so a digest replaces long values. No quoted value begins with '~'.
    short = len(encoded) <= MAX_SORT_KEY
    return f"{GATHERING}#{encoded}" if short else f"{GATHERING}#~{ids.digest(*correlation.values())}"
