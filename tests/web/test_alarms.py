"""Changes of CloudWatch alarms, as EventBridge sends them to the queue of the Lambda `custom` (T23)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import alarm_events
from tests.web.conftest import NS, Api
from tests.web.outage import tables_down
from tests.web.test_bus import received, set_aside
from tests.web.wrong import ONE

WAITING = {"type": "cloudwatch_alarm", "alarm": alarm_events.NAME}


def runs(api: Api, path: str = ONE) -> list[dict[str, Any]]:
    api.work()
    found: list[dict[str, Any]] = api.get(f"{path}/runs")["items"]
    return found


def test_t23_an_alarm_event_starts_the_waiting_schedule(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    assert received(api, json.dumps(alarm_events.event(state="OK", previous="ALARM"))) == []
    assert runs(api) == []

    assert received(api, json.dumps(alarm_events.event())) == []
    [run] = runs(api)
    [event] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    assert event.pop("id").startswith("cloudwatch_alarm-")
    assert event == {
        "kind": "cloudwatch_alarm",
        "instant": alarm_events.AT_MILLIS,
        "alarm": alarm_events.NAME,
        "arn": alarm_events.ARN + alarm_events.NAME,
        "state": "ALARM",
        "previous_state": "OK",
        "reason": alarm_events.REASON,
    }
    assert set_aside(api) == []


def test_t23_an_alarm_event_delivered_again_counts_once(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING | {"count": 2}, enabled=True)
    once, twice = alarm_events.event(), alarm_events.event(event_id="00000000")
    assert received(api, json.dumps(once), json.dumps(once), json.dumps(twice)) == []
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 1}
    assert api.get(f"{ONE}/why")["jobs"][0]["missing"] == [f"alarm '{alarm_events.NAME}' to go to ALARM"]


def test_t23_the_end_of_a_suppression_starts_nothing(api: Api) -> None:
    ended = alarm_events.suppression_ends()
    api.schedule("nightly", trigger=WAITING | {"alarm": ended["detail"]["alarmName"]}, enabled=True)
    before = api.everything()
    assert received(api, json.dumps(ended)) == []
    assert api.everything() == before
    assert set_aside(api) == []


def test_t23_alarm_and_custom_events_share_a_queue(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    broken, nowhere = alarm_events.event(), alarm_events.event() | {"source": "sluice/nowhere", "detail-type": "go"}
    del broken["detail"]["state"]["value"]
    bodies = [json.dumps(each) for each in (broken, alarm_events.event(), nowhere)]
    assert received(api, *bodies, "[]", "7", '"aws.cloudwatch"') == []
    assert len(runs(api)) == 1
    assert set(set_aside(api)) == {bodies[0], bodies[2], "[]", "7", '"aws.cloudwatch"'}


def test_t23_an_alarm_event_during_a_table_outage_comes_again(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    body = json.dumps(alarm_events.event())
    with tables_down():
        assert received(api, body) == ["m0"]
    assert set_aside(api) == []
    assert received(api, body) == []
    assert len(runs(api)) == 1


@pytest.mark.parametrize("name", ["a:OK", "50 % / 日 #1", "x" * 255, "alarm$", "😀" * 255])
def test_t23_any_alarm_name_passes_through_the_tables(api: Api, name: str) -> None:
    api.schedule("nightly", trigger=WAITING | {"alarm": name}, enabled=True)
    for other in ("a", "a:ALARM", name[:-1] or "b", name):
        assert received(api, json.dumps(alarm_events.event(name=other))) == []
    [run] = runs(api)
    [event] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    assert event["alarm"] == name


def test_t23_a_schedule_of_an_alarm_is_read_back_as_it_was_put(api: Api) -> None:
    trigger = WAITING | {"state": ["OK", "ALARM"], "count": 1}
    api.schedule("nightly", trigger=WAITING | {"state": ["OK", "ALARM"]}, enabled=True)
    [stored] = api.get(f"{ONE}/versions")["items"]
    assert stored["definition"]["trigger"] == trigger
    assert (
        api.get(f"{ONE}/why")["why"]
        == f"no change of the alarm has arrived yet; trigger: alarm '{alarm_events.NAME}' going to OK or ALARM"
    )
    assert api.schedule("nightly", trigger=trigger, enabled=True)["version"] == 1


def test_t23_no_producer_can_post_an_alarm_event(api: Api) -> None:
    """A custom event of this type from another source is a custom event, and one from the API has another kind."""
    api.schedule("nightly", trigger=WAITING, enabled=True)
    api.post(f"{NS}/events", {"events": [{"type": f"alarm:{alarm_events.NAME}:ALARM", "id": "1"}]})
    forged = alarm_events.event() | {"source": "sluice/demo"}
    assert received(api, json.dumps(forged)) == []
    assert runs(api) == []
