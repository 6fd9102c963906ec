"""The stored layout equals the released one, or has another number (O11)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stored import class_of
from tests.upgrade import layout, trees
from tests.upgrade.account import current
from tests.upgrade.lambdas import Version
from tests.upgrade.layout import Described, Difference
from tests.upgrade.rolling_world import RollingWorld
from tests.upgrade.test_unlike_versions import RENAMES

CARRIED = {"zz_newer"}  # what the world adds to the rows of one version


def test_o11_the_layout_of_rows_is_the_recorded_one() -> None:
    present, recorded = layout.describe(), layout.recorded()

    found = layout.differences(recorded, present)

    broken = [each.text for each in found if not each.compatible]
    if broken and present["layout"] == recorded["layout"]:
        pytest.fail(f"the layout of rows changed: {'; '.join(broken)}. To do: {layout.RULE}.")
    assert not found and present["layout"] == recorded["layout"], (
        f"record what changed, by `python -m tests.upgrade.layout`: {[each.text for each in found]}"
    )


def test_rows_of_a_played_world_have_only_recorded_attributes(old: Version, new: Version) -> None:
    """The description is made from the classes of rows; updates write attributes by name."""
    world = RollingWorld(current(), old, new, lambda minute: 0.5, 2)
    with world.logged():
        world.hour(15)

    rows, seen = layout.recorded()["rows"], set()
    for _, item in world.tables.rows():
        kind = class_of(dict(item))
        known = {name: answer["type"] for name, answer in rows[kind]["attributes"].items()}
        assert item.keys() - CARRIED <= known.keys(), f"{kind} has attributes that are not recorded: {item}"
        types = {name: next(iter(content)) for name, content in item.items() if name not in CARRIED}
        assert types == {name: known[name] for name in types}, f"{kind} has attributes of another type: {item}"
        seen.add(kind)
    assert len(seen) > 15


def changed(act: Callable[[Described], None]) -> list[Difference]:
    """The result of comparing a changed description."""
    recorded = layout.recorded()
    present = copy.deepcopy(recorded)
    act(present)
    return layout.differences(recorded, present)


def job(description: Described) -> dict[str, Any]:
    attributes: dict[str, Any] = description["rows"]["Job"]["attributes"]
    return attributes


COMPATIBLE: dict[str, Callable[[Described], Any]] = {
    "an attribute that may be missing": lambda reported: job(reported).update(hue={"type": "S", "optional": True}),
    "another kind of row": lambda reported: reported["rows"].update(Hue={"keys": ["HUE#x / y"], "attributes": {}}),
    "another index": lambda reported: reported["tables"]["JobsTable"]["GlobalSecondaryIndexes"].append(
        {"IndexName": "by_hue"}
    ),
    "another table": lambda reported: reported["tables"].update(HuesTable={}),
    "another kind of definition": lambda reported: reported["rows"]["Definition"]["keys"].append("NS#x / HUE#y"),
    "another kind of hint": lambda reported: reported["hint"]["kinds"].append("hue"),
    "another kind of event": lambda reported: reported["parts"]["Event"]["kind"].update(values=["hue"]),
}
NOT_COMPATIBLE: dict[str, Callable[[Described], Any]] = {
    "an attribute that must be there": lambda reported: job(reported).update(hue={"type": "S", "optional": False}),
    "an attribute less": lambda reported: job(reported).pop("rank"),
    "an attribute by another name": lambda reported: job(reported).update(order=job(reported).pop("rank")),
    "another type": lambda reported: job(reported)["due_at"].update(type="S"),
    "another value": lambda reported: job(reported)["state"]["values"].append("DREAMING"),
    "an attribute that may now be missing": lambda reported: job(reported)["job_id"].update(optional=True),
    "a kind of definition less": lambda reported: reported["rows"]["Definition"]["keys"].pop(),
    "another key": lambda reported: reported["rows"]["ScheduleState"].update(keys=["GATE#ns.app.schedule / GATE"]),
    "a kind of row less": lambda reported: reported["rows"].pop("DeadlineWatch"),
    "another type of the kind of an event": lambda reported: reported["parts"]["Event"]["kind"].update(type="int"),
    "a key within an event": lambda reported: reported["parts"]["Event"].pop("instant"),
    "an index less": lambda reported: reported["tables"]["JobsTable"]["GlobalSecondaryIndexes"].pop(),
    "an index with other keys": lambda reported: reported["tables"]["RunsTable"]["GlobalSecondaryIndexes"][0].update(
        KeySchema=[]
    ),
    "a kind of hint less": lambda reported: reported["hint"]["kinds"].pop(),
    "hints in another form": lambda reported: reported["hint"]["body"].pop("due"),
}


@pytest.mark.parametrize("what", COMPATIBLE)
def test_a_compatible_change_is_recorded_under_the_same_number(what: str) -> None:
    found = changed(COMPATIBLE[what])

    assert found and all(each.compatible for each in found), found


@pytest.mark.parametrize("what", NOT_COMPATIBLE)
def test_a_change_older_code_would_misread_needs_a_new_number(what: str) -> None:
    found = changed(NOT_COMPATIBLE[what])

    assert found and not all(each.compatible for each in found), found


def test_a_renamed_attribute_in_the_code_changes_the_layout() -> None:
    trees.copied(trees.present_source(), "renamed", RENAMES)

    found = layout.differences(layout.recorded(), layout.describe("chalicelib_renamed"))

    assert "Job.queued_in is gone: older code reads it" in {each.text for each in found}
    assert "Job.queues_at is new: it may be missing" in {each.text for each in found}


def test_an_incompatible_change_needs_a_new_layout_number(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released = tmp_path / "layout.json"
    description = layout.recorded()
    job(description)["hue"] = {"type": "S", "optional": True}
    released.write_text(layout.written(description))
    monkeypatch.setattr(layout, "RECORDED", released)

    assert layout.main() == 1
    assert "NOT COMPATIBLE: Job.hue is gone" in capsys.readouterr().out
    assert layout.recorded() == description

    released.write_text(layout.written({**description, "layout": description["layout"] - 1}))
    assert layout.main() == 0
    assert layout.recorded() == layout.describe()
