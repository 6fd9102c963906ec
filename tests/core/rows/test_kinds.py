"""What follows from a line in the table of the kinds of rows, and that the table and the steps agree."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from typing import Any, get_args

import pytest

from chalicelib.core.rows import kinds
from chalicelib.core.rows.kinds import KINDS, Key, Kind
from chalicelib.core.rows.ref import RefKind
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.writes import Create, Delete, Put, Replace
from chalicelib.flow.system import dispatch, sweep
from sluice.operations.rules.owner import namespace_of
from tests.support import archives
from tests.support.clock import NOON
from tests.support.world import World

NO_ROW = {"fires", "shard", "block", "queue"}  # refs that name more, or less, than a row


@dataclass(frozen=True, slots=True)
class Hue(StoredRow):
    """A kind of row that only this test knows."""

    schedule: str
    version: int
    colour: str = "green"
    rev: int = 1
    leases: int = 0
    wake_at: int | None = None


@pytest.fixture
def hue(monkeypatch: pytest.MonkeyPatch) -> Hue:
    """A row of the kind, which is declared by one line."""
    kind = Kind(Hue, "jobs", "HUE#{schedule}", "{version}", ref="notice")
    monkeypatch.setitem(kinds.ROWS, Hue, kind)
    monkeypatch.setitem(kinds._BY_HEAD, ("jobs", "HUE"), (kind,))
    monkeypatch.setitem(kinds._OF_REFS, "notice", kind)
    return Hue("demo.flights.daily", 7)


def test_one_line_gives_a_row_its_key_owner_and_ref(hue: Hue) -> None:
    key = Key("jobs", "HUE#demo.flights.daily", "0000000007")
    assert kinds.key_of(hue) == kinds.key(Hue, "demo.flights.daily", 7) == key
    assert kinds.kind_of(key).row is Hue
    assert namespace_of(hue) == "demo"
    ref = kinds.ref_of(key)
    assert ref == kinds.ref(Hue, "demo.flights.daily", 7)
    assert ref is not None and kinds.at(ref) == (kinds.ROWS[Hue], key)


def test_one_line_lets_a_row_be_written_and_read(hue: Hue) -> None:
    world = World()
    commit, rows = world.ports.ledger.commit, world.ports.rows
    assert commit([Create(hue)]) is None
    assert commit([Create(hue)]) is not None
    later = Hue("demo.flights.daily", 7, "red", rev=2)
    assert commit([Replace(later)]) is None
    assert rows.get(Hue, "demo.flights.daily", 7) == rows.of(kinds.ref(Hue, "demo.flights.daily", 7)) == later
    ahead = world.ports.prefetch.read(world.ports, [kinds.key_of(hue)])
    assert ahead.rows.get(Hue, "demo.flights.daily", 7) == later
    assert commit([Delete(later)]) is None
    assert rows.get(Hue, "demo.flights.daily", 7) is None


def test_one_line_lets_the_sweep_find_and_lease_a_row(hue: Hue) -> None:
    world = World()
    world.ports.ledger.put_all([Put(Hue("demo.flights.daily", 7, wake_at=NOON))])
    world.clock.pass_by("1m")
    assert sweep.sweep_all(world.ports) == 1
    swept = world.ports.rows.get(Hue, "demo.flights.daily", 7)
    assert swept is not None and (swept.leases, swept.rev) == (1, 2)
    assert swept.wake_at is not None and swept.wake_at > world.clock.now()


def test_one_line_lets_a_row_be_exported(hue: Hue) -> None:
    world = World()
    world.ports.ledger.put_all([Put(hue)])
    [copy] = [each for each in archives.copies_of(world).page("jobs", None)[0] if each.kind == "Hue"]
    assert copy.row == hue


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.row.__name__)
def test_the_ref_of_a_row_that_wakes_has_a_step(kind: Kind) -> None:
    wakes = "wake_at" in {field.name for field in fields(kind.row)}
    assert (kind.ref is not None) == wakes
    cases = re.findall(r'"(\w+)"', "".join(re.findall(r"case .*:", inspect.getsource(dispatch))))
    steps = {*cases, *dispatch.STEPS}
    assert steps == set(get_args(RefKind))
    assert {each.ref for each in KINDS if each.ref is not None} == steps - NO_ROW


def test_a_key_with_too_few_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        kinds.key(Run, "a-run")


def test_a_row_of_a_kind_that_newer_code_has_is_no_ref() -> None:
    unknown: Any = Key("jobs", "HUE#demo", "X")
    assert kinds.ref_of(unknown) is None
