"""Dead letters over the API: listed, redriven one by one or together, dropped (E6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import APP, NS, Api
from tests.web.wrong import refused

LETTERS = f"{NS}/dead-letters"
MISSING = "https://sqs.us-east-1.amazonaws.com/123456789012/no-such-queue"


def undelivered(api: Api, name: str = "nightly") -> str:
    """A run-now whose queue does not exist. Returns its id."""
    api.put(f"{APP}/workflows/notify", {"target": {"type": "sqs", "queue_url": MISSING}})
    api.schedule(name)
    run_id: str = api.post(f"{APP}/schedules/{name}/run")["job_id"]
    api.work()
    return run_id


def repair(api: Api) -> None:
    api.put(
        f"{APP}/workflows/notify",
        {"target": {"type": "sqs", "queue_url": api.sqs.create_queue(QueueName="target")["QueueUrl"]}},
    )


def test_e6_dead_letters_are_listed_with_their_reasons(api: Api) -> None:
    first, second = undelivered(api), undelivered(api, "weekly")
    listed = api.get(LETTERS)
    assert [letter["run_id"] for letter in listed["items"]] == [second, first]
    letter = listed["items"][1]
    assert letter["reason"].startswith("SQS refused the message: ")
    answer = {name: letter[name] for name in ("attempt", "schedule", "workflow", "target", "tries", "nominal_at")}
    assert answer == {
        "attempt": 1,
        "schedule": "demo.flights.nightly",
        "workflow": "demo.flights.notify",
        "target": "sqs",
        "tries": 1,
        "nominal_at": None,
    }
    assert letter["first_try_at"] <= letter["failed_at"]
    for name in ("flights.nightly", "demo.flights.nightly"):
        assert [each["run_id"] for each in api.get(f"{LETTERS}?schedule={name}")["items"]] == [first]
    page = api.get(f"{LETTERS}?limit=1")
    assert api.get(f"{LETTERS}?limit=1&cursor={page['next_cursor']}")["items"] == [letter]


def test_e6_a_redrive_delivers_an_event_under_the_same_id(api: Api) -> None:
    run_id = undelivered(api)
    repair(api)
    assert api.post(f"{LETTERS}/{run_id}/redrive") == {"run_id": run_id, "attempt": 2}
    assert api.get(LETTERS)["items"] == []
    api.work()
    run = api.get(f"/v1/runs/{run_id}")
    assert [(each["attempt"], each["state"]) for each in run["history"]] == [(1, "FAILED"), (2, "SUCCEEDED")]
    assert [each["kind"] for each in run["events"]] == ["run_now"]


def test_e6_a_repeated_redrive_gets_the_answer_of_the_first(api: Api) -> None:
    """The answer of the first was lost. The job waits, or has run already; another failure is not hidden."""
    run_id = undelivered(api)
    first = api.post(f"{LETTERS}/{run_id}/redrive")
    assert api.post(f"{LETTERS}/{run_id}/redrive") == first == {"run_id": run_id, "attempt": 2}
    api.work()
    repair(api)
    assert api.post(f"{LETTERS}/{run_id}/redrive")["attempt"] == 3, "the second attempt failed, too"
    api.work()
    assert api.post(f"{LETTERS}/{run_id}/redrive")["attempt"] == 3
    api.work()
    history = api.get(f"/v1/runs/{run_id}")["history"]
    assert [(each["attempt"], each["state"]) for each in history] == [(1, "FAILED"), (2, "FAILED"), (3, "SUCCEEDED")]


def test_e6_all_dead_letters_of_a_schedule_are_redriven_together(api: Api) -> None:
    run_id = undelivered(api)
    undelivered(api, "weekly")
    repair(api)
    done = api.post(f"{LETTERS}/redrive", {"schedule": "flights.nightly"})
    assert done == {"redriven": [run_id], "refused": [], "more": False}
    assert [each["schedule"] for each in api.get(LETTERS)["items"]] == ["demo.flights.weekly"]


def test_e6_an_event_that_cannot_be_redriven_has_the_reason(api: Api) -> None:
    run_id = undelivered(api)
    api.delete(f"{APP}/schedules/nightly")
    done = api.post(f"{LETTERS}/redrive", {"schedule": "flights.nightly", "limit": 5})
    why = "expected an event that can be delivered again, but schedule demo.flights.nightly was deleted"
    assert done == {"redriven": [], "refused": [{"run_id": run_id, "why": why}], "more": False}
    error = refused(api, 409, "POST", f"{LETTERS}/{run_id}/redrive", None)
    assert (error["code"], error["hint"]) == ("conflict", "create it again, or drop the dead letter")


def test_e6_a_dropped_dead_letter_is_gone_on_record(api: Api) -> None:
    run_id = undelivered(api)
    api.delete(f"{LETTERS}/{run_id}")
    assert api.get(LETTERS)["items"] == []
    [record] = api.get(f"{NS}/records")["items"]
    assert (record["kind"], record["id"]) == ("DROPPED", run_id)
    assert record["reason"].startswith("its dead letter was dropped by ")
    for method, path in (("DELETE", f"{LETTERS}/{run_id}"), ("POST", f"{LETTERS}/{run_id}/redrive")):
        assert refused(api, 404, method, path)["message"] == f"no dead letter named '{run_id}'"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("GET", f"{LETTERS}?schedule=nightly", None, 400, "schedule"),
        ("GET", f"{LETTERS}?schedule=other.flights.nightly", None, 400, "schedule"),
        ("GET", f"{LETTERS}?state=FAILED", None, 400, "state"),
        ("GET", "/v1/namespaces/none/dead-letters", None, 404, None),
        ("POST", f"{LETTERS}/redrive", {}, 400, "schedule"),
        ("POST", f"{LETTERS}/redrive", {"schedule": "flights.nightly", "limit": 101}, 400, "limit"),
        ("POST", f"{LETTERS}/redrive", {"schedule": "nightly"}, 400, "schedule"),
        ("POST", f"{LETTERS}/nonsense/redrive", None, 404, None),
        ("DELETE", f"{LETTERS}/nonsense", None, 404, None),
    ],
)
def test_e6_an_invalid_dead_letter_request_is_refused(
    api: Api, method: str, path: str, body: Any, status: int, field: str | None
) -> None:
    assert refused(api, status, method, path, body)["field"] == field


@pytest.mark.parametrize("url", ["http://example.com/hook", "http://10.0.0.1/"])
def test_o6_a_callback_by_plain_http_is_refused_at_put(api: Api, url: str) -> None:
    target = {"type": "http", "url": url}
    put = refused(api, 400, "PUT", f"{APP}/workflows/call", {"target": target})
    assert put["field"] == "target.url"
    deployed = refused(api, 400, "PUT", f"{NS}/apps/other", {"workflows": {"call": {"target": target}}})
    assert deployed["field"] == "workflows.call.target.url"
    probe = {"type": "probe", "target": target}
    schedule = {"workflow": "notify", "trigger": {"type": "time", "expression": "@daily"}, "constraints": [probe]}
    assert refused(api, 400, "PUT", f"{APP}/schedules/asked", schedule)["field"] == "constraints.0.target.url"
