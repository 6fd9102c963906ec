"""Reports of one version of an object are recognised by its sequencer, or by its content and second."""

from __future__ import annotations

import pytest

from chalicelib.core.events.versions import ObjectVersion, is_later, is_same
from tests.core.builders import NOON


def version(at: int = 0, etag: str = "", sequencer: str = "") -> ObjectVersion:
    return ObjectVersion(NOON + at, etag, sequencer)


@pytest.mark.parametrize(("one", "other"), [("00AB", "00ab"), ("00AB", "00AB00"), ("0", "00")])
def test_sequencers_are_compared_without_case_and_padded(one: str, other: str) -> None:
    assert is_same(version(sequencer=one), version(9_000, sequencer=other))
    assert not is_later(version(9_000, sequencer=one), version(sequencer=other))


@pytest.mark.parametrize(("early", "late"), [("00AB", "00AC"), ("00AB", "00AB01"), ("0A", "0b"), ("0F", "10")])
def test_the_greater_sequencer_is_later_at_any_instants(early: str, late: str) -> None:
    assert is_later(version(sequencer=late), version(9_000, sequencer=early))
    assert not is_later(version(9_000, sequencer=early), version(sequencer=late))
    assert not is_same(version(sequencer=early), version(sequencer=late))


@pytest.mark.parametrize(
    ("at", "etag", "same"),
    [(0, "a", True), (999, "a", True), (1_999, "a", True), (-1, "a", True), (2_000, "a", False), (-1_001, "a", False),
     (500, "b", False), (500, "", True)],
)  # fmt: skip
def test_without_a_sequencer_content_and_second_decide(at: int, etag: str, same: bool) -> None:
    assert is_same(version(0, "a", "00AB"), version(at, etag)) is same
    assert is_same(version(at, etag), version(0, "a", "00AB")) is same


def test_without_a_sequencer_the_later_instant_is_later() -> None:
    assert is_later(version(1), version(0, sequencer="00AB"))
    assert not is_later(version(0), version(0, sequencer="00AB"))
