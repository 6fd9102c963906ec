"""The patterns of schedules have a budget of steps, and those of other namespaces a small one (O14)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.steps import DOCUMENT, Steps
from chalicelib.core.triggers.patterns import MAX_FOREIGN_STEPS
from chalicelib.flow.ingest import apply, custom_events
from tests.support.answers import explain
from tests.support.world import World, flights, full

WILD = {"a": [{"wildcard": f"*{number}*x"} for number in range(100)]}
WORDS = [str(number) for number in range(1_400)]
EQUAL = {"$or": [{"a": [7] * 100}] * 100}
NUMBERS = list(range(10, 2_300))


def on_event(pattern: dict[str, Any], **fields: Any) -> dict[str, Any]:
    trigger = {"type": "event", "event": "go", "namespace": "demo", "pattern": pattern}
    return {"workflow": "clean", "enabled": True, "trigger": trigger, **fields}


def beside(foreign: dict[str, dict[str, Any]], own: dict[str, Any] | None = None) -> World:
    """Namespace ``demo`` posts the events, and schedules of ``other`` wait for them, too."""
    world = World(authorization="enforce")
    plain = {"workflow": "clean", "enabled": True, "trigger": {"type": "event", "event": "go"}}
    world.deploy(flights({"mine": own or plain}))
    world.grant("demo", {"grants": [{"to": "other", "events": ["*"]}]})
    document = {"workflows": flights({})["workflows"], "schedules": foreign}
    world.deploy(document, "other", "theirs")
    return world


def test_o14_a_costly_foreign_pattern_is_set_aside_on_record() -> None:
    world = beside({"costly": on_event(WILD), "simple": on_event({"b": [1]})})
    world.post("go", a=WORDS, b=1)
    world.settle()
    assert len(world.runs("mine")) == len(world.runs("other.theirs.simple")) == 1, "the others are served"
    assert (world.runs("other.theirs.costly"), world.jobs("other.theirs.costly")) == ([], [])
    [record] = world.records("other.theirs.costly")
    assert record.kind == "DROPPED"
    assert "is set aside and does not count: to compare it with the patterns of the trigger takes more than 50000" in (
        record.reason.text
    )
    why = explain.why_schedule(world.ports, full("other.theirs.costly"))["why"]
    assert "the last work was dropped at" in why and "is set aside" in why, "the owner is told"


def test_o14_an_event_that_is_set_aside_is_on_record_once() -> None:
    world = beside({"costly": on_event(WILD)})
    for _ in range(2):
        world.post("go", source="same", a=WORDS)
        world.settle()
        world.pass_by("3m")
    assert len(world.records("other.theirs.costly")) == 1
    assert len(world.runs("mine")) == 1


def test_o14_an_event_that_is_set_aside_may_come_under_a_new_id() -> None:
    """Under the same id, it is the event that was applied already."""
    world = beside({"costly": on_event(WILD)})
    world.post("go", source="first", a=[*WORDS, "7 x"])
    document = {"workflows": flights({})["workflows"], "schedules": {"costly": on_event({"a": [{"wildcard": "*7*x"}]})}}
    world.deploy(document, "other", "theirs")
    for source, begun in (("first", 0), ("second", 1)):
        world.post("go", source=source, a=[*WORDS, "7 x"])
        world.pass_by("3m")
        assert len(world.runs("other.theirs.costly")) == begun
    assert len(world.runs("mine")) == 2, "it reaches all schedules again"


def test_o14_the_own_namespace_is_served_whatever_it_costs() -> None:
    world = beside({}, own=on_event(WILD))
    world.post("go", a=[*WORDS, "7 x"])
    world.settle()
    assert len(world.runs("mine")) == 1


def test_o14_equal_values_cost_a_foreign_schedule_nothing() -> None:
    world = beside({"equal": on_event(EQUAL)})
    world.post("go", a=[*NUMBERS, 7])
    world.settle()
    assert len(world.runs("other.theirs.equal")) == 1


def test_o14_many_costly_foreign_patterns_wait_for_the_sweep() -> None:
    """Each stays below its own budget, but all together would cost the sender too much."""
    many = {f"s{number}": on_event({"a": [{"wildcard": f"*x{each}*"} for each in range(90)]}) for number in range(8)}
    world = beside(many)
    world.post("go", a=[*WORDS[:400], "x1"])
    world.settle()
    assert len(world.runs("mine")) == 1
    begun = sum(len(world.runs(f"other.theirs.s{number}")) for number in range(8))
    assert begun < 8
    world.pass_by("3m")
    assert [len(world.runs(f"other.theirs.s{number}")) for number in range(8)] == [1] * 8
    assert len(world.runs("mine")) == 1


def test_o14_a_post_of_many_events_has_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Steps] = []

    class Counted(Steps):
        def __init__(self, budget: int, whole: Steps | None = None) -> None:
            super().__init__(budget, whole)
            made.append(self)

    monkeypatch.setattr(apply, "Steps", Counted)
    world = beside({}, own=on_event(WILD, coalesce=False))
    envelopes = [custom_events.Envelope("go", f"n{number}", {"a": [*WORDS, "7 x"]}) for number in range(20)]
    custom_events.post(world.ports, "demo", envelopes)
    whole = made[0]
    assert whole.budget == apply.MAX_OF_REQUEST
    counted = sum(each.spent for each in made if each.whole is whole and not each.is_over)
    assert counted <= whole.budget + max(each.spent for each in made if each.whole is whole)
    world.pass_by("5m")
    assert len(world.runs("mine")) == 20


def test_o14_foreign_documents_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender pays for reading the documents of others, whether their patterns cost something or not."""
    read: list[str] = []

    class Read(Schedule):
        @classmethod
        def model_validate(cls, given: Any, **fields: Any) -> Any:
            read.append(str(given["trigger"]))
            return Schedule.model_validate(given, **fields)

    lists = {f"k{leaf}": [f"{number:02d}" for number in range(100)] for leaf in range(80)}
    world = beside({f"s{number:02d}": on_event({**lists, "number": [number]}) for number in range(40)})
    monkeypatch.setattr(apply, "Schedule", Read)
    envelopes = [custom_events.Envelope("go", f"n{number}", {"k0": "no"}) for number in range(20)]
    custom_events.post(world.ports, "demo", envelopes)
    foreign = [trigger for trigger in read if "k79" in trigger]
    assert 0 < len(foreign) == len(set(foreign)), "each is read once for all events"
    assert len(foreign) * (DOCUMENT + 8_000) <= apply.MAX_FOREIGN_OF_REQUEST
    world.settle()
    assert len(world.runs("mine")) == 1


