"""What users do to runs over HTTP: cancel, run again, read the logs (W6, W15)."""

from __future__ import annotations

import gzip
from typing import Any

import boto3

from chalicelib.core.rows.definition import Definition
from chalicelib.wiring import ports
from tests.web.conftest import APP, WEEKDAYS, Api


def start(api: Api, schedule: str, workflow: str, key: str = "k1", **more: Any) -> str:
    api.schedule(schedule, workflow=workflow, trigger=WEEKDAYS)
    job: str = api.post(f"{APP}/schedules/{schedule}/run", more, idempotency_key=key)["job_id"]
    api.work()
    return job


def test_w6_a_run_is_cancelled_and_polled_until_its_end_has_come(api: Api) -> None:
    """moto's EMR ends its runs at once, so the test uses a run of a pool, which stays active."""
    api.put(f"{APP}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
    run_id = start(api, "pull", "pulled")

    assert api.post(f"/v1/runs/{run_id}/cancel")["state"] == "STARTING"
    api.work()

    run = api.get(f"/v1/runs/{run_id}")
    assert (run["state"], run["reason"]) == ("CANCELLED", "cancelled by unknown")
    repeated = api.post(f"/v1/runs/{run_id}/cancel")
    assert (repeated["state"], repeated["reason"]) == ("CANCELLED", "cancelled by unknown")
    assert api.refused(404, "POST", "/v1/runs/demo.flights.pull.1.nothing/cancel")["code"] == "not_found"


def test_w15_a_finished_run_is_rerun_with_arguments_once_per_key(api: Api) -> None:
    first = start(api, "send", "notify", properties={"day": "2026-03-01"})
    target = ports().rows.get(Definition, "workflow", "demo.flights.notify")
    assert target is not None
    url = target.document["target"]["queue_url"]
    sent = api.messages(url)
    api.schedule("send", workflow="notify", trigger=WEEKDAYS, properties={"since": "new"}, data={"a": 1})

    again = api.post(f"/v1/runs/{first}/rerun", idempotency_key="r1")["job_id"]
    assert api.post(f"/v1/runs/{first}/rerun", idempotency_key="r1")["job_id"] == again
    other = api.post(f"/v1/runs/{first}/rerun", idempotency_key="r2")["job_id"]
    assert len({first, again, other}) == 3
    api.work()

    repeated = api.get(f"/v1/runs/{again}")
    assert (repeated["state"], repeated["rerun_of"]) == ("SUCCEEDED", first)
    assert repeated["properties"] == {"day": "2026-03-01"}, "and nothing that the schedule says since"
    assert len(sent) == 1
    assert len(api.messages(url)) == 2


def test_w15_an_active_or_orphaned_run_is_not_rerun(api: Api) -> None:
    api.put(f"{APP}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
    living = start(api, "pull", "pulled")
    error = api.refused(409, "POST", f"/v1/runs/{living}/rerun")
    assert "a run that has ended, got one that is STARTING" in error["message"]
    ended = start(api, "send", "notify")
    api.delete(f"{APP}/schedules/send")
    assert api.refused(404, "POST", f"/v1/runs/{ended}/rerun")["message"] == "no schedule named 'demo.flights.send'"


def test_w15_the_logs_of_an_emr_driver_are_its_last_lines(api: Api) -> None:
    run_id = start(api, "clean", "clean")
    assert "EMR has uploaded no log yet" in api.get(f"/v1/runs/{run_id}/logs")["why"]
    application, job_run = api.get(f"/v1/runs/{run_id}")["target_id"].split("/")
    key = f"logs/demo/applications/{application}/jobs/{job_run}/SPARK_DRIVER/stdout.gz"
    members = gzip.compress(b"one\n") + gzip.compress("two\nzwölf\n".encode())
    boto3.client("s3").put_object(Bucket="control", Key=key, Body=members)

    logs = api.get(f"/v1/runs/{run_id}/logs?lines=2")

    assert (logs["streams"], logs["why"], logs["attempt"]) == ({"stdout": ["two", "zwölf"]}, None, 1)
    assert api.refused(404, "GET", f"/v1/runs/{run_id}/logs?attempt=7")["hint"] == "it has 1"


def test_w15_a_delivery_has_no_logs_and_says_so(api: Api) -> None:
    run_id = start(api, "send", "notify")
    logs = api.get(f"/v1/runs/{run_id}/logs")
    assert logs["streams"] == {}
    assert "a delivery to sqs writes no log here" in logs["why"]


def test_w6_an_active_run_is_pinged_and_a_finished_one_is_not(api: Api) -> None:
    api.put(f"{APP}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
    living = start(api, "pull", "pulled")
    assert api.post(f"/v1/runs/{living}/ping")["run_id"] == living
    api.work()
    assert api.get(f"/v1/runs/{living}")["state"] == "STARTING"
    ended = start(api, "send", "notify")
    assert api.refused(409, "POST", f"/v1/runs/{ended}/ping")["code"] == "conflict"
    assert api.refused(404, "POST", "/v1/runs/demo.flights.pull.1.nothing/ping")["code"] == "not_found"
