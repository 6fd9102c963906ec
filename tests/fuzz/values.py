"""Random JSON values: those that services and users send, and those that break parsers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

from hypothesis import strategies as st

FIXED_SECONDS, SECONDS_A_DOCUMENT = 1.0, 0.0015
HANGS = 20.0  # s of CPU time after which a call counts as hanging

INSTANTS = ("2026-03-02T12:00:00Z", "2026-03-02T12:00:00.123+02:00", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z",
            "0001-01-01T00:00:00+14:00", "2026-03-02", "2026-02-30T00:00:00Z")  # fmt: skip
ZONES = ("Europe/Berlin", "UTC", "Etc/GMT+5", "America/Argentina/Ushuaia")
DURATIONS = ("5m", "2h30m", "PT2H", "0s", "-1s", "99999999999999999d", "P1W", "1e9h", "never", "1.5h")
EXPRESSIONS = ("0 5 * * mon-fri", "@every 1s", "@daily", "* * * * * *", "0 0 29 2 *", "0 0 31 2 *", "*/0 * * * *",
               "0-59/7 23 L * ?", "cron(0 12 * * ? *)", "rate(5 minutes)", "at(2026-03-02T12:00:00)", "0 0 * * 8",
               "59 23 31 12 sun#5", "R/2026-03-02T12:00:00Z/PT1H", "R5//P1D", "1,2,3,4-5/2 0 1 1 0",
               "@every 0s", "@every 999999999999d")  # fmt: skip
TEXTS = ("", " ", "\x00", "é", "e\u0301", "\ud800", "a" * 300, "..", "*", "{a,b}", "%2f", "a/b", "day=1", "null",
         "1e400", "s3://lake/raw/", "https://example.com/x", "arn:aws:sqs:us-east-1:123456789012:q",
         "demo", "demo.flights", "demo.flights.clean", "flights", "clean")  # fmt: skip
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**40, 0.1, -0.0, 1e308, 5e-324, float("inf"), float("nan"))


def texts() -> st.SearchStrategy[str]:
    known = st.sampled_from((*INSTANTS, *DURATIONS, *EXPRESSIONS, *TEXTS))
    return st.one_of(known, known, st.text(st.characters(), max_size=40))


def scalars() -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), st.integers(), st.floats(), texts())


def values() -> st.SearchStrategy[Any]:
    """Any JSON value, with what is not JSON but what Python reads: NaN and infinity."""
    return st.recursive(
        scalars(),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts(), inner, max_size=4)),
        max_leaves=8,
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value in a document, its own first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The document with another value at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def without(value: Any, path: tuple[Any, ...]) -> Any:
    """The document without the value at a path, which is not the root."""
    if len(path) > 1:
        return replaced(value, path[:1], without(value[path[0]], path[1:]))
    copy = dict(value) if isinstance(value, dict) else list(value)
    del copy[path[0]]
    return copy


def get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def damaged(draw: st.DrawFn, sound: st.SearchStrategy[Any]) -> Any:
    """A sound document, or one in which up to three values are replaced or missing."""
    value = draw(sound)
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(sorted(places(value), key=repr)))
        value = without(value, path) if path and draw(st.booleans()) else replaced(value, path, draw(values()))
    return value


# The lists of a body, or of a message, whose members are documents that are checked and stored one by one.
PARTS = ("datasets", "policies", "pools", "workflows", "schedules", "dags", "events", "Records", "refs")


def documents(value: Any) -> int:
    """How many documents a body carries: the members of its lists of parts, and the body itself. What lies inside a
    document does not count, however deep."""
    parts = [value.get(name) for name in PARTS] if isinstance(value, dict) else []
    return 1 + sum(len(part) for part in parts if isinstance(part, dict | list | tuple))


@contextmanager
def no_hang() -> Iterator[None]:
    """Interrupt the block once it has taken the CPU time of `HANGS`, which no machine needs for a request."""

    def hangs(*_: Any) -> None:
        raise AssertionError(f"still not done after {HANGS:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def bounded(carried: int = 0) -> Iterator[None]:
    """Fail if the block takes more CPU time than a request with so many documents may. It is for long tests, since
    the time depends on the machine: those of each change use `no_hang`."""
    begun = process_time()
    with no_hang():
        yield
    took, most = process_time() - begun, FIXED_SECONDS + SECONDS_A_DOCUMENT * carried
    assert took < most, f"took {took:.2f} s of CPU time, may take {most:.2f} s for {carried} documents"
