"""H6: which events a change of a run reports, and what they may hold."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.build import status_event
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.openlineage import datasets, events, facets, outlets, subjects
from chalicelib.core.openlineage.events import Known, Step
from chalicelib.core.openlineage.outlets import Item, Later
from chalicelib.core.targets.emr_serverless import OF_LINEAGE
from chalicelib.core.why import NONE
from tests.support import rows
from tests.support.clock import NOON
from tests.support.openlineage import AWS, KINDS, parsed

RUN = {"schedule": "demo.flights.daily", "workflow": "demo.flights.clean", "claimed_at": NOON}


def said(written: int, first: bool = False, **fields: Any) -> list[str]:
    return [step.type for step in events.steps(rows.run(**(RUN | fields)), first, written)]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("RUNNING", "RUNNING"),
        ("SUCCEEDED", "COMPLETE"),
        ("FAILED", "FAIL"),
        ("RETRYING", "FAIL"),
        ("CANCELLED", "ABORT"),
        ("ABORTED", "ABORT"),
    ],
)
def test_h6_each_state_is_a_type_of_event(state: str, kind: str) -> None:
    assert said(NOON, state=state, state_at=NOON) == [kind]
    assert said(NOON, first=True, state=state, state_at=NOON) == ["START", kind]


def test_h6_a_change_long_after_a_state_is_another_one() -> None:
    assert said(NOON, first=True, state="STARTING") == ["START"]
    assert said(NOON + 15 * MINUTE, state="RUNNING", state_at=NOON) == ["RUNNING"]
    assert said(NOON + 16 * MINUTE, state="RUNNING", state_at=NOON) == []  # a heartbeat
    assert said(NOON, state="SUCCEEDED", state_at=NOON, leases=1) == []  # only leased since


def test_h6_an_imported_row_reports_nothing_of_its_past() -> None:
    assert said(NOON + HOUR, first=True, state="SUCCEEDED", state_at=NOON) == []


@pytest.mark.parametrize("of", sorted(KINDS))
def test_h6_each_facet_names_the_schema_of_the_client(of: str) -> None:
    for kind in KINDS[of].values():
        assert facets.facet(kind.__name__)["_schemaURL"] == kind._get_schema()


def test_h6_every_facet_is_compared() -> None:
    compared = {kind.__name__ for kinds in KINDS.values() for kind in kinds.values()}
    assert compared == set(facets.VERSIONS)


def test_h6_a_table_of_glue_has_its_name_there() -> None:
    from openlineage.client.naming.dataset import AWSGlue

    table = {"bucket": "lake", "prefix": "tables/orders/", "format": "iceberg", "glue_table": "sales.orders"}
    known = {"shop.orders": Dataset.model_validate(table)}
    [found] = datasets.inputs(["shop.orders"], {}, known, AWS)
    official = AWSGlue("eu-west-1", "123456789012", "sales", "orders")
    [symlink] = found["facets"]["symlinks"]["identifiers"]
    assert (symlink["namespace"], symlink["name"]) == (official.get_namespace(), official.get_name())
    assert (found["namespace"], found["name"]) == ("s3://lake", "tables/orders")
    assert found["facets"]["storage"]["storageLayer"] == "iceberg"
    [nowhere] = datasets.inputs(["shop.orders"], {}, known, datasets.NOWHERE)
    assert "symlinks" not in nowhere["facets"]


def test_h6_an_event_that_is_too_large_loses_details() -> None:
    large = {
        "bucket": "lake",
        "keys": ["day"],
        "description": "x" * 1_000,
        "tags": {f"k{n}": "v" * 180 for n in range(50)},
    }
    known = {f"shop.d{n}": Dataset.model_validate(large | {"prefix": f"raw/{n}/"}) for n in range(40)}
    parts = {name: [{"day": f"{n:0300}"} for n in range(150)] for name in known}
    ins = datasets.inputs(known, parts, known, AWS)
    assert len(ins[0]["inputFacets"]["subset"]["inputCondition"]["partitions"]) == datasets.MAX_PARTITIONS
    step = Step("COMPLETE", NOON, NONE)
    event = events.event_of("sluice", rows.run(**RUN), step, Known())
    small = events.fitted(event | {"inputs": ins})
    assert len(str(small)) < events.MAX_EVENT
    assert [each["name"] for each in small["inputs"]] == [f"raw/{n}" for n in range(40)]
    parsed(small)


def test_h6_spark_gets_properties_that_no_list_limits() -> None:
    assert set(subjects.spark_properties("sluice", rows.run(**RUN))) == OF_LINEAGE


def test_h6_two_installations_have_other_ids() -> None:
    run = rows.run(**RUN)
    assert subjects.family("a", run).own.run_id != subjects.family("b", run).own.run_id


def test_h6_an_event_names_no_job_of_another_namespace() -> None:
    ends = [status_event(rows.run(**(RUN | {"schedule": f"{n}.flights.load"})), "COMPLETED") for n in ("demo", "hr")]
    known = Known(events=tuple(ends))

    def named(*namespaces: str) -> list[str]:
        event = events.event_of("sluice", rows.run(**RUN), Step("START", NOON, NONE), known, namespaces)
        return [each["job"]["namespace"] for each in event["run"]["facets"]["jobDependencies"]["upstream"]]

    assert named() == ["sluice/demo", "sluice/hr"]
    assert named("demo") == ["sluice/demo"]


@pytest.mark.parametrize(
    ("outcome", "age", "alone", "quiet", "given_up"),
    [
        (Later("HTTP 503", failed=True), HOUR, None, HOUR, False),
        (Later("HTTP 503", failed=True), HOUR, 14 * MINUTE, 0, False),
        (Later("HTTP 503", failed=True), HOUR, 15 * MINUTE, HOUR, True),
        (Later("HTTP 429"), 11 * HOUR, HOUR, 0, False),
        (Later("HTTP 401"), 12 * HOUR, None, 0, True),
        (Later("the invocation ends", tried=False), 13 * HOUR, HOUR, MINUTE, False),
        (Later("not asked", tried=False), 13 * HOUR, None, 15 * MINUTE, True),
    ],
)
def test_h6_when_an_event_is_given_up(outcome: Later, age: int, alone: int | None, quiet: int, given_up: bool) -> None:
    """``alone``: for so long it fails alone; ``quiet``: for so long the receiver took none."""
    since = NOON - alone if alone is not None else None
    assert outlets.is_given_up(Item("1", NOON - age, {}), outcome, since, NOON - quiet, NOON) is given_up
