"""The AWS calls and DynamoDB units of deliveries that are due together, so that a slowdown shows without a clock.

The counts are exact. If a change raises one of them, a burst takes longer or costs more: find out why before you change
the number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from benchmarks.burst import shot
from benchmarks.cost.paths import APP
from benchmarks.cost.plant import Plant, fresh_tables
from benchmarks.loader import load
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.ref import Ref, events_of
from chalicelib.flow.deliveries.prepare import prepare
from chalicelib.flow.deliveries.send import Leased, lease, send
from chalicelib.flow.fires import emit
from chalicelib.flow.system.dispatch import dispatch_together
from sluice.testing.memory import MemoryHints


@dataclass(frozen=True)
class Counted:
    """The calls of a part, and its units: those read, and those written to tables and indexes."""

    calls: dict[str, int]
    read_units: float
    write_units: float

    @classmethod
    def of(cls, plant: Plant) -> Counted:
        tally = plant.tally
        calls = {name.partition(":")[2]: count for name, count in sorted(tally.calls.items()) if count}
        plant.restart_meter()
        return cls(calls, tally.read_units, tally.write_units)


def _prepared(count: int, separate: bool) -> tuple[Plant, list[Ref], int]:
    """A plant with jobs that are due in a minute: of one schedule each, or all of one schedule."""
    plant = Plant(*fresh_tables())
    hints = MemoryHints()
    plant.ports = replace(plant.ports, hints=hints)
    plant.deploy(APP)
    names = [f"demo.flights.shot{number:04d}" for number in range(count if separate else 1)]
    document = shot("notify", 60) | ({} if separate or count == 1 else {"spread": {"count": count}})
    now = plant.clock.now()
    load(plant.ports.ledger, names, document, now)
    emit.emit_due(plant.ports)
    refs = [ref for _, ref in hints.sent if ref.kind == "job"]
    assert sum(map(events_of, refs)) == count
    plant.restart_meter()
    return plant, refs, now + MINUTE


def test_the_calls_of_one_delivery_are_counted() -> None:
    plant, refs, due = _prepared(1, separate=True)
    plant.clock.wait_until(due)
    plant.restart_meter()

    assert dispatch_together(plant.ports, refs, due) == []

    calls = {"BatchGetItem": 1, "GetItem": 8, "PutItem": 1, "Query": 1, "TransactWriteItems": 1, "SendMessage": 1}
    assert Counted.of(plant) == Counted(calls, 11, 11)


def _before(reads: int, read_units: float, write_units: float) -> Counted:
    # The count of closings and the allow-list are got; leases are looked for twice.
    calls = {"BatchGetItem": reads, "GetItem": 2, "PutItem": 1, "Query": 2}
    return Counted(calls, read_units, write_units)


def _after(count: int, reads: dict[str, int], read_units: float) -> Counted:
    calls = reads | {"SendMessageBatch": count // 10, "TransactWriteItems": count // 50}
    return Counted(dict(sorted(calls.items())), read_units, 10 * count)


def _after_in_bundles(count: int, reads: dict[str, int], read_units: float) -> Counted:
    """A transaction settles a bundle of at most 250 events, before which the bundle and its run are read."""
    records = -(-count // 250)
    calls = {**reads, "GetItem": reads["GetItem"] + 2 * records, "SendMessageBatch": count // 10}
    calls["TransactWriteItems"] = records
    return Counted(dict(sorted(calls.items())), read_units + 2 * records, 10 * records)


# One lease covers a bundle.
IN_A_BUNDLE = Counted({"BatchGetItem": 3, "GetItem": 2, "PutItem": 1, "Query": 1}, 8, 1)
IN_FOUR_BUNDLES = Counted({"BatchGetItem": 3, "GetItem": 2, "PutItem": 1, "Query": 2}, 18, 1)


def _leased(plant: Plant, refs: list[Ref], due: int) -> Leased:
    batch = prepare(plant.ports, refs, due)
    return lease(plant.ports, batch.ready, due, batch.counts)


@pytest.mark.parametrize(
    ("count", "separate", "before", "after"),
    [
        (100, True, _before(6, 505, 2), _after(100, {"GetItem": 2}, 2)),
        (100, False, IN_A_BUNDLE, _after_in_bundles(100, {"GetItem": 2}, 2)),
        (1_000, False, IN_FOUR_BUNDLES, _after_in_bundles(1_000, {"GetItem": 20}, 20)),
    ],
)
def test_the_calls_of_a_batch_are_counted(count: int, separate: bool, before: Counted, after: Counted) -> None:
    """``before`` the instant: rows and the allow-list are read, and jobs leased. ``after`` it: sub-batches of 50, each
    with a look at the count of closings, and their records."""
    plant, refs, due = _prepared(count, separate)
    plant.clock.wait_until(due - SECOND)
    plant.restart_meter()
    leased = _leased(plant, refs, due)
    assert Counted.of(plant) == before
    plant.clock.wait_until(due)
    plant.restart_meter()

    assert len(send(plant.ports, leased).ends) == count

    assert plant.sqs.delivered_to_targets == count
    assert Counted.of(plant) == after


@pytest.mark.parametrize("separate", [True, False])
def test_a_closing_makes_each_sub_batch_read_its_rows(separate: bool) -> None:
    plant, refs, due = _prepared(100, separate)
    plant.clock.wait_until(due - SECOND)
    leased = _leased(plant, refs, due)
    plant.clock.wait_until(due)
    plant.ports.ledger.count_closing("demo")
    plant.restart_meter()

    assert len(send(plant.ports, leased).ends) == 100

    # The count is read once more; after that it is known to have changed. The workflow is read for each sub-batch.
    reads = {"BatchGetItem": 2, "GetItem": 3}
    assert Counted.of(plant) == (_after(100, reads, 203) if separate else _after_in_bundles(100, reads, 7))
