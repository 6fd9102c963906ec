"""Throttling policies over the API: put, read, listed, replaced, deleted unless an object names them (L17, E3)."""

from __future__ import annotations

import pytest

from chalicelib.flow.views import queues
from tests.web.conftest import APP, NS, Api

POLICIES = f"{NS}/policies"
ONE = f"{POLICIES}/calm"


def test_l17_a_policy_is_put_read_listed_replaced_and_deleted(api: Api) -> None:
    created = api.send("PUT", ONE, {"max_events": 20, "interval": "1m"})
    assert (created.status_code, created.json_body["did"]) == (201, "created")
    answer = api.get(ONE)
    assert (answer["name"], answer["kind"], answer["version"]) == ("demo.calm", "policy", 1)
    assert (answer["max_events"], answer["interval"]) == (20, "1m")

    same = api.send("PUT", ONE, {"max_events": 20, "interval": "1m"})
    assert (same.status_code, same.json_body["did"], api.get(ONE)["version"]) == (200, "unchanged", 1)
    changed = api.send("PUT", ONE, {"max_events": 5, "interval": "1m"})
    assert (changed.status_code, changed.json_body["did"]) == (200, "replaced")
    assert (api.get(ONE)["max_events"], api.get(ONE)["version"]) == (5, 2)
    assert api.refused(412, "PUT", ONE, {"max_events": 6}, if_match='"1"')["code"] == "changed_meanwhile"

    api.put(f"{POLICIES}/other", {"max_events": 1})
    assert [each["name"] for each in api.get(POLICIES)["items"]] == ["demo.calm", "demo.other"]
    api.delete(ONE)
    assert api.refused(404, "GET", ONE)["code"] == "not_found"
    assert api.refused(404, "DELETE", ONE)["code"] == "not_found"
    assert [each["name"] for each in api.get(POLICIES)["items"]] == ["demo.other"]


def test_l17_a_policy_in_use_is_not_deleted_naming_its_schedules(api: Api) -> None:
    api.put(ONE, {"max_events": 20})
    for name in ("nightly", "weekly"):
        api.schedule(name, policy="calm")
    error = api.refused(409, "DELETE", ONE)
    assert error["code"] == "in_use"
    assert "demo.flights.nightly" in error["message"]
    assert "demo.flights.weekly" in error["message"]
    assert api.get(ONE)["max_events"] == 20

    api.schedule("nightly")
    assert "demo.flights.nightly" not in api.refused(409, "DELETE", ONE)["message"]
    api.delete(f"{APP}/schedules/weekly")
    api.delete(ONE)


def test_l17_a_wrong_policy_is_refused_by_field_and_not_stored(api: Api) -> None:
    before = api.everything()
    assert api.refused(400, "PUT", ONE, {})["field"] == "max_events"
    assert api.refused(400, "PUT", ONE, {"max_events": 0})["field"] == "max_events"
    assert api.refused(400, "PUT", ONE, {"max_events": 1, "interval": "soon"})["field"] == "interval"
    assert api.refused(400, "PUT", ONE, {"max_events": 1, "per": "1m"})["code"] == "unknown_field"
    assert api.everything() == before


def test_l17_a_schedule_cannot_name_a_missing_policy(api: Api) -> None:
    body = {"workflow": "notify", "trigger": {"type": "time", "expression": "@daily"}, "policy": "nowhere"}
    error = api.refused(400, "PUT", f"{APP}/schedules/nightly", body)
    assert (error["code"], error["field"]) == ("unknown_reference", "policy")


def test_l17_a_policy_counts_jobs_that_wait_with_a_group(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the group stand behind more jobs than the view reads: one in the queue of the policy, one for
    admission."""
    monkeypatch.setattr(queues, "MAX_SHOWN", 2)
    api.put(ONE, {"max_events": 1, "interval": "10m"})
    grouped = [{"type": "concurrency", "group": "spark", "max": 9, "on_unmet": "wait"}]
    api.schedule("plain", policy="calm", workflow="clean")
    api.schedule("grouped", policy="calm", workflow="clean", constraints=grouped)
    for number, name in enumerate(["plain"] * 3 + ["grouped"] * 2):
        api.post(f"{APP}/schedules/{name}/run", {}, idempotency_key=f"k{number}")
    api.work()

    answer, jobs = api.get(ONE), api.get(f"{NS}/jobs")["items"]
    assert [(part["of"], part["waiting"]) for part in answer["parts"]] == [
        ("the next start", 3), ("admission, with permits of group demo.spark", 1),
    ]  # fmt: skip
    assert answer["waiting"] == len(jobs) == 4


def test_l17_a_policy_and_the_jobs_tell_the_same_queue(api: Api) -> None:
    api.put(ONE, {"max_events": 1, "interval": "10m"})
    api.schedule("nightly", policy="calm", workflow="clean")
    assert (api.get(ONE)["waiting"], api.get(ONE)["next_start_at"]) == (0, None)
    for number in range(4):
        api.post(f"{APP}/schedules/nightly/run", {}, idempotency_key=f"k{number}")
        api.work()

    answer = api.get(ONE)
    jobs = api.get(f"{NS}/jobs")["items"]
    [part] = answer["parts"]
    assert answer["waiting"] == part["waiting"] == len(jobs) == 3
    assert answer["next_start_at"] > answer["updated_at"]
    assert [each["position"] for each in part["queue"]] == [1, 2, 3]
    places = {each["job_id"]: each["position"] for each in part["queue"]}
    assert {job["job_id"]: job["queue"]["position"] for job in jobs} == places
    for job in jobs:
        place = {"of": "policy demo.calm", "position": places[job["job_id"]], "waiting": 3}
        assert job["queue"] == place | {"more_urgent": 0, "since": job["queue"]["since"]}
        assert job["reason"].endswith(f"; position {places[job['job_id']]} of 3 in its queue")
        assert api.get(f"/v1/jobs/{job['job_id']}/why")["why"] == job["reason"]
        assert api.get(f"/v1/jobs/{job['job_id']}") == job
    by_id = sorted(jobs, key=lambda job: job["job_id"])
    assert sorted(api.get(f"{APP}/schedules/nightly/jobs")["items"], key=lambda job: job["job_id"]) == by_id
