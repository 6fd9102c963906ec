"""The parts of a trigger as views show them: each says what it has and needs, as the decision does."""

from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree
from tests.core.builders import CLEANED, NOON, PARTITION, QUIET, SIZE, WEATHER, all_of, at_least, trigger


def test_each_part_of_a_trigger_says_what_it_has() -> None:
    made = trigger(all_of(PARTITION | {"count": 3}, at_least(1, WEATHER, CLEANED)))
    progress = {"0": Progress(2, NOON, NOON + MINUTE), "2": Progress(1, NOON, NOON)}
    root = tree.evaluate(made, progress, NOON)

    assert (root.type, root.need, root.have, root.met, root.text) == ("all", 2, 1, False, tree.describe(made))
    flights, either = root.children
    assert (flights.leaf, flights.have, flights.need, flights.met) == ("0", 2, 3, False)
    assert (either.leaf, either.have, either.need, either.met) == (None, 1, 1, True)
    assert [(part.leaf, part.met) for part in either.children] == [("1", False), ("2", True)]
    assert flights.missing == root.missing
    assert flights.arrived + either.children[1].arrived == root.arrived


def test_a_size_leaf_counts_bytes_in_its_part() -> None:
    made = trigger(SIZE)
    part = tree.evaluate(made, {"0": Progress(5, NOON, NOON, 7_000)}, NOON)
    assert (part.have, part.type, part.met) == (7_000, "size", False)
    assert part.need > 7_000


def test_a_quiet_part_says_when_it_changes() -> None:
    made = trigger(all_of(QUIET, WEATHER))
    progress = {"0": Progress(1, NOON, NOON)}
    root = tree.evaluate(made, progress, NOON)
    assert root.changes_at == root.children[0].changes_at
    assert root.children[0].changes_at is not None
    assert (root.children[0].have, root.children[0].need) == (1, 1)
