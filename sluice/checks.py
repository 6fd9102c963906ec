"""Checks of user input before a request is sent: a word from a list, an instant, an option that may be given once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from sluice.errors import WrongUsage

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def one_of(word: str, known: Sequence[str], field: str) -> str:
    """The known word that equals ``word`` without regard to case. Raises ``WrongUsage`` with the nearest known word."""
    for candidate in known:
        if candidate.lower() == word.lower():
            return candidate
    near = get_close_matches(word.lower(), [candidate.lower() for candidate in known], n=1)
    nearest = next((candidate for candidate in known if near and candidate.lower() == near[0]), None)
    hint = f"did you mean {nearest}?" if nearest else None
    raise WrongUsage(f"expected one of {', '.join(known)}, got {word!r}", field, hint)


def instant(text: object, field: str) -> str:
    """An instant in UTC, in RFC 3339. Raises ``WrongUsage`` for an instant without a time zone, which is ambiguous."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        moment = None
    hint = f"add the time zone, such as {moment.isoformat()}Z for UTC" if moment else None
    raise WrongUsage(f"expected an instant with a time zone, such as 2026-11-22T05:00:00Z, got {text!r}", field, hint)


def day_or_instant(text: str, field: str) -> str:
    """The instant in a text; a day such as 2026-01-01 is its first instant in UTC."""
    return f"{text}T00:00:00Z" if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else instant(text, field)


def since(text: str, field: str, now: datetime) -> str:
    """The instant in a text: an instant, a day, or a duration before now, such as ``2h`` or ``7d``."""
    found = re.fullmatch(r"(\d{1,6})([mhd])", text)
    if found is None:
        return day_or_instant(text, field)
    return (now - timedelta(**{_UNITS[found[2]]: int(found[1])})).isoformat().replace("+00:00", "Z")


def seconds(text: str, field: str) -> float:
    """The seconds of a span such as ``500ms``, ``30s`` or ``2m``."""
    found = re.fullmatch(r"(\d{1,6})(ms|s|m|h)", text)
    if found is None:
        raise WrongUsage(f"expected a span such as 30s or 2m, got {text!r}", field, "add the unit: ms, s, m or h")
    return int(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]


def day(text: object) -> None:
    """Raise ``WrongUsage`` unless the day is written as 2026-11-20."""
    if text is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", str(text)):
        raise WrongUsage(f"expected a day such as 2026-11-20, got {text!r}", "--day")


def only(option: str, given: Sequence[str] | None) -> str | None:
    """The value of an option that may be given once; raises ``WrongUsage`` if it is given twice. Click would silently
    keep the last value, and a command that acts on the result of a filter would then act on the wrong schedules."""
    if given and len(given) > 1:
        raise WrongUsage(
            f"expected {option} once, got {len(given)} of them", option, "run the command once for each value"
        )
    return given[0] if given else None
