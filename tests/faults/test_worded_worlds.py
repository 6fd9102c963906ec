"""No decision reads a sentence: a world in which every reason and every refusal says ``x`` has the same runs, records
and codes as one with the real texts.

The random worlds of `test_random_worlds` are played twice. `why.Why.text` is the one place in which a reason becomes a
text, and `SluiceError` the one in which a refusal does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core import why
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.why import Why
from chalicelib.flow.jobs import check
from chalicelib.flow.views import explain
from chalicelib.log import logger
from sluice.testing import validate
from tests.faults import invariants
from tests.faults.granted_world import GrantedWorld
from tests.faults.random_world import RandomWorld
from tests.faults.test_random_worlds import PEOPLE, grant_steps, patient, schedules
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

ADA = "arn:aws:sts::123456789012:assumed-role/DataOwner/ada"
ASKING = {"target": EMR, "approval": {"type": "approval", "role": "DataOwner"}}


def coded(content: Any) -> Any:
    """A row without the texts of its reasons: each is its code and its names."""
    if isinstance(content, Why):
        return content.code, *((each.kind, each.name) for each in content.names if each.kind != "answer")
    if is_dataclass(content) and not isinstance(content, type):
        return type(content).__name__, *(coded(getattr(content, item.name)) for item in fields(content))
    return content


def outcome(world: World) -> list[Any]:
    """Every run, record, job and subscription, without texts."""
    stock = invariants.Stock(world)
    rows = [*stock.runs, *stock.records, *stock.jobs, *stock.subscriptions]
    return sorted((coded(row) for row in rows), key=repr)


def codes_of(world: World) -> list[Any]:
    """What the explanations of the schedules say to a program."""
    found = []
    for state in invariants.Stock(world).schedule_states:
        try:
            view = explain.why_schedule(world.ports, state.schedule)
        except SluiceError as error:
            found.append((state.schedule, error.code))
            continue
        for job in view["jobs"]:
            met = [each["met"] for each in job["constraints"]]
            found.append((job["job_id"], job["decision"], coded(job["why"]), job["state"], met))
        found += [(each["id"], each["kind"], each["code"]) for each in view["ended"]]
        found.append((state.schedule, coded(view["why"]), view["refs"]))
    return sorted(found, key=repr)


def says_x(patch: pytest.MonkeyPatch) -> None:
    """Let each reason and each refusal say ``x``."""
    made = SluiceError.__init__

    def refuse(self: SluiceError, code: str, message: str, *rest: Any, **more: Any) -> None:
        made(self, code, message, *rest, **more)
        self.message, self.hint = "x", self.hint and "x"

    patch.setattr(why, "_rendered", lambda texts: "x" if any(texts) else "")
    patch.setattr(SluiceError, "__init__", refuse)


def twice(play: Callable[[], World]) -> tuple[list[Any], list[Any]]:
    """What follows from a play, and what follows if no text says anything."""
    found = []
    for change in (lambda patch: None, says_x):
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            world = play()
            found.append([*outcome(world), *codes_of(world)])
    return found[0], found[1]


def played(documents: dict[str, Any], steps: list[Any], seed: int, kind: type[RandomWorld]) -> World:
    level = logger.log_level
    logger.setLevel("CRITICAL")
    try:
        world = kind(documents, seed)
        for name, *arguments in steps:
            act = getattr(world, name)
            if name in PEOPLE:
                world.people(lambda act=act, arguments=arguments: act(*arguments))
            else:
                act(*arguments)
    finally:
        logger.setLevel(level)
    return world


worlds = given(
    schedules(), st.lists(grant_steps, min_size=15, max_size=60), st.integers(0, 1000),
    st.sampled_from([RandomWorld, RandomWorld, GrantedWorld]),
)  # fmt: skip


def compare(documents: dict[str, Any], steps: list[Any], seed: int, kind: type[RandomWorld]) -> None:
    if kind is RandomWorld:
        steps = [each for each in steps if each[0] != "changes_grants"]
    real, silent = twice(lambda: played(documents, steps, seed, kind))
    assert real == silent


@settings(max_examples=30, derandomize=True, **patient)
@worlds
def test_random_worlds_without_texts_are_the_same(
    documents: dict[str, Any], steps: list[Any], seed: int, kind: type[RandomWorld]
) -> None:
    compare(documents, steps, seed, kind)


@pytest.mark.long
@settings(max_examples=1500, **patient)
@worlds
def test_random_worlds_without_texts_at_length(
    documents: dict[str, Any], steps: list[Any], seed: int, kind: type[RandomWorld]
) -> None:
    compare(documents, steps, seed, kind)


def misplaced() -> World:
    """Objects in no partition of their dataset, for three reasons, one of them twice."""
    world = World()
    world.deploy(flights({"a": partitions()}))
    for folder in ("year=2013/month=*/day=1", "year=2013/month=?/day=1", "elsewhere", "elsewhere/again"):
        with suppress(SluiceError):
            world.upload(f"raw/flights/{folder}/part-0", size=5)
        world.pass_by("2m")
    return world


def test_objects_in_no_partition_are_told_apart_without_texts() -> None:
    found = []
    for change in (lambda patch: None, says_x):
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            row = misplaced().ports.rows.get(IgnoredObjects, "demo.flights")
            assert row is not None
            found.append([(each["key"], each["code"], each["of"]) for each in row.objects])
    assert found[0] == found[1]
    assert [code for _, code, _ in found[0]] == ["no_folders", "invalid_value", "invalid_value"]


def test_documents_are_checked_without_texts() -> None:
    """A misspelt name, a name that another document has, and one that only the installation may have."""
    schedules = {
        name: {"workflow": "clean", "trigger": {"type": "program_status", "workflow": f"demo.{of}"}}
        for name, of in {"misspelt": "flights.cleen", "beside": "weather.load", "far": "lake.load"}.items()
    }
    apps = [
        {"namespace": "demo", "app": "flights", "workflows": {"clean": {"target": EMR}}, "schedules": schedules},
        {"namespace": "demo", "app": "weather", "workflows": {"load": {}}},
    ]
    found = []
    for change in (lambda patch: None, says_x):
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            checked = validate.check(apps, datetime(2026, 3, 2, tzinfo=UTC))
            parts = [(each.problems, each.elsewhere) for each in checked]
            found.append([[[(each.code, each.field) for each in part] for part in pair] for pair in parts])
    assert found[0] == found[1]
    assert [len(part) for part in found[0][0]] == [1, 1]


def approved() -> World:
    """A job waits for the approval of its workflow, which then asks for none any more."""
    world = World()
    world.deploy(flights({"a": partitions()}, clean=ASKING))
    world.upload(day(1))
    world.settle()
    world.deploy(flights({"a": partitions()}))
    world.pass_by("1h")
    world.settle()
    return world


def test_a_wait_for_an_approval_is_the_same_without_texts() -> None:
    real, silent = twice(approved)
    assert real == silent
    assert [row for row in real if row[0] == "Run"] != []


def test_a_decision_that_reads_a_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The former test of a job's reason by its words."""
    awaiting = check._awaiting_workflow

    def by_words(facts: Any, reason: Why) -> Any:
        words = f" for workflow {facts.schedule.workflow}, else wait: waits for approval"
        return awaiting(facts, reason) if words in reason.text else []

    monkeypatch.setattr(check, "_awaiting_workflow", by_words)
    real, silent = twice(approved)
    assert real != silent
