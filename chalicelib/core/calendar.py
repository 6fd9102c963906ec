"""Time as the rest of the core sees it: one door to instants, wall time, and the expressions that name fire times.

`core/instants.py` has instants and durations, `core/wall.py` the rule for daylight saving (T2), `core/cron.py` and
`core/expressions.py` the forms of T1, `core/wording.py` their words.
"""

from __future__ import annotations

from chalicelib.core.expressions import (
    MACROS,
    check_expression,
    fires_per_day,
    is_interval,
    next_fire,
    normalise,
    repeats,
)
from chalicelib.core.instants import (
    DAY,
    HOUR,
    LONGEST,
    MINUTE,
    MOST_TEXT,
    SECOND,
    Instant,
    Millis,
    duration,
    iso,
    parse_instant,
    parse_when,
    spell_duration,
    zone,
)
from chalicelib.core.wall import DEFAULT, Daylight, wall_to_instant
from chalicelib.core.wording import describe

__all__ = [
    "DAY",
    "DEFAULT",
    "HOUR",
    "LONGEST",
    "MACROS",
    "MINUTE",
    "MOST_TEXT",
    "SECOND",
    "Daylight",
    "Instant",
    "Millis",
    "check_expression",
    "describe",
    "duration",
    "fires_per_day",
    "is_interval",
    "iso",
    "next_fire",
    "normalise",
    "parse_instant",
    "parse_when",
    "repeats",
    "spell_duration",
    "wall_to_instant",
    "zone",
]
