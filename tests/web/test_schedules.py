"""Schedules over HTTP: their documents, their state, and the actions of users (L1-L3, L7, L11)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from chalicelib.core.writes import Put
from chalicelib.wiring import ports
from tests.support import rows
from tests.support.clock import NOON
from tests.web.conftest import APP, KEYS, NS, WEEKDAYS, Api

ONE = f"{APP}/schedules/nightly"
EVERY_DAY = {"type": "partition", "dataset": "flights"}


# -- documents -------------------------------------------------------------------------------------------------------


def test_a_new_schedule_is_disabled(api: Api) -> None:
    made = api.send("PUT", ONE, {"workflow": "notify", "trigger": WEEKDAYS})
    assert made.status_code == 201
    view = made.json_body
    assert (view["name"], view["workflow"]) == ("demo.flights.nightly", "demo.flights.notify")
    assert (view["state"], view["enabled"], view["version"]) == ("disabled", False, 1)
    assert made.headers["ETag"] == '"1"'
    assert api.get(ONE) == view
    assert view.pop("fires_per_day") == 0.7143
    assert api.get(f"{APP}/schedules") == {"items": [view], "next_cursor": None}


def test_a_schedule_can_be_created_enabled(api: Api) -> None:
    assert api.schedule("nightly", enabled=True)["state"] == "enabled"


@pytest.mark.parametrize("enabled", [True, False])
def test_a_replaced_schedule_keeps_its_mode(api: Api, enabled: bool) -> None:
    api.schedule("nightly", enabled=enabled)
    replaced = api.send("PUT", ONE, {"workflow": "notify", "trigger": WEEKDAYS, "priority": 9})
    assert replaced.status_code == 200
    assert (replaced.json_body["enabled"], replaced.json_body["version"]) == (enabled, 2)


def test_putting_an_equal_schedule_changes_nothing_over_http(api: Api) -> None:
    first = api.schedule("nightly", enabled=True)
    before = api.everything()
    assert api.schedule("nightly") == first
    assert api.everything() == before


def test_a_deleted_schedule_is_gone_and_can_be_created_again(api: Api) -> None:
    first = api.schedule("nightly", enabled=True)
    api.delete(ONE)

    for method, path in [("GET", ONE), ("DELETE", ONE), ("GET", f"{ONE}/jobs"), ("GET", f"{ONE}/why")]:
        assert api.refused(404, method, path)["message"] == "no schedule named 'demo.flights.nightly'"
    for action in ("enable", "disable", "run"):
        api.refused(404, "POST", f"{ONE}/{action}")
    assert api.get(f"{APP}/schedules")["items"] == []

    again = api.send("PUT", ONE, {"workflow": "notify", "trigger": WEEKDAYS})
    assert again.status_code == 201
    assert again.json_body["state"] == "disabled"
    assert again.json_body["generation"] > first["generation"]


def test_enable_and_disable_take_no_body_and_may_be_repeated(api: Api) -> None:
    api.schedule("nightly")
    for action, state in [
        ("enable", "enabled"),
        ("enable", "enabled"),
        ("disable", "disabled"),
        ("disable", "disabled"),
    ]:
        answer = api.send("POST", f"{ONE}/{action}")
        assert (answer.status_code, answer.json_body["state"]) == (200, state)
    assert api.post(f"{ONE}/enable", {})["enabled"] is True


def test_every_version_is_kept_newest_first(api: Api) -> None:
    for priority in (1, 2, 3):
        api.schedule("nightly", priority=priority)
    versions = api.get(f"{ONE}/versions")["items"]
    assert [(row["version"], row["definition"]["priority"]) for row in versions] == [(3, 3), (2, 2), (1, 1)]
    assert all(row["created_by"] == "unknown" for row in versions)

    api.delete(ONE)
    assert len(api.get(f"{ONE}/versions")["items"]) == 3
    api.refused(404, "GET", f"{APP}/schedules/never/versions")


def test_forty_five_leaves_and_twenty_levels_are_allowed(api: Api) -> None:
    deep: dict[str, Any] = EVERY_DAY
    for _ in range(20):
        deep = {"type": "all", "triggers": [deep]}
    api.schedule("wide", trigger={"type": "any", "triggers": [EVERY_DAY] * 45}, enabled=True)
    api.schedule("deep", trigger=deep, enabled=True)


# -- ETag and If-Match -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        (ONE, {"workflow": "notify", "trigger": WEEKDAYS}, {"workflow": "notify", "trigger": EVERY_DAY}),
        (f"{NS}/datasets/x", *({"bucket": "lake", "prefix": f"x{n}/", "keys": ["region-id", "_day"]} for n in (1, 2))),
        (f"{APP}/workflows/x", *({"target": {"type": "sqs", "queue_url": f"https://{n}"}} for n in (1, 2))),
        ("/v1/namespaces/x", {}, {"owner": "ops"}),
    ],
)
def test_a_change_may_have_a_condition(api: Api, path: str, first: Any, second: Any) -> None:
    # Given a condition on a document that does not exist
    assert api.refused(412, "PUT", path, first, if_match='"1"')["code"] == "changed_meanwhile"
    api.refused(404, "GET", path)

    # When it exists, and another user has changed it
    seen = api.send("PUT", path, first).headers["ETag"]
    assert api.send("PUT", path, second, if_match=seen).headers["ETag"] == '"2"'

    # Then the ETag that was read before is stale, for replacing and deleting alike
    before = api.everything()
    error = api.refused(412, "PUT", path, first, if_match=seen)
    assert error["hint"] == "read it again, check what changed, and send the request with the new ETag"
    api.refused(412, "DELETE", path, if_match=seen)
    assert api.everything() == before
    api.delete(path, if_match=api.send("GET", path).headers["ETag"])
    api.refused(404, "DELETE", path, if_match='"2"')


# -- run now ---------------------------------------------------------------------------------------------------------


def test_run_now_answers_with_a_job_that_becomes_a_run(api: Api) -> None:
    api.schedule("nightly", properties={"a": 1, "b": 1})

    answer = api.send("POST", f"{ONE}/run", {"properties": {"b": 2}})
    assert answer.status_code == 202
    job_id = answer.json_body["job_id"]
    assert api.get(f"/v1/jobs/{job_id}")["kind"] == "run_now"
    assert api.refused(404, "GET", f"/v1/runs/{job_id}")["hint"] == "it is still a job: run now"
    api.work()

    run = api.get(f"/v1/runs/{job_id}")
    assert (run["state"], run["properties"]) == ("SUCCEEDED", {"a": 1, "b": 2})
    assert (len(run["history"]), run["events"][0]["kind"]) == (1, "run_now")
    assert "the run of the same id" in api.refused(404, "GET", f"/v1/jobs/{job_id}")["hint"]


def test_one_idempotency_key_gives_one_job(api: Api) -> None:
    api.schedule("nightly")
    first = api.post(f"{ONE}/run", idempotency_key="once")
    assert api.post(f"{ONE}/run", idempotency_key="once") == first
    assert len(api.get(f"{ONE}/jobs")["items"]) == 1
    api.work()

    ended = {"state": "SUCCEEDED", "reason": "", "code": None}
    assert api.post(f"{ONE}/run", idempotency_key="once") == first | ended
    api.work()
    assert [run["run_id"] for run in api.get(f"{ONE}/runs")["items"]] == [first["job_id"]]


def test_without_a_key_each_request_is_a_run_of_its_own(api: Api) -> None:
    api.schedule("nightly")
    ids = {api.post(f"{ONE}/run")["job_id"] for _ in range(3)}
    assert {job["job_id"] for job in api.get(f"{ONE}/jobs")["items"]} == ids
    assert len(ids) == 3


# -- why and preview -------------------------------------------------------------------------------------------------


def test_why_shows_what_is_missing(api: Api) -> None:
    both = {"type": "all", "triggers": [EVERY_DAY, {"type": "partition", "dataset": "weather"}]}
    api.schedule("nightly", trigger=both, by=KEYS, enabled=True)
    assert api.get(f"{ONE}/why")["why"].startswith(
        "no partition has arrived yet; trigger: 1 partition of demo.flights and "
    )

    day = {"year": "2013", "month": "1", "day": "1"}
    api.post(f"{NS}/datasets/flights/partitions", {"partition": day})
    api.work()

    [job] = api.get(f"{ONE}/why")["jobs"]
    assert job["missing"] == ["1 partition of demo.weather"]
    assert job["correlation"] == day
    assert api.get(f"/v1/jobs/{job['job_id']}/why") == job
    [listed] = api.get(f"{NS}/jobs")["items"]
    assert listed == api.get(f"/v1/jobs/{job['job_id']}") == api.get(f"{ONE}/jobs")["items"][0]


def test_why_of_a_run_shows_what_fired_it(api: Api) -> None:
    api.schedule("nightly")
    job_id = api.post(f"{ONE}/run")["job_id"]
    api.work()
    why = api.get(f"/v1/runs/{job_id}/why")
    assert (why["run_id"], why["state"]) == (job_id, "SUCCEEDED")
    assert why["waited_ms"] >= 0


def test_a_dropped_job_is_on_record(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "partition", "dataset": "flights", "count": 2}, enabled=True)
    api.post(f"{NS}/datasets/flights/partitions", {"partition": {"year": "2013", "month": "1", "day": "1"}})
    api.post(f"{ONE}/disable")

    [record] = api.get(f"{ONE}/records")["items"]
    assert record["kind"] == "DROPPED"
    assert api.get(f"{NS}/records")["items"] == [record]
    assert api.get(f"{NS}/records?day={record['at'][:10]}")["items"] == [record]
    assert api.get(f"{NS}/records?day=2013-01-01")["items"] == []


def test_a_dropped_job_is_no_longer_shown_as_waiting(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "partition", "dataset": "flights", "count": 2}, enabled=True)
    api.post(f"{NS}/datasets/flights/partitions", {"partition": {"year": "2013", "month": "1", "day": "1"}})
    [job] = api.get(f"{ONE}/jobs")["items"]
    api.post(f"{ONE}/disable")
    assert "it was dropped at" in api.refused(404, "GET", f"/v1/jobs/{job['job_id']}")["hint"]


def test_a_preview_lists_the_next_fires(api: Api) -> None:
    api.schedule("nightly")
    fires = [datetime.fromisoformat(text) for text in api.get(f"{ONE}/preview")["items"]]
    assert len(fires) == 10
    assert all(fire.weekday() < 5 and (fire.hour, fire.minute) == (5, 0) for fire in fires)
    assert len(api.get(f"{ONE}/preview?count=3")["items"]) == 3

    api.schedule("nightly", trigger=EVERY_DAY)
    assert api.get(f"{ONE}/preview")["items"] == []


def test_a_preview_has_the_fires_per_day_and_describes_trigger(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": {"minute": "*"}, "jitter": "30s"})
    shown = api.get(f"{ONE}/preview?count=5")
    assert shown["fires_per_day"] == 1_440
    assert shown["description"].endswith("up to 30s later")
    assert all(nominal <= due for nominal, due in zip(shown["items"], shown["due"], strict=True))


def test_a_preview_counts_an_interval_from_its_enabling(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": "@every 1h"})
    view = api.post(f"{ONE}/enable")
    [first] = api.get(f"{ONE}/preview?count=1")["items"]
    assert datetime.fromisoformat(first) - datetime.fromisoformat(view["updated_at"]) == timedelta(hours=1)


def test_why_shows_the_next_fire(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": "@every 1h"}, enabled=True)
    assert api.get(f"{ONE}/why")["next_fire"] == api.get(f"{ONE}/preview")["items"][0]


def test_h2_one_page_has_runs_of_a_state_however_far_between(api: Api) -> None:
    ended = [rows.run(f"demo.flights.clean.1.r{at:02}", claimed_at=NOON + at, wake_at=None,
                      state="FAILED" if at in (3, 27) else "SUCCEEDED") for at in range(30)]  # fmt: skip
    api.schedule("clean")
    ports().ledger.put_all([Put(run) for run in ended])
    path = f"{APP}/schedules/clean/runs?state=FAILED"
    page = api.get(f"{path}&limit=5")
    assert [run["run_id"][-2:] for run in page["items"]] == ["27", "03"]
    # A request checks only so many schedules; the next request continues where it stopped.
    found, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{path}&limit=1{f'&cursor={cursor}' if cursor else ''}")
        found += [run["run_id"][-2:] for run in page["items"]]
        cursor = page["next_cursor"]
    assert found == ["27", "03"]


def test_runs_are_found_by_state_and_day(api: Api) -> None:
    api.schedule("nightly")
    api.post(f"{ONE}/run")
    api.work()
    for path in (f"{NS}/runs", f"{ONE}/runs"):
        [run] = api.get(path)["items"]
        today = run["claimed_at"][:10]
        assert api.get(f"{path}?state=SUCCEEDED&day={today}")["items"] == [run]
        assert api.get(f"{path}?state=FAILED")["items"] == []
        assert api.get(f"{path}?day=2013-01-01")["items"] == []
    api.refused(404, "GET", f"{APP}/schedules/never/runs")


def test_c14_why_of_work_that_never_ran_has_reason_and_time(api: Api) -> None:
    both = {"type": "all", "triggers": [{"type": "event", "event": "one"}, {"type": "event", "event": "two"}]}
    api.schedule("nightly", trigger=both, enabled=True)
    api.post(f"{NS}/events", {"events": [{"type": "one"}]})
    api.work()
    [job] = api.get(f"{ONE}/jobs")["items"]
    record = api.post(f"/v1/jobs/{job['job_id']}/cancel")

    why = api.get(f"/v1/runs/{job['job_id']}/why")
    assert (why["kind"], why["state"], why["why"]) == ("record", "DROPPED", record["reason"])
    assert (why["at"], why["schedule"]) == (record["at"], "demo.flights.nightly")
    for path in (f"/v1/runs/{job['job_id']}", f"/v1/jobs/{job['job_id']}", f"/v1/jobs/{job['job_id']}/why"):
        assert api.refused(404, "GET", path)["hint"] == f"it was dropped at {record['at']}: {record['reason']}"
    answer = api.get(f"{ONE}/why")
    assert answer["ended"] == [record]
    assert f"the last work was dropped at {record['at']}: {record['reason']}" in answer["why"]
    assert api.get(f"{ONE}/records")["items"] == api.get(f"{NS}/records")["items"] == [record]
