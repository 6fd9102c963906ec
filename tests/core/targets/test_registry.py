"""The registries of targets: each type has a document and an adapter, and no other module tests for a type."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from chalicelib.aws.targets.registry import ADAPTERS
from chalicelib.core.documents import types_of
from chalicelib.core.errors import SluiceError
from chalicelib.core.targets.dag_start import DagStart
from chalicelib.core.targets.each import EachElement
from chalicelib.core.targets.emr_serverless import EmrServerlessTarget
from chalicelib.core.targets.registry import TARGETS, of_event, of_run, of_type
from chalicelib.core.targets.sqs import SqsTarget
from chalicelib.core.targets.target import Target, require_lifecycle
from tests.support import rows

SERVICE = Path(__file__).parents[3] / "chalicelib"
# The last two start a DAG and the elements of a node; no document names them.
ALL: tuple[type[Target], ...] = (*TARGETS, DagStart, EachElement)
OF_TARGETS = (SERVICE / "core/targets", SERVICE / "aws/targets")
TYPES = {types_of(each)[0] for each in ALL}
CLASSES = {each.__name__ for each in ALL}


def test_each_type_of_target_has_a_document_and_an_adapter() -> None:
    assert len(TYPES) == len(TARGETS) + 2
    assert set(ADAPTERS) == TYPES
    for kind in TYPES:
        assert types_of(of_type(kind)) == (kind,)


def test_each_type_that_a_document_may_name_is_documented() -> None:
    documented = (SERVICE.parent / "docs/targets.md").read_text()
    assert [kind for each in TARGETS for kind in types_of(each) if f"| `{kind}` |" not in documented] == []


def test_each_source_of_events_belongs_to_one_target() -> None:
    sources = [each.event_source for each in ALL if each.event_source is not None]
    assert len(sources) == len(set(sources))
    assert [of_event({"source": source}).event_source for source in sources] == sources
    assert all(each.has_lifecycle for each in ALL if each.event_source is not None)
    with pytest.raises(KeyError, match="aws.ec2"):
        of_event({"source": "aws.ec2"})


def test_a_run_at_a_newer_target_keeps_its_lifecycle_fields() -> None:
    run = rows.run()
    newer = replace(run, request=replace(run.request, target={"type": "of_a_newer_release"}))
    assert of_run(newer) is Target
    assert of_run(newer).has_lifecycle
    assert not (of_run(newer).pulled or of_run(newer).listed or of_run(newer).bills)


def test_a_cancelled_worker_run_that_failed_counts_as_cancelled() -> None:
    cancelled = replace(rows.run(), cancel=True)
    assert of_type("worker").interpret(cancelled, "FAILED") == "CANCELLED"
    assert of_type("worker").interpret(cancelled, "COMPLETE") == "COMPLETE"
    assert of_type("worker").interpret(rows.run(), "FAILED") == "FAILED"
    assert of_type("emr_serverless").interpret(cancelled, "FAILED") == "FAILED"


def test_a_target_without_a_lifecycle_is_refused_where_needed() -> None:
    require_lifecycle(EmrServerlessTarget(type="emr_serverless", entry_point="s3://code/job.py"), "pool", "another")
    with pytest.raises(SluiceError) as caught:
        require_lifecycle(SqsTarget(type="sqs", queue_url="https://queue"), "pool", "another")
    assert (caught.value.field, caught.value.code) == ("pool", "invalid")
    assert "got one for a sqs target, whose runs have no end that Sluice can see" in caught.value.message.replace(
        "'", ""
    )


def test_only_the_targets_package_reads_the_type_of_a_target() -> None:
    found = [
        f"{path.relative_to(SERVICE.parent)}:{node.lineno}: {ast.unparse(node)}"
        for folder in (SERVICE, SERVICE.parent / "sluice/operations")
        for path in folder.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in OF_TARGETS)
        for node in ast.walk(ast.parse(path.read_text()))
        if _asks_for_a_class(node) or _compares_a_type(node)
    ]
    assert found == []


def _asks_for_a_class(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        return not CLASSES.isdisjoint(each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name))
    return isinstance(node, ast.MatchClass) and ast.unparse(node.cls) in CLASSES


def _compares_a_type(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    named = TYPES - {"dag", "each"}  # which have other meanings, too
    return any(isinstance(each, ast.Constant) and each.value in named for each in ast.walk(node))
