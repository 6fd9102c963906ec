"""An app with one wrong part is refused as a whole: nothing of it is stored."""

import json
from typing import Any

import pytest

from tests.web.conftest import APP, NS, Api
from tests.web.wrong import DATASET, EMR, WORKFLOW, after, partition, refused, schedule, time

# Objects of the stored app, which a document that omits them would remove.
LIVING = {"notify": WORKFLOW, "clean": {"target": EMR}, "refine": {"target": EMR}}
CHAINED = {"workflow": "clean", "enabled": True, "trigger": after("refine")}


@pytest.mark.parametrize(
    ("third", "code", "field"),
    [
        (schedule(workflw="x"), "unknown_field", "schedules.third.workflw"),
        (time("0 0 30 2 *"), "invalid", "schedules.third.trigger.expression"),
        (schedule(workflow="notfiy"), "unknown_reference", "schedules.third.workflow"),
        (schedule(trigger=partition("flihgts")), "unknown_reference", "schedules.third.trigger"),
        (schedule(trigger=partition("fresh"), by=["hour"]), "invalid", "schedules.third.by"),
        ({"workflow": "refine", "trigger": after("clean")}, "cycle", "schedules.third.trigger"),
        ({"workflow": "loop", "trigger": after("loop")}, "cycle", "schedules.third.trigger"),
        (7, "invalid", "schedules.third"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_app_with_one_wrong_schedule_stores_nothing_at_all(
    standing: Api, third: Any, code: str, field: str, query: str
) -> None:
    document = {
        "description": "new",
        "datasets": {"fresh": {"bucket": "lake", "prefix": "fresh/", "keys": ["event-day"]}},
        "workflows": LIVING | {"loop": {"target": EMR}},
        "schedules": {"first": schedule(trigger=partition("fresh")), "chained": CHAINED, "third": third},
    }
    error = refused(standing, 400, "PUT", APP + query, document)
    assert (error["code"], error["field"]) == (code, field)


def test_all_problems_of_an_app_are_told_together(standing: Api) -> None:
    document = {
        "datasets": {"one": DATASET, "two": DATASET},
        "workflows": LIVING,
        "schedules": {
            "first": schedule(workflow="notfiy", trigger=partition("flihgts"), policy="slow"),
            "second": schedule(trigger=after("claen")),
        },
    }
    answer = standing.send("PUT", APP, document)
    error = json.loads(answer.body)["error"]
    view = [(each["code"], each["field"], each["hint"]) for each in error["problems"]]
    assert view == [
        ("conflict", "datasets.two.prefix", "choose another prefix"),
        ("unknown_reference", "schedules.first.workflow", "did you mean 'demo.flights.notify'?"),
        ("unknown_reference", "schedules.first.policy", "create the policy first, or correct the name"),
        ("unknown_reference", "schedules.first.trigger", "did you mean 'demo.flights'?"),
        ("unknown_reference", "schedules.second.trigger", "did you mean 'demo.flights.clean'?"),
    ]
    first = {name: error[name] for name in ("code", "field", "hint")}
    assert first == {name: error["problems"][0][name] for name in first}
    assert error["message"] == f"{error['problems'][0]['message']} (and 4 more)"


def test_an_app_that_closes_a_cycle_within_itself_stores_nothing(standing: Api) -> None:
    document = {
        "workflows": {"one": {"target": EMR}, "two": {"target": EMR}},
        "schedules": {
            "there": {"workflow": "one", "trigger": after("two"), "enabled": True},
            "back": {"workflow": "two", "trigger": after("one"), "enabled": True},
        },
    }
    error = refused(standing, 400, "PUT", f"{NS}/apps/flights", document)
    assert (error["code"], error["field"]) == ("cycle", "schedules.there.trigger")


@pytest.mark.parametrize(
    ("datasets", "field"),
    [
        ({"new": DATASET | {"prefix": "raw/flights/"}}, "datasets.new.prefix"),
        ({"one": DATASET, "two": DATASET}, "datasets.two.prefix"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_app_with_a_prefix_that_is_taken_stores_nothing(
    standing: Api, datasets: dict[str, Any], field: str, query: str
) -> None:
    error = refused(standing, 409, "PUT", APP + query, {"description": "new", "datasets": datasets})
    assert (error["code"], error["field"]) == ("conflict", field)


def test_a_deployment_may_refer_to_its_own_parts(standing: Api) -> None:
    document = {
        "datasets": {"orders": DATASET},
        "workflows": LIVING | {"ship": WORKFLOW},
        "schedules": {"a": schedule(trigger=partition("ordres"))},
    }
    assert refused(standing, 400, "PUT", APP, document)["hint"] == "did you mean 'demo.orders'?"
    document["schedules"] = {"a": schedule(workflow="shipp")}
    assert refused(standing, 400, "PUT", APP, document)["hint"] == "did you mean 'demo.flights.ship'?"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"schedules": {"Bad Name": schedule()}}, "schedules.Bad Name"),
        ({"workflows": {"a.b": WORKFLOW}}, "workflows.a.b"),
        ({"schedules": [schedule()]}, "schedules"),
        ({"schedule": {}}, "schedule"),
        ({"namespace": "demmo"}, "namespace"),
    ],
)
def test_an_invalid_app_is_refused(standing: Api, document: dict[str, Any], field: str) -> None:
    assert refused(standing, 400, "PUT", APP, document)["field"].startswith(field)


@pytest.mark.parametrize(
    ("third", "field"),
    [(schedule(workflow="clean"), "workflow"), ({"workflow": "notify", "trigger": after("clean")}, "trigger")],
)
@pytest.mark.parametrize("query", ["", "?update_schedules=false"])
def test_a_schedule_of_a_workflow_missing_in_its_app_is_refused(
    standing: Api, third: Any, field: str, query: str
) -> None:
    """`clean` exists, so its name is right; but the document would remove it."""
    document = {"workflows": {"notify": WORKFLOW}, "schedules": {"third": third}}
    error = refused(standing, 400, "PUT", APP + query, document)
    assert (error["code"], error["field"]) == ("unknown_reference", f"schedules.third.{field}")
    assert error["message"] == "expected a workflow that the document names, got 'demo.flights.clean'"
    assert str(error["hint"]).startswith("add it to the workflows of the document")


def test_a_flag_is_true_or_false(standing: Api) -> None:
    for name in ("dry_run", "update_schedules"):
        for text in ("yes", "1", "True", ""):
            error = refused(standing, 400, "PUT", f"{APP}?{name}={text}", {"owner": "new"})
            assert (error["field"], error["message"]) == (name, f"expected true or false, got {text!r}")
    assert refused(standing, 400, "PUT", f"{APP}?dryrun=true", {"owner": "new"})["field"] == "dryrun"


def test_a_dry_run_needs_no_namespace_and_creates_none(standing: Api) -> None:
    path = "/v1/namespaces/fresh/apps/flights"
    before = standing.everything()
    report = standing.put(f"{path}?dry_run=true", {"workflows": {"notify": WORKFLOW}})
    assert report["created"] == ["app fresh.flights", "workflow fresh.flights.notify"]
    refused(standing, 404, "PUT", path, {"workflows": {"notify": WORKFLOW}})
    assert standing.everything() == before
