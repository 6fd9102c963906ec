"""A run's life from the caller's side: states, fields, listings, and refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.emr_serverless import driver_logs
from infra.local.emr_serverless.store import Store
from tests.local.conftest import Emr, Emulators, eventually


def ids(listing: dict[str, Any]) -> list[str]:
    return [run["id"] for run in listing["jobRuns"]]


def test_a_run_succeeds_with_the_fields_that_aws_fills_in(emulators: Emulators) -> None:
    emr = emulators.start()
    before = datetime.now(UTC)
    run = emr.reaches(emr.start(name="hourly", tags={"team": "lake"}), "SUCCESS")
    assert run["name"] == "hourly"
    assert run["tags"] == {"team": "lake"}
    assert run["arn"].endswith(f":/applications/{emr.application}/jobruns/{run['jobRunId']}")
    assert run["executionTimeoutMinutes"] == 720
    assert run["attempt"] == 1
    assert before - timedelta(seconds=1) < run["createdAt"] <= run["startedAt"] <= run["endedAt"] <= datetime.now(UTC)
    assert run["totalExecutionDurationSeconds"] == 0
    # One driver and three executors of 4 vCPU, billed for at least a minute.
    assert run["billedResourceUtilization"]["vCPUHour"] == pytest.approx(16 / 60, abs=0.001)


def test_the_first_run_starts_its_application(emulators: Emulators) -> None:
    emr = emulators.start()
    assert emr.boto.get_application(applicationId=emr.application)["application"]["state"] == "CREATED"
    emr.start()
    assert emr.boto.get_application(applicationId=emr.application)["application"]["state"] == "STARTED"


def test_a_failed_run_is_retried_by_its_retry_policy(emulators: Emulators) -> None:
    emr = emulators.start()
    run = emr.reaches(emr.start("s3://code/fail.py", retryPolicy={"maxAttempts": 3}), "FAILED")
    assert run["attempt"] == 3
    assert "ExitCode: 1" in run["stateDetails"]
    answer = emr.boto.list_job_run_attempts(applicationId=emr.application, jobRunId=run["jobRunId"])
    assert [(one["attempt"], one["state"]) for one in answer["jobRunAttempts"]] == [
        (3, "FAILED"),
        (2, "FAILED"),
        (1, "FAILED"),
    ]
    first = emr.boto.get_job_run(applicationId=emr.application, jobRunId=run["jobRunId"], attempt=1)["jobRun"]
    assert (first["attempt"], first["state"]) == (1, "FAILED")


def test_a_listing_is_newest_first_with_names_and_filters(emulators: Emulators) -> None:
    emr = emulators.start(max_running=8, max_vcpus=1000)
    good = [emr.start(name=f"good-{n}") for n in range(3)]
    bad = emr.start("s3://code/fail.py", name="bad")
    for run in [*good, bad]:
        emr.reaches(run, "SUCCESS", "FAILED")

    everything = emr.boto.list_job_runs(applicationId=emr.application)
    assert ids(everything) == [bad, *reversed(good)]
    assert [run["name"] for run in everything["jobRuns"]] == ["bad", "good-2", "good-1", "good-0"]

    def of(*states: str) -> list[str]:
        return ids(emr.boto.list_job_runs(applicationId=emr.application, states=list(states)))

    assert of("FAILED") == [bad]
    assert of("RUNNING") == []
    assert of("SUCCESS", "FAILED") == [bad, *reversed(good)]

    created = emr.get(good[0])["createdAt"]
    minute = timedelta(minutes=1)
    within = {"createdAtAfter": created - minute, "createdAtBefore": created + minute}
    assert len(ids(emr.boto.list_job_runs(applicationId=emr.application, **within))) == 4
    assert ids(emr.boto.list_job_runs(applicationId=emr.application, createdAtAfter=created + minute)) == []
    assert ids(emr.boto.list_job_runs(applicationId=emr.application, createdAtBefore=created - minute)) == []


def test_hundreds_of_runs_are_listed_page_by_page_each_once(emulators: Emulators) -> None:
    emr = emulators.start(max_running=20, max_vcpus=1000, instant_ms=0)
    started = [emr.start(name=str(n)) for n in range(230)]
    eventually(lambda: len(pages(emr, states=["SUCCESS"])) == 230)
    assert pages(emr) == started[::-1]
    assert sorted(pages(emr, states=["SUCCESS", "FAILED"])) == sorted(started)


def pages(emr: Emr, **filters: Any) -> list[str]:
    paginator = emr.boto.get_paginator("list_job_runs")
    found = paginator.paginate(applicationId=emr.application, PaginationConfig={"PageSize": 50}, **filters)
    return [run for page in found for run in ids(page)]


def test_a_missing_run_or_application_is_not_found(emulators: Emulators) -> None:
    emr = emulators.start()
    with pytest.raises(emr.boto.exceptions.ResourceNotFoundException) as refused:
        emr.get("00nosuchrun")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    emr.application = "00nosuchapp"
    with pytest.raises(emr.boto.exceptions.ResourceNotFoundException):
        emr.start()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"executionRoleArn": "arn:aws:iam::111111111111:role/x"}, "AccessDenied.*Cross-account"),
        ({"executionTimeoutMinutes": 3}, "at least 5 minutes"),
        ({"retryPolicy": {"maxAttempts": 11}}, "expected 1 to 10, got 11"),
        ({"spark": "--conf spark.driver.cores=many"}, "spark.driver.cores: expected a whole number, got 'many'"),
        ({"spark": "--conf spark.driver.cores"}, "expected --conf property=value"),
        ({"spark": "--py-files"}, "expected a value after --py-files"),
    ],
)
def test_an_invalid_run_is_refused(emulators: Emulators, change: dict[str, Any], message: str) -> None:
    emr = emulators.start()
    with pytest.raises(ClientError, match=message):
        emr.start(**change)


def test_an_application_is_stopped_and_deleted_only_when_idle(emulators: Emulators) -> None:
    emr = emulators.start(instant_ms=60_000)
    run = emr.start()
    with pytest.raises(emr.boto.exceptions.ValidationException, match="1 unfinished job runs"):
        emr.boto.stop_application(applicationId=emr.application)
    with pytest.raises(emr.boto.exceptions.ValidationException, match="Current status: STARTED"):
        emr.boto.delete_application(applicationId=emr.application)
    emr.cancel(run)
    emr.reaches(run, "CANCELLED")
    emr.boto.stop_application(applicationId=emr.application)
    capacity = {"cpu": "8 vCPU", "memory": "64 GB"}
    changed = emr.boto.update_application(applicationId=emr.application, clientToken="u", maximumCapacity=capacity)
    assert changed["application"]["maximumCapacity"] == capacity
    emr.boto.delete_application(applicationId=emr.application)
    assert emr.boto.list_applications(states=["TERMINATED"])["applications"][0]["id"] == emr.application
    with pytest.raises(emr.boto.exceptions.ValidationException, match="is terminated"):
        emr.start()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({}, "s3://logs/spark/applications/{app}/jobs/{run}/SPARK_DRIVER/"),
        ({"retryPolicy": {"maxAttempts": 2}}, "s3://logs/spark/applications/{app}/jobs/{run}/attempts/1/SPARK_DRIVER/"),
    ],
)
def test_logs_are_stored_where_aws_stores_them(emulators: Emulators, change: dict[str, Any], place: str) -> None:
    emr = emulators.start()
    monitoring = {"s3MonitoringConfiguration": {"logUri": "s3://logs/spark/"}}
    run = emr.start(configurationOverrides={"monitoringConfiguration": monitoring}, **change)
    stored = Store(emr.emulator.state_dir / "emr.sqlite").run(run)
    assert stored is not None
    assert str(driver_logs.destination(stored)) == place.format(app=emr.application, run=run)


def test_a_started_application_takes_few_changes_as_on_aws(emulators: Emulators) -> None:
    emr = emulators.start()
    emr.reaches(emr.start(), "SUCCESS")

    def update(**changes: Any) -> Any:
        return emr.boto.update_application(applicationId=emr.application, clientToken="u", **changes)["application"]

    refused = "Only the following configurations can be updated when an application is in STARTED state"
    queue = {"maxConcurrentRuns": 5, "queueTimeoutMinutes": 30}
    for changes in ({"releaseLabel": "emr-7.14.0"}, {"schedulerConfiguration": queue}, {"architecture": "ARM64"}):
        with pytest.raises(emr.boto.exceptions.ValidationException, match=refused):
            update(**changes)
    capacity = {"cpu": "32 vCPU", "memory": "128 GB"}
    assert update(maximumCapacity=capacity)["maximumCapacity"] == capacity
    assert update(schedulerConfiguration={"maxConcurrentRuns": 5})["schedulerConfiguration"] == {"maxConcurrentRuns": 5}
    emr.boto.stop_application(applicationId=emr.application)
    assert update(releaseLabel="emr-7.14.0")["releaseLabel"] == "emr-7.14.0"


def test_an_update_to_a_malformed_release_is_refused(emulators: Emulators) -> None:
    emr = emulators.start()
    with pytest.raises(emr.boto.exceptions.ValidationException, match="releaseLabel: expected one such as emr-7.1.0"):
        emr.boto.update_application(applicationId=emr.application, clientToken="u", releaseLabel="7.14.0")
