"""The documents that users write: what they may leave out, and what they may not write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import names as definition_names
from chalicelib.core.definitions import workflow
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import DAY, HOUR
from tests.core.builders import CLEANED, EMR, PARTITION, SQS, TICK, WEATHER, all_of, any_of, brief, concurrency, dataset

SHORT: dict[str, Any] = {"workflow": "clean", "trigger": {"type": "partition", "dataset": "flights"}}
names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_schedule_needs_only_a_workflow_and_a_trigger() -> None:
    made = Schedule.model_validate(SHORT)

    assert made.priority is None
    assert made.properties == {}
    assert (made.by, made.constraints) == ((), ())
    assert (made.description, made.tags, made.owner) == ("", {}, "")


def test_c10_the_default_timeout_is_a_day_and_aborts() -> None:
    assert Schedule.model_validate(SHORT).timeout_millis == DAY
    made = Schedule.model_validate(SHORT | {"timeout": {"after": "PT2H"}})
    assert made.timeout_millis == 2 * HOUR
    assert made.timeout != "never"
    assert made.timeout.then == "abort"


def test_c10_a_timeout_may_be_never() -> None:
    assert Schedule.model_validate(SHORT | {"timeout": "never"}).timeout_millis is None


def test_l2_a_new_schedule_leaves_enabled_unset_by_default() -> None:
    assert NewSchedule.model_validate(SHORT).enabled is None
    assert NewSchedule.model_validate(SHORT | {"enabled": True}).enabled is True


def test_a_status_leaf_counts_one_completion_by_default() -> None:
    [leaf] = [Schedule.model_validate(SHORT | {"trigger": CLEANED}).trigger]
    assert (leaf.statuses, leaf.count) == (("COMPLETED",), 1)


def test_c1_a_concurrency_constraint_aborts_by_default() -> None:
    [constraint] = Schedule.model_validate(SHORT | {"constraints": [{"type": "concurrency", "max": 2}]}).constraints
    assert constraint.on_unmet == "abort"


def test_w1_a_workflow_has_one_attempt_by_default() -> None:
    made = Workflow.model_validate({"target": EMR})
    assert (made.retries.attempts, made.retries.delay) == (1, "30s")
    assert made.priority == workflow.DEFAULT_PRIORITY
    assert made.properties == {}


def test_c11_fires_and_matches_coalesce_by_default() -> None:
    assert Schedule.model_validate(SHORT).coalesce is True
    assert Schedule.model_validate(SHORT | {"coalesce": False}).coalesce is False


def test_l25_an_update_keeps_gathered_events_by_default() -> None:
    assert NewSchedule.model_validate(SHORT).on_update == "carry"
    dropping = NewSchedule.model_validate(SHORT | {"on_update": "drop"})
    assert dropping.definition() == Schedule.model_validate(SHORT), "the setting of one update is not kept"


def test_l19_a_schedule_allows_any_number_of_failures_by_default() -> None:
    assert Schedule.model_validate(SHORT).pause_after_failures is None
    assert Schedule.model_validate(SHORT | {"pause_after_failures": 3}).pause_after_failures == 3


def test_t9_an_overwrite_does_not_count_by_default() -> None:
    assert dataset().count_overwrites is False
    assert dataset(count_overwrites=True).count_overwrites is True


def test_only_a_target_with_followed_runs_has_a_lifecycle() -> None:
    assert Workflow.model_validate({"target": EMR}).target.has_lifecycle
    assert not Workflow.model_validate({"target": SQS}).target.has_lifecycle


def test_t8_a_partition_is_ready_at_its_first_object_by_default() -> None:
    assert dataset().ready.done_flag is None
    assert dataset(ready={"done_flag": "_SUCCESS"}).ready.done_flag == "_SUCCESS"


def test_t19_the_correlation_keys_may_be_written_in_the_trigger() -> None:
    lifted = Schedule.model_validate(SHORT | {"trigger": SHORT["trigger"] | {"by": ["year", "month"]}})
    written = Schedule.model_validate(SHORT | {"by": ["year", "month"]})
    assert lifted == written
    assert lifted.by == ("year", "month")


def test_t19_lifting_correlation_keys_keeps_document_unchanged() -> None:
    document = SHORT | {"trigger": SHORT["trigger"] | {"by": ["year"]}}
    Schedule.model_validate(document)
    assert document["trigger"]["by"] == ["year"]


def test_t19_correlation_works_with_statuses_having_partitions() -> None:
    made = Schedule.model_validate(SHORT | {"trigger": all_of(CLEANED, WEATHER), "by": ["year"]})
    assert made.by == ("year",)


def test_l9_properties_are_kept_unchanged() -> None:
    properties = {"mode": "full", "limit": 3, "ratio": 0.1, "deep": {"list": [1, None, {"x": True}]}, "": "ü"}
    made = Schedule.model_validate(SHORT | {"properties": properties})
    assert made.properties == properties
    assert Workflow.model_validate({"target": EMR, "properties": properties}).properties == properties


@given(st.dictionaries(st.text(), plain, max_size=4), st.sampled_from([None, True, False]))
@brief
def test_l7_a_definition_is_read_back_from_json_unchanged(properties: dict[str, Any], enabled: bool | None) -> None:
    trigger = all_of(any_of(PARTITION, CLEANED), {**WEATHER, "count": 3})
    document = {"workflow": "clean", "trigger": trigger, "by": ["day"], "constraints": [concurrency(2, "wait")]}
    sent = NewSchedule.model_validate(document | {"properties": properties, "enabled": enabled, "timeout": "never"})

    definition = sent.definition()
    back = Schedule.model_validate(json.loads(json.dumps(definition.model_dump(mode="json"))))

    assert back == definition
    assert type(definition) is Schedule
    assert "enabled" not in definition.model_dump()
    assert back.properties == properties


def test_resolved_names_are_full_throughout_the_tree() -> None:
    tree = all_of(
        {"type": "partition", "dataset": "flights"},
        any_of({"type": "program_status", "workflow": "clean"}, TICK, {"type": "partition", "dataset": "else.weather"}),
        {"type": "program_status", "workflow": "other.join"},
    )
    made = Schedule.model_validate({"workflow": "report", "trigger": tree}).resolved("demo", "flights")

    assert made.workflow == "demo.flights.report"
    first, second, third = made.trigger.triggers
    assert first.dataset == "demo.flights"
    assert second.triggers[0].workflow == "demo.flights.clean"
    assert second.triggers[2].dataset == "else.weather"
    assert third.workflow == "demo.other.join"


@given(names, names, names)
@brief
def test_a_name_is_completed_by_namespace_and_app(namespace: str, app: str, name: str) -> None:
    full = f"{namespace}.{app}.{name}"
    assert definition_names.full_name(name, namespace, app) == full
    assert definition_names.full_name(f"{app}.{name}", namespace, "another") == full
    assert definition_names.full_name(full, "some", "another") == full
    assert definition_names.dataset_name(name, namespace) == definition_names.dataset_name(
        f"{namespace}.{name}", "another"
    )


def test_resolving_a_resolved_schedule_changes_nothing() -> None:
    once = Schedule.model_validate(SHORT).resolved("demo", "flights")
    assert once.resolved("else", "where") == once


@pytest.mark.parametrize("prefix", ["raw/", "raw/flights/", "a=b/c/"])
def test_a_dataset_has_a_folder(prefix: str) -> None:
    assert dataset(prefix=prefix).prefix == prefix


def test_a_partition_key_may_have_hyphens_and_underscores() -> None:
    keys = ("aws-account-id", "aws_region", "_hour", "Year", "k" * 63)
    assert dataset(keys=list(keys)).keys == keys


def test_l8_an_app_has_datasets_workflows_and_schedules_by_name() -> None:
    sent = {
        "datasets": {"flights": {"bucket": "lake", "prefix": "raw/", "keys": ["carrier-code", "_day"]}},
        "workflows": {"clean": {"target": EMR}},
        "schedules": {"nightly": SHORT | {"enabled": True}},
    }
    made = App.model_validate(sent)
    assert isinstance(made.datasets["flights"], Dataset)
    assert isinstance(made.workflows["clean"], Workflow)
    assert made.schedules["nightly"].enabled is True
    assert (made.namespace, made.app) == (None, None)


def test_a_document_is_immutable() -> None:
    made = Schedule.model_validate(SHORT)
    with pytest.raises(ValueError, match="frozen"):
        made.workflow = "other"
