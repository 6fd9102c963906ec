"""Pause and resume over HTTP: the effect of each mode on waiting jobs, and which schedules can be paused (L4, L19)."""

from typing import Any

import pytest

from chalicelib import handlers
from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.test_run_state import change
from tests.web.wrong import ONE, refused

PARTITIONS = f"{NS}/datasets/flights/partitions"


def waiting_for(count: int) -> dict[str, Any]:
    return {"type": "partition", "dataset": "flights", "count": count}


def arrive(api: Api, *days: int) -> None:
    """Partitions become ready, and every hint that follows arrives."""
    for day in days:
        api.post(PARTITIONS, {"partition": {"year": 2013, "month": 1, "day": day}})
    api.work()


def jobs(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"{ONE}/jobs")["items"]
    return found


def ran(api: Api) -> list[str]:
    return [run["run_id"] for run in api.get(f"{ONE}/runs")["items"]]


@pytest.mark.parametrize("mode", ["hold", "backlog", "drain"])
def test_l4_a_schedule_is_paused_in_a_mode_until_it_is_resumed(api: Api, mode: str) -> None:
    made = api.schedule("nightly", enabled=True)

    paused = api.post(f"{ONE}/pause", {"mode": mode})

    assert (paused["state"], paused["enabled"], paused["version"]) == (mode, False, made["version"])
    assert paused["generation"] == made["generation"]
    assert api.get(ONE) == paused
    assert [view["name"] for view in api.get(f"{APP}/schedules?state={mode}")["items"]] == [made["name"]]

    resumed = api.post(f"{ONE}/resume")
    assert (resumed["state"], resumed["enabled"], resumed["generation"]) == ("enabled", True, made["generation"])


def test_l4_without_a_body_a_pause_is_a_hold(api: Api) -> None:
    api.schedule("nightly", enabled=True)
    assert api.post(f"{ONE}/pause")["state"] == "hold"


def test_l4_pausing_same_way_and_resuming_twice_change_nothing(api: Api) -> None:
    api.schedule("nightly", enabled=True)
    for action, body in [("pause", {"mode": "backlog", "timeouts": "stop"}), ("resume", None)]:
        first = api.post(f"{ONE}/{action}", body)
        before = api.everything()
        assert api.post(f"{ONE}/{action}", body) == first
        assert api.everything() == before


def test_l4_one_pause_mode_may_replace_another(api: Api) -> None:
    api.schedule("nightly", enabled=True)
    for mode in ("hold", "drain", "backlog", "hold"):
        assert api.post(f"{ONE}/pause", {"mode": mode})["state"] == mode
    assert api.post(f"{ONE}/enable")["state"] == "enabled"


def test_l4_a_held_job_goes_on_gathering_and_runs_on_resume(api: Api) -> None:
    api.schedule("nightly", trigger=waiting_for(2), enabled=True)
    arrive(api, 1)
    [waited] = jobs(api)
    api.post(f"{ONE}/pause", {"mode": "hold"})

    arrive(api, 2, 3)

    [held] = jobs(api)
    assert (held["job_id"], held["progress"]) == (waited["job_id"], {"0": 3})
    why = api.get(f"{ONE}/why")
    assert why["why"].startswith("the schedule has been paused (hold) since ")
    assert why["why"].endswith("; 1 job waiting: resume the schedule")
    assert "resuming the schedule" in api.get(f"/v1/jobs/{held['job_id']}/why")["wakes"]
    assert ran(api) == []

    api.post(f"{ONE}/resume")
    api.work()
    assert (ran(api), jobs(api)) == ([held["job_id"]], [])
    assert len(api.get(f"/v1/runs/{held['job_id']}")["events"]) == 3


def test_l4_a_backlog_is_one_job_per_match_and_all_run_on_resume(api: Api) -> None:
    api.schedule("nightly", trigger=waiting_for(1), enabled=True)
    api.post(f"{ONE}/pause", {"mode": "backlog"})

    arrive(api, 1, 2)

    queued = jobs(api)
    assert [job["kind"] for job in queued] == ["detached", "detached"]
    assert api.get(f"{ONE}/why")["why"].endswith("; 2 jobs waiting: resume the schedule")
    assert ran(api) == []
    api.post(f"{ONE}/resume")
    api.work()
    assert sorted(ran(api)) == sorted(job["job_id"] for job in queued)


def test_l4_a_drained_schedule_takes_no_more_and_shows_its_drops(api: Api) -> None:
    api.schedule("nightly", trigger=waiting_for(2), enabled=True)
    arrive(api, 1)
    [half] = jobs(api)

    api.post(f"{ONE}/pause", {"mode": "drain"})
    arrive(api, 2)

    assert (jobs(api), ran(api)) == ([], [])
    assert [record["id"] for record in api.get(f"{ONE}/records")["items"]] == [half["job_id"]]
    assert "the schedule has taken no new work since " in api.get(f"{ONE}/why")["why"]
    api.post(f"{ONE}/resume")
    arrive(api, 3, 4)
    assert len(ran(api)) == 1


def test_l3_disabling_a_paused_schedule_drops_its_held_jobs(api: Api) -> None:
    api.schedule("nightly", trigger=waiting_for(1), enabled=True)
    api.post(f"{ONE}/pause")
    arrive(api, 1)
    assert api.post(f"{ONE}/disable")["state"] == "disabled"
    api.post(f"{ONE}/enable")
    api.work()
    assert ran(api) == []
    assert [record["kind"] for record in api.get(f"{ONE}/records")["items"]] == ["DROPPED"]


