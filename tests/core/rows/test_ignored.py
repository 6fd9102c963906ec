from __future__ import annotations

from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.ignored import IgnoredObjects, noted
from tests.support.clock import NOON

FOUND = {"key": "raw/a", "at": "2026-03-02T12:01:00.000Z", "code": "no_folders", "of": "", "why": "new words"}


def test_objects_noted_before_the_codes_are_kept() -> None:
    before = {"key": "raw/b", "at": "2026-03-02T12:00:00.000Z", "why": "its path has no folders"}
    row = noted(IgnoredObjects("demo.raw", (before,), NOON), "demo.raw", FOUND, NOON + MINUTE)
    assert row == IgnoredObjects("demo.raw", (FOUND, before), NOON + MINUTE)


def test_the_newest_object_replaces_one_of_the_same_reason() -> None:
    same = FOUND | {"key": "raw/b", "why": "old words"}
    other = FOUND | {"key": "raw/c", "code": "invalid_value", "of": "day=x"}
    row = noted(IgnoredObjects("demo.raw", (same, other), NOON), "demo.raw", FOUND, NOON + MINUTE)
    assert row == IgnoredObjects("demo.raw", (FOUND, other), NOON + MINUTE)
