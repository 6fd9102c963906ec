"""The quiet hours of a rule: daily windows of wall time, as those of the constraint `time_window` (W9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core import zones
from chalicelib.core.instants import Instant
from chalicelib.core.time import windows

Hours = Mapping[str, Any]  # from, to, zone and days of `QuietHours`


def end_of(hours: Hours | None, now: Instant) -> Instant | None:
    """When the quiet hours end that hold at ``now``; None outside of them. In a zone that the rules of time zones no
    longer have, no hours are quiet: a notice is rather sent than kept."""
    if hours is None or zones.zone(hours["zone"]) is None:
        return None
    window = windows.Window(hours["from"], hours["to"], hours["zone"], tuple(hours["days"]))
    opens, closes = windows.opening(window, now)
    return closes if opens <= now else None