def test_l2_a_replaced_schedule_stays_paused(api: Api) -> None:
    api.schedule("nightly", enabled=True)
    api.post(f"{ONE}/pause", {"mode": "backlog"})
    assert api.schedule("nightly", priority=9)["state"] == "backlog"
    assert api.schedule("nightly", priority=9, enabled=True)["state"] == "backlog"
    assert api.schedule("nightly", enabled=False)["state"] == "disabled"


def test_l18_many_schedules_are_paused_and_resumed_at_once(api: Api) -> None:
    api.schedule("nightly", tags={"team": "x"}, enabled=True)
    api.schedule("weekly", tags={"team": "x"})
    nightly, weekly = "demo.flights.nightly", "demo.flights.weekly"

    answer = api.post(f"{APP}/bulk", {"action": "pause", "tag": "team=x"})

    assert (answer["changed"], answer["unchanged"]) == ([nightly], [])
    [failed] = answer["failed"]
    assert (failed["name"], failed["error"]["code"]) == (weekly, "conflict")
    assert api.get(ONE)["state"] == "hold"
    assert api.post(f"{APP}/bulk", {"action": "pause", "state": "hold"})["unchanged"] == [nightly]
    assert api.post(f"{APP}/bulk", {"action": "resume", "state": "hold"})["changed"] == [nightly]
    assert api.get(ONE)["state"] == "enabled"


def test_l19_schedule_with_too_many_failures_says_why_it_is_held(api: Api) -> None:
    api.schedule("nightly", workflow="clean", pause_after_failures=1, enabled=True)
    job_id = api.post(f"{ONE}/run")["job_id"]
    api.work()
    job_run_id = api.get(f"/v1/runs/{job_id}")["target_id"].partition("/")[2]

    handlers.run_state(change(job_run_id, "FAILED"))

    held = api.get(ONE)
    assert held["state"] == "hold"
    assert "failed" in held["pause_reason"]
    assert held["pause_reason"] in api.get(f"{ONE}/why")["why"]
    assert api.post(f"{ONE}/resume")["pause_reason"] is None


# -- what is refused -------------------------------------------------------------------------------------------------


COMPLETE = {"trigger": {"type": "time", "expression": "R1/PT1S"}, "enabled": True}


@pytest.mark.parametrize(
    ("action", "state", "document"),
    [("pause", "disabled", {}), ("resume", "disabled", {}), ("pause", "completed", COMPLETE)],
)
def test_l4_a_disabled_schedule_is_neither_paused_nor_resumed(
    api: Api, action: str, state: str, document: dict[str, Any]
) -> None:
    api.schedule("nightly", **document)
    assert api.get(ONE)["state"] == state
    error = refused(api, 409, "POST", f"{ONE}/{action}")
    assert error["code"] == "conflict"
    assert error["message"] == f"expected a schedule that is enabled or paused, got one that is {state}"
    assert error["hint"] == f"enable the schedule before you {action} it"


def test_l4_resuming_a_schedule_of_used_up_fires_changes_nothing(api: Api) -> None:
    api.schedule("nightly", **COMPLETE)
    before = api.everything()
    assert api.post(f"{ONE}/resume")["state"] == "completed"
    assert api.everything() == before


@pytest.mark.parametrize("action", ["pause", "resume", "skip", "unskip", "dry-run"])
def test_an_action_on_a_missing_or_deleted_schedule_is_not_found(api: Api, action: str) -> None:
    body = {"skip": {"at": "2030-01-01T05:00:00Z"}, "dry-run": {"events": []}}
    body["unskip"] = body["skip"]
    api.put(f"{APP}/schedules/gone", {"workflow": "notify", "trigger": WEEKDAYS})
    api.delete(f"{APP}/schedules/gone")
    for name in ("never", "gone"):
        error = refused(api, 404, "POST", f"{APP}/schedules/{name}/{action}", body.get(action))
        assert error["message"] == f"no schedule named 'demo.flights.{name}'"


@pytest.mark.parametrize(
    ("body", "code", "field", "message"),
    [
        ({"mode": "holt"}, "invalid", "mode", "expected 'hold', 'backlog' or 'drain', got 'holt'"),
        ({"mode": "disabled"}, "invalid", "mode", "expected 'hold', 'backlog' or 'drain', got 'disabled'"),
        ({"mode": None}, "invalid", "mode", "expected 'hold', 'backlog' or 'drain', got None"),
        ({"mode": ["hold"]}, "invalid", "mode", "expected 'hold', 'backlog' or 'drain', got ['hold']"),
        ({"timeouts": "go on"}, "invalid", "timeouts", "expected 'count' or 'stop', got 'go on'"),
        ({"timeouts": True}, "invalid", "timeouts", "expected 'count' or 'stop', got True"),
        ({"mode": "hold", "until": "noon"}, "unknown_field", "until", "unknown field 'until'"),
        ({"mode": "x", "timeouts": "x"}, "invalid", "mode",
         "expected 'hold', 'backlog' or 'drain', got 'x' (and 1 more)"),
        (b"hold", "bad_json", "body", "expected JSON, got something else: "),
        (b'["hold"]', "invalid", "body", "expected a JSON object, got ['hold']"),
    ],
)  # fmt: skip
def test_l4_a_wrong_pause_changes_nothing(standing: Api, body: Any, code: str, field: str, message: str) -> None:
    error = refused(standing, 400, "POST", f"{ONE}/pause", body)
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"].startswith(message)


def test_l4_a_resume_takes_no_body_and_no_condition(standing: Api) -> None:
    assert refused(standing, 400, "POST", f"{ONE}/resume", {"mode": "hold"})["field"] == "mode"
    for action in ("pause", "resume"):
        assert refused(standing, 400, "POST", f"{ONE}/{action}", if_match='"1"')["field"] == "If-Match"
