"""What a document uses of other namespaces (O9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import AfterValidator, BaseModel

from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.definitions import foreign
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.documents import types_of
from tests.core.builders import PARTITION
from tests.flow.test_grants import USES
from tests.support.examples import constraints_shown

OTHER = "lake.core.other"  # a name of another namespace
REFERENCES = {"check_reference", "check_stored"}
# Each field of a document that may name something of another namespace, and the case of `USES` that shows its grant.
COVERED = {
    "NewSchedule.workflow": "workflow",
    "NewSchedule.policy": "policy",
    "NewSchedule.pool": "pool",
    "ProgramStatusTrigger.workflow": "upstream",
    "ProgramStatusTrigger.schedule": "upstream of a schedule",
    "PartitionTrigger.dataset": "dataset",
    "SizeTrigger.dataset": "dataset",
    "EventTrigger.namespace": "event",
    "Measured.pool": "load of a pool",
}
# The others, with the test that shows the grant, or the reason why none is needed.
ELSEWHERE = {
    "Workflow.pool": "test_o9_a_workflow_needs_a_grant_for_a_foreign_pool",
    "Workflow.reads": "test_o9_a_workflow_reads_foreign_datasets_with_a_grant",
    "Workflow.produces": "that of another namespace is refused: test_l22_a_workflow_names_datasets_that_exist",
    "Registered.dataset": "that of another namespace is refused: test_l22_a_workflow_names_datasets_that_exist",
    "Node.workflow": "a node is a schedule: test_o9_every_way_to_enable_a_schedule_needs_the_grant",
    "NodesTrigger.nodes": "nodes of the same DAG: no user names this leaf",
    "TimeTrigger.calendar": "that of another namespace is refused: test_t30_a_calendar_that_does_not_fit_is_refused",
    "Metric.namespace": "the namespace is that of CloudWatch",
}


def test_each_reference_of_a_document_is_known_to_need_a_grant() -> None:
    found = {name for model in (NewSchedule, NewDag, Workflow) for name in _references(model, set())}
    of_constraints = {f"{kind.__name__}.{field}" for kind in CONSTRAINTS for field in _fields(kind)}
    assert found == set(COVERED) | set(ELSEWHERE) | of_constraints
    assert set(COVERED.values()) <= set(USES)


@pytest.mark.parametrize("shown", constraints_shown(), ids=lambda shown: shown["type"])
def test_o9_a_foreign_name_in_a_constraint_needs_a_grant(shown: dict[str, Any]) -> None:
    [kind] = [each for each in CONSTRAINTS if shown["type"] in types_of(each)]
    for field in _fields(kind):
        named = [OTHER] if isinstance(shown[field], list) else OTHER
        document = {"workflow": "clean", "trigger": PARTITION, "constraints": [{**shown, field: named}]}
        schedule = NewSchedule.model_validate(document).definition().resolved("demo", "flights", 0)
        assert [use.name for use in foreign.of_claim("demo.flights.mine", schedule, None)] == [OTHER]


def _fields(kind: type[BaseModel]) -> list[str]:
    """The fields of a constraint itself that name another definition."""
    found = (each.partition(".") for each in _references(kind, set()))
    return [field for model, _, field in found if model == kind.__name__]


def _references(model: type[BaseModel], seen: set[type]) -> Iterator[str]:
    """The fields of a document, and of all documents in it, whose text is the name of another definition."""
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        hint = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        if _is_reference(hint) or name == "namespace":
            yield f"{model.__name__}.{name}"
        for inner in _models(hint):
            yield from _references(inner, seen)


def _is_reference(hint: Any) -> bool:
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if any(isinstance(each, AfterValidator) and each.func.__name__ in REFERENCES for each in metadata):
        return True
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return any(_is_reference(part) for part in inner if not isinstance(part, str))


def _models(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
        return
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    for part in inner:
        yield from _models(part)


def test_a_document_uses_nothing_of_its_own_namespace() -> None:
    for document, _, _ in USES.values():
        schedule = NewSchedule.model_validate(document).definition()
        mine = schedule.resolved("demo", "flights", 0)
        owned = schedule.resolved("lake", "core", 0)
        assert len(foreign.of_schedule("demo.flights.mine", mine)) == 1
        used = foreign.of_schedule("lake.core.own", owned)
        assert used == ()