def test_o14_a_document_that_is_not_read_waits_for_the_sweep() -> None:
    many = {f"s{number:02d}": on_event({"b": [1]}) for number in range(70)}
    world = beside(many)
    world.post("go", b=1)
    assert 0 < sum(len(world.jobs(f"other.theirs.{name}")) for name in many) < 70
    world.pass_by("5m")
    begun = [len(world.jobs(full(f"other.theirs.{name}"))) + len(world.runs(f"other.theirs.{name}")) for name in many]
    assert begun == [1] * 70


def test_o14_a_foreign_namespace_delays_no_other() -> None:
    many = {f"s{number}": on_event({"a": [{"wildcard": f"*x{each}*"} for each in range(90)]}) for number in range(8)}
    world = beside(many)
    world.grant("demo", {"grants": [{"to": "other", "events": ["*"]}, {"to": "zz", "events": ["*"]}]})
    document = {"workflows": flights({})["workflows"], "schedules": {"simple": on_event({"b": [1]})}}
    world.deploy(document, "zz", "app")
    world.post("go", a=WORDS[:400], b=1)
    world.settle()
    assert len(world.runs("zz.app.simple")) == len(world.runs("mine")) == 1


def test_o14_namespaces_have_a_budget_together() -> None:
    """One namespace uses up its own part; a few of them use up the budget of all."""
    names = [f"n{number}" for number in range(6)]
    world = beside({})
    world.grant("demo", {"grants": [{"to": name, "events": ["*"]} for name in names]})
    costly = {f"s{number}": on_event({"a": [{"wildcard": f"*x{each}*"} for each in range(90)]}) for number in range(3)}
    for name in names:
        world.deploy({"workflows": flights({})["workflows"], "schedules": costly}, name, "app")
    world.post("go", a=[*WORDS[:400], "x1"])
    begun = [sum(len(world.jobs(f"{name}.app.s{number}")) for number in range(3)) for name in names]
    assert 0 < max(begun) < 3
    assert begun[-1] == 0
    world.pass_by("5m")
    jobs = [f"{name}.app.s{number}" for name in names for number in range(3)]
    assert [len(world.jobs(full(name))) + len(world.runs(name)) for name in jobs] == [1] * 18


def test_o14_all_operators_fit_into_the_budget_of_a_usual_event() -> None:
    world = beside({"wild": on_event(WILD)})
    world.post("go", a=[*WORDS[:400], "7 x"])
    world.settle()
    assert len(world.runs("other.theirs.wild")) == 1
    assert MAX_FOREIGN_STEPS >= 100 * 400
