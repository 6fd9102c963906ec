"""Random lives of schedules with jitter, spreads, catch-up, outages, updates and pauses: no fire is lost (T4, T5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chalicelib.core.rows.ref import Ref
from chalicelib.core.system import bursts
from chalicelib.flow import shards
from chalicelib.flow.fires import emit
from chalicelib.ports import Ports
from tests.faults import fire_world
from tests.support.samples import every

DRAINED = 3_079  # drains, enables and updates while an event waits for its jitter


def _check(seed: int) -> None:
    life = fire_world.play(seed)
    assert life.problems() == [], "\n".join([f"seed {seed}", *life.said])


@pytest.mark.parametrize("seed", every(3, range(24)))
def test_t4_every_event_runs_or_is_on_record(seed: int) -> None:
    _check(seed)


def _divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each timer fills a shard and a message. Returns a list that gets the number of timers of each message."""
    monkeypatch.setattr(shards, "PAGE", 1)
    monkeypatch.setattr(bursts, "LEAST", 1)
    prepared: list[int] = []
    whole = emit.emit_together

    def counted(ports: Ports, refs: Sequence[Ref]) -> tuple[list[Ref], list[Ref]]:
        prepared.append(len(refs))
        return whole(ports, refs)

    monkeypatch.setattr(emit, "emit_together", counted)
    return prepared


@pytest.mark.parametrize("seed", [*every(3, range(2_000, 2_024)), DRAINED])
def test_t4_no_event_of_a_divided_shard_is_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _divided(monkeypatch)
    _check(seed)


def test_t4_a_divided_shard_is_prepared_by_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the seeds above test what they are for."""
    prepared = _divided(monkeypatch)
    _check(2_000)
    assert len(prepared) > 10


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(10))
def test_t4_no_event_of_a_thousand_divided_shards_is_lost(hundred: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _divided(monkeypatch)
    for seed in range(3_000 + 100 * hundred, 3_100 + 100 * hundred):
        _check(seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(10))
def test_t4_every_event_of_a_thousand_lives_runs_or_is_on_record(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        _check(seed)
