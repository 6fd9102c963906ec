"""The leaf for alarms: its texts, its event keys, and the alarm names that it accepts (T23)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.cloudwatch_alarm import alarm_key, is_alarm_name
from chalicelib.core.triggers.leaf import Leaf
from tests.core.builders import NOON, brief, came, schedule, trigger

ALARM: dict[str, Any] = {"type": "cloudwatch_alarm", "alarm": "cpu high"}
STATES = ["ALARM", "OK", "INSUFFICIENT_DATA"]
ARN = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:cpu high"


def leaf(**fields: Any) -> Leaf:
    return tree.leaves(trigger(ALARM | fields))[0].trigger


def refused(**fields: Any) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        schedule(ALARM | fields)
    return errors.from_validation(caught.value)


def test_t23_a_leaf_waits_for_the_alarm_state_by_default() -> None:
    assert leaf().event_keys() == ("alarm:cpu high:ALARM",)
    assert leaf(state="OK").event_keys() == ("alarm:cpu high:OK",)
    assert leaf(state=["OK", "ALARM", "OK"]).event_keys() == ("alarm:cpu high:OK", "alarm:cpu high:ALARM")


def test_t23_the_leaf_shows_what_it_waits_for_and_what_came() -> None:
    two = leaf(state=["ALARM", "OK"], count=3)
    assert two.describe() == "alarm 'cpu high' going to ALARM or OK 3 times"
    waiting = two.evaluate(came(1), NOON)
    assert waiting.missing == ("alarm 'cpu high' to go to ALARM or OK 2 times",)
    assert waiting.arrived == ("alarm 'cpu high' went to ALARM or OK at 2026-03-02T12:00:00.000Z",)
    met = two.evaluate(came(3), NOON)
    assert (met.met, met.missing) == (True, ())
    assert met.arrived == ("alarm 'cpu high' went to ALARM or OK 3 times since 2026-03-02T12:00:00.000Z",)


def test_t23_quiet_and_absent_are_described_in_alarm_terms() -> None:
    flapping = tree.describe(trigger({"type": "quiet", "of": ALARM | {"state": ["ALARM", "OK"]}, "after": "10m"}))
    assert flapping == "alarm 'cpu high' going to ALARM or OK, then 10m without another"
    stays = tree.describe(trigger({"type": "absent", "of": ALARM | {"state": "OK"}, "within": "1h"}))
    assert stays == "no change of alarm 'cpu high' to OK to come within 1h"


@pytest.mark.parametrize("name", ["a", "a" * 255, "CPU > 80 % (prod): #1", "höchste/Last", "日本", "a:OK", "alarm:x"])
def test_t23_an_alarm_may_have_any_name_valid_in_cloudwatch(name: str) -> None:
    assert leaf(alarm=name).event_keys() == (f"alarm:{name}:ALARM",)
    assert is_alarm_name(name)


@pytest.mark.parametrize("name", ["", "a" * 256, "two\nlines", "end\n", "\x00", "\x7f"])
def test_t23_an_invalid_alarm_name_is_refused(name: str) -> None:
    assert refused(alarm=name).field == "trigger.alarm"
    assert not is_alarm_name(name)


def test_t23_an_arn_is_refused_with_the_name_at_its_end() -> None:
    error = refused(alarm=ARN)
    assert (error.field, error.hint) == ("trigger.alarm", "write the name alone: cpu high")


@pytest.mark.parametrize(
    ("state", "field", "got"),
    [
        ("ALRM", "trigger.state", "ALARM, OK, INSUFFICIENT_DATA, or a list of these, got 'ALRM'"),
        (["OK", "alarm"], "trigger.state.1", "got 'alarm'"),
        ([], "trigger.state", "expected at least 1 item, got []"),
        (7, "trigger.state", "expected a list, got 7"),
    ],
)
def test_t23_an_invalid_alarm_state_is_refused(state: Any, field: str, got: str) -> None:
    error = refused(state=state)
    assert error.field == field
    assert got in error.message


@brief
@given(st.text(min_size=1), st.sampled_from(STATES), st.text(min_size=1), st.sampled_from(STATES))
def test_t23_no_two_alarms_share_an_event_key(name: str, state: str, other: str, another: str) -> None:
    assert (alarm_key(name, state) == alarm_key(other, another)) is ((name, state) == (other, another))


@pytest.mark.parametrize("character", ["a", "ü", "日", "😀"])
def test_t23_the_longest_name_fits_into_a_key_of_the_table(character: str) -> None:
    """DynamoDB accepts 2,048 bytes as a partition key."""
    key = leaf(alarm=character * 255, state="INSUFFICIENT_DATA").event_keys()[0]
    assert len(f"TRIGGER#{key}".encode()) <= 2_048
