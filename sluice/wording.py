"""Instants, durations and partitions as texts for people. Nothing here reads a clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NOTHING = "-"


def instant(text: str | None) -> datetime | None:
    """An RFC 3339 instant of the API; None for None, or for any other text."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def duration(seconds: float | None) -> str:
    """``820 ms``, ``2.1 s``, ``42 s``, ``3 m 20 s``, ``1 h 5 m``, ``2 d 4 h``: at most two units."""
    if seconds is None:
        return NOTHING
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, letter in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {letter}" if rest else "")
    return f"{whole} s"


def ago(text: str | None, now: datetime) -> str:
    """``3 m ago``, ``in 5 h``: one unit, for table columns."""
    moment = instant(text)
    if moment is None:
        return NOTHING
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    if size < 1:
        return "now"
    count, unit = next(
        (int(size // span), unit) for span, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")) if size >= span
    )
    return f"{count} {unit} ago" if seconds > 0 else f"in {count} {unit}"


def who(arn: str | None) -> str:
    """The role or user of an ARN, and the session: ``data-platform/ada``."""
    return (arn or "unknown").partition(":assumed-role/")[2] or (arn or "unknown").rpartition(":")[2]


def exact(text: str | None) -> str:
    """``2026-11-20 12:00:00.123 UTC``."""
    moment = instant(text)
    if moment is None:
        return NOTHING
    moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def both(text: str | None, now: datetime) -> str:
    """``2026-11-20 12:00:00.123 UTC (3 m ago)``."""
    return f"{exact(text)} ({ago(text, now)})" if instant(text) else NOTHING


def between(start: str | None, end: str | None) -> float | None:
    """Seconds from one instant to the other; None unless both are known."""
    first, last = instant(start), instant(end)
    return None if first is None or last is None else (last - first).total_seconds()


def pairs(values: Mapping[str, Any] | None, separator: str = "/") -> str:
    """``year=2013/month=1/day=1``: a partition in the form of its path."""
    return separator.join(f"{key}={value}" for key, value in values.items()) if values else NOTHING


def period(given: Mapping[str, Any] | None) -> str:
    """``2026-03-01T07 Europe/Paris``: the label of a period and its zone."""
    return f"{given.get('label')} {given.get('zone')}" if given else NOTHING


def entry(given: Mapping[str, Any] | str | None) -> str:
    """An entry of a plan: a partition in the form of its path, or an instant to the second."""
    return exact(given).replace(".000", "") if isinstance(given, str) else pairs(given)


def words(name: str | None) -> str:
    """``since_last_run`` as ``since last run``."""
    return (name or NOTHING).replace("_", " ")


def constraint(rule: Mapping[str, Any]) -> str:
    """A constraint of a document: ``delay: after 10m, since created, else wait``."""
    rest = {
        key: value for key, value in rule.items() if key not in ("type", "on_unmet") and value not in (None, [], {})
    }
    otherwise = f", else {words(rule['on_unmet'])}" if rule.get("on_unmet") else ""
    if rule.get("type") == "concurrency" and set(rest) <= {"max", "group"}:
        whose = f"of group {rest['group']}" if "group" in rest else "of the workflow"
        return f"at most {count(rest.get('max', 0), 'run')} {whose} at a time{otherwise}"
    options = (f"{words(key)} {_several(value) if isinstance(value, list) else value}" for key, value in rest.items())
    return f"{words(rule.get('type'))}: {', '.join(options)}{otherwise}"


def _several(values: list[Any]) -> str:
    """The values of a list, at most ten: a calendar may have the dates of a year."""
    texts = [f"{value['from']} to {value['to']}" if _is_span(value) else str(value) for value in values]
    return " ".join(texts if len(texts) <= 10 else [*texts[:9], f"and {len(texts) - 9} more"])


def _is_span(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"from", "to"}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def waited(run: Mapping[str, Any]) -> float | None:
    """Seconds that the job waited, from the API; for older runs, from the job's creation to the start request."""
    if run.get("waited_ms") is not None:
        return float(run["waited_ms"]) / 1000
    return between(run.get("created_at"), run.get("start_requested_at") or run.get("claimed_at"))


def took(run: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds that the program has run. Without a start time of the target, they count from the start request."""
    start = run.get("started_at") or (run.get("start_requested_at") if run.get("ended_at") else None)
    return between(start, run.get("ended_at") or now.isoformat())


_NAME, _REST_OF_ID = r"(?<![\w.-])([\w-]+(?:\.[\w-]+){1,2})", r"\.[0-9a-z]+\.[0-9a-f]{20}"
_NODES = re.compile(rf"{_NAME}~[0-9a-f]{{8}}~([\w-]+)(?![\w-]|{_REST_OF_ID})")
_GRAPHS = re.compile(rf"{_NAME}~(?:[0-9a-f]{{8}})?(?![\w~/-]|{_REST_OF_ID})")


def as_written(text: str) -> str:
    """A text with the names of DAGs as people know them: ``nightly/load`` for the schedule of a node, and ``nightly``
    for that of the start. Ids of jobs and runs stay as they are, because users copy them."""
    if "~" not in text:
        return text
    return _GRAPHS.sub(r"\1", _NODES.sub(r"\1/\2", text))
