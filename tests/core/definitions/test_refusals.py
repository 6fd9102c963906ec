"""What is refused when a document is written, and the form of the error: code, the field's path, expected and got, a
hint.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from chalicelib.core import errors
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from tests.core.builders import ABSENT, CLEANED, ELAPSED, EMR, PARTITION, QUIET, SIZE, TICK, all_of
from tests.support.kinds import LEAF_TYPES

SHORT: dict[str, Any] = {"workflow": "clean", "trigger": {"type": "partition", "dataset": "flights"}}
FLIGHTS: dict[str, Any] = {"bucket": "lake", "prefix": "raw/", "keys": ["carrier-code", "_day"]}


def refused(kind: type[BaseModel], document: Any) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(document)
    return errors.from_validation(caught.value, kind)


def refused_schedule(**changed: Any) -> SluiceError:
    return refused(NewSchedule, SHORT | changed)


@pytest.mark.parametrize(
    ("changed", "path", "meant"),
    [
        ({"wrkflow": "clean"}, "wrkflow", "workflow"),
        ({"trigger": PARTITION | {"cnt": 2}}, "trigger.cnt", "count"),
        ({"trigger": all_of(PARTITION, CLEANED | {"status": "FAILED"})}, "trigger.triggers.1.status", "statuses"),
        ({"trigger": TICK | {"dueTime": "0s"}}, "trigger.dueTime", "due_time"),
        ({"trigger": TICK | {"timezone": "UTC"}}, "trigger.timezone", "zone"),
        ({"constraints": [{"type": "concurrency", "max": 1, "on_unmt": "wait"}]}, "constraints.0.on_unmt", "on_unmet"),
        ({"timeout": {"aftr": "1d"}}, "timeout.aftr", "after"),
        ({"catch_up": {"Within": "1d"}}, "catch_up.Within", "within"),
        ({"retries": {"atempts": 2}}, "retries.atempts", "attempts"),
    ],
)
def test_an_unknown_field_is_refused_with_its_path(changed: dict[str, Any], path: str, meant: str) -> None:
    error = refused_schedule(**changed)
    assert (error.code, error.field, error.status) == ("unknown_field", path, 400)
    assert error.message.startswith(f"unknown field {path.rpartition('.')[2]!r}")
    assert error.hint == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("changed", "path", "got"),
    [
        ({"workflow": 5}, "workflow", "5"),
        ({"priority": "high"}, "priority", "'high'"),
        ({"priority": 10}, "priority", "10"),
        ({"priority": -1}, "priority", "-1"),
        ({"properties": ["a"]}, "properties", "['a']"),
        ({"trigger": PARTITION | {"count": 0}}, "trigger.count", "0"),
        ({"trigger": PARTITION | {"count": 1.5}}, "trigger.count", "1.5"),
        ({"trigger": CLEANED | {"statuses": ["DONE"]}}, "trigger.statuses.0", "'DONE'"),
        ({"constraints": [{"type": "concurrency", "max": 0}]}, "constraints.0.max", "0"),
        ({"trigger": 5}, "trigger", "5"),
        ({"zone": "Mars/Base"}, "zone", "'Mars/Base'"),
        ({"coalesce": "perhaps"}, "coalesce", "'perhaps'"),
        ({"on_update": "keep"}, "on_update", "'keep'"),
        ({"pause_after_failures": 0}, "pause_after_failures", "0"),
    ],
)
def test_a_value_of_wrong_kind_is_refused_with_path_and_value(changed: dict[str, Any], path: str, got: str) -> None:
    error = refused_schedule(**changed)
    assert (error.code, error.field) == ("invalid", path)
    assert f"got {got}" in error.message


@pytest.mark.parametrize("trigger", [{}, {"type": "cron"}, {"type": None}, {"type": ["time"]}])
def test_a_trigger_of_an_unknown_type_is_refused_naming_types(trigger: dict[str, Any]) -> None:
    error = refused_schedule(trigger=trigger)
    assert error.field == "trigger"
    expected = f"expected an object whose type is one of {', '.join(LEAF_TYPES)}, all, any, at_least"
    assert error.message == f"{expected}, got {trigger!r}"


def test_an_error_path_is_what_the_user_wrote_without_union_tags() -> None:
    error = refused_schedule(trigger=all_of(PARTITION, all_of(TICK | {"expression": "0 0 31 2 *"})))
    assert error.field == "trigger.triggers.1.triggers.0.expression"
    assert error.message.startswith("expected a cron expression that some date matches, got '0 0 31 2 *'")
    assert error.hint == "no such date exists in any year; correct day of month or month"


def test_a_missing_value_is_asked_for() -> None:
    error = refused(Schedule, {"trigger": PARTITION})
    assert (error.field, error.hint) == ("workflow", "add the field")
    assert error.message == "expected a value, got nothing"


def test_the_first_error_is_shown_in_full_and_the_rest_counted() -> None:
    error = refused(Workflow, {"target": EMR, "priority": 99, "owner": 5, "description": 7})
    assert error.message.endswith(" (and 2 more)")


def test_an_unknown_field_with_no_like_name_lists_the_fields() -> None:
    error = refused_schedule(timeout={"zebra": 1})
    assert error.hint == "remove it; the fields are after, then"


def test_all_problems_are_told_unknown_fields_first() -> None:
    notify = [{"on": ["faild"], "to": {"type": "snss"}}]
    error = refused_schedule(workflow=5, timeout={"aftr": "1d"}, zone="Mars/Base", notify=notify)
    assert [(each.code, each.field) for each in error.problems] == [
        ("unknown_field", "timeout.aftr"),
        ("invalid", "workflow"),
        ("invalid", "zone"),
        ("invalid", "notify.0.on.0"),
        ("invalid", "notify.0.to"),
    ]
    assert [each.hint for each in error.problems[3:]] == ["did you mean 'failed'?", "did you mean 'sns'?"]
    assert (error.code, error.field) == ("unknown_field", "timeout.aftr")
    assert error.message == "unknown field 'aftr' (and 4 more)"
    assert error.to_dict()["error"]["problems"][0]["message"] == "unknown field 'aftr'"


def test_a_misspelt_required_field_is_one_problem() -> None:
    error = refused(NewSchedule, {"workflw": "clean", "trigger": PARTITION})
    assert (error.field, error.message, error.hint) == (
        "workflw",
        "unknown field 'workflw'",
        "did you mean 'workflow'?",
    )
    assert "problems" not in error.to_dict()["error"]


def test_a_long_value_in_an_error_is_truncated() -> None:
    error = refused_schedule(workflow="X" * 5_000)
    assert len(error.message) < 250


@pytest.mark.parametrize("name", ["", "Clean", "-clean", "a b", "a.b", "ü", "x" * 64, "a/b"])
def test_a_name_has_a_fixed_form(name: str) -> None:
    error = refused(App, {"app": name})
    assert (error.code, error.field) == ("invalid", "app")
    assert error.message == f"expected a name, got {name!r}"
    assert error.hint == "lower-case letters, digits, '-' and '_', at most 63, beginning with a letter or digit"


@pytest.mark.parametrize("name", ["", "a.b.c.d", "a..b", ".a", "a.", "A", "a b"])
def test_a_reference_is_a_name_or_a_full_name(name: str) -> None:
    error = refused_schedule(workflow=name)
    assert error.field == "workflow"
    assert error.message.startswith("expected a name, or a full name with dots such as namespace.app.name")


@pytest.mark.parametrize("prefix", ["", "raw", "/raw/", "raw//flights/", "/"])
def test_a_prefix_ends_with_a_slash_and_does_not_begin_with_one(prefix: str) -> None:
    error = refused(Dataset, FLIGHTS | {"prefix": prefix})
    assert error.field == "prefix"
    assert error.message.endswith(f"such as raw/flights/, got {prefix!r}")


@pytest.mark.parametrize("keys", [[], ["a", "a"], ["a=b"], ["1st"], ["-a"], ["a/b"], ["a b"], [""], ["k" * 64]])
def test_dataset_keys_are_distinct_names_and_at_least_one(keys: list[str]) -> None:
    error = refused(Dataset, FLIGHTS | {"keys": keys})
    assert error.field is not None
    assert error.field.startswith("keys")


@pytest.mark.parametrize("flag", ["", "a/b", "/"])
def test_t8_a_done_flag_is_the_name_of_one_object(flag: str) -> None:
    assert refused(Dataset, FLIGHTS | {"ready": {"done_flag": flag}}).field == "ready.done_flag"


def test_t8_a_partition_is_ready_by_a_flag_or_manifest_not_both() -> None:
    error = refused(Dataset, FLIGHTS | {"ready": {"done_flag": "_SUCCESS", "manifest": "files.json"}})
    assert (error.field, error.message) == ("ready", "expected either a done_flag or a manifest, got 'both'")


@pytest.mark.parametrize("entry", ["job.py", "s3://bucket", "s3:///job.py", "https://x/job.py"])
def test_an_emr_target_names_its_program_in_s3(entry: str) -> None:
    assert refused(Workflow, {"target": EMR | {"entry_point": entry}}).field == "target.entry_point"


@pytest.mark.parametrize("delay", ["soon", "0s", ""])
def test_w1_the_delay_of_a_retry_is_a_duration(delay: str) -> None:
    error = refused(Workflow, {"target": EMR, "retries": {"attempts": 3, "delay": delay}})
    assert error.field == "retries.delay"
    assert error.message.endswith(f"got {delay!r}")


def test_t19_correlation_keys_are_written_once() -> None:
    error = refused_schedule(trigger=PARTITION | {"by": ["day"]}, by=["day"])
    assert error.field == "by"


def test_t19_correlation_keys_exclude_time_leaves() -> None:
    error = refused_schedule(trigger=all_of(PARTITION, TICK), by=["day"])
    assert error.field == "by"
    assert error.message == "expected correlation keys only where every leaf counts events, got ['day']"
    assert error.hint == "a time has no partition; use two schedules, or an absent with period or after"
    for timed in (ELAPSED, ABSENT):
        assert refused_schedule(trigger=all_of(PARTITION, timed), by=["day"]).field == "by"
    assert Schedule.model_validate(SHORT | {"trigger": all_of(QUIET, SIZE), "by": ["day"]}).by == ("day",)


def test_l5_a_schedule_of_more_than_45_leaves_is_refused() -> None:
    error = refused_schedule(trigger=all_of(*[PARTITION] * 46))
    assert error.field == "trigger"
    assert error.message == "expected at most 45 leaves in one trigger, got '46 leaves'"


def test_an_error_within_an_app_has_the_path_from_the_app_root() -> None:
    error = refused(App, {"schedules": {"nightly": SHORT | {"trigger": PARTITION | {"count": 0}}}})
    assert error.field == "schedules.nightly.trigger.count"


def test_a_trigger_nested_without_end_is_refused_like_any_error() -> None:
    deep: dict[str, Any] = PARTITION
    for _ in range(300):
        deep = all_of(deep)
    assert refused_schedule(trigger=deep).code == "invalid"


def test_every_code_has_a_status_and_an_error_has_one_shape() -> None:
    error = errors.invalid("trigger.count", "a number", "x", "write a number")
    assert error.to_dict() == {
        "error": {
            "code": "invalid",
            "message": "expected a number, got 'x'",
            "field": "trigger.count",
            "hint": "write a number",
        }
    }
    made = [error, errors.not_found("schedule", "x"), errors.changed_meanwhile("schedule x")]
    assert [each.status for each in made] == [400, 404, 412]


def test_an_unknown_reference_offers_the_nearest_name() -> None:
    error = errors.unknown_reference("workflow", "workflow", "demo.flights.claen", ["demo.flights.clean", "demo.x.y"])
    assert error.hint == "did you mean 'demo.flights.clean'?"
    assert (
        errors.unknown_reference("workflow", "workflow", "x").hint == "create the workflow first, or correct the name"
    )


def test_an_error_is_reported_relative_to_the_outer_document() -> None:
    error = errors.invalid("count", "a number", "x").under("trigger")
    assert error.field == "trigger.count"
    assert errors.not_found("dataset", "x").under("trigger").field == "trigger"
