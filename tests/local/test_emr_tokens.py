"""StartJobRun and CreateApplication are idempotent by client token, for ever and under concurrency."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Emulators


def test_a_token_starts_one_run_for_any_number_of_callers(emulators: Emulators) -> None:
    emr = emulators.start()
    with ThreadPoolExecutor(20) as pool:
        runs = list(pool.map(lambda _: emr.start(clientToken="once", name="n"), range(20)))
    assert len(set(runs)) == 1
    assert len(emr.boto.list_job_runs(applicationId=emr.application)["jobRuns"]) == 1


def test_a_token_is_answered_with_its_run_even_after_a_failure(emulators: Emulators) -> None:
    emr = emulators.start()
    failed = emr.start("s3://code/fail.py", clientToken="t")
    emr.reaches(failed, "FAILED")
    assert emr.start("s3://code/fail.py", clientToken="t") == failed


def test_a_token_survives_a_restart_of_the_emulator(emulators: Emulators) -> None:
    emr = emulators.start()
    run = emr.start(clientToken="t")
    emr.reaches(run, "SUCCESS")
    emulators.stop(emr)
    assert emulators.start().start(clientToken="t") == run


def test_a_token_with_other_parameters_is_a_conflict(emulators: Emulators) -> None:
    emr = emulators.start()
    run = emr.start(clientToken="t", name="one")
    with pytest.raises(emr.boto.exceptions.ConflictException, match=f"already made job run {run}") as refused:
        emr.start(clientToken="t", name="another")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 409


def test_without_the_same_token_there_are_two_runs(emulators: Emulators) -> None:
    emr = emulators.start()
    assert emr.start() != emr.start()


def test_a_token_belongs_to_its_application(emulators: Emulators) -> None:
    emr = emulators.start()
    first = emr.start(clientToken="t")
    emr.application = emr.boto.create_application(type="SPARK", releaseLabel="emr-7.1.0")["applicationId"]
    assert emr.start(clientToken="t") != first


def test_create_application_is_idempotent_too(emulators: Emulators) -> None:
    emr = emulators.start()
    same = {"clientToken": "the-application", "name": "jobs", "type": "SPARK", "releaseLabel": "emr-7.1.0"}
    assert emr.boto.create_application(**same)["applicationId"] == emr.application
    with pytest.raises(ClientError, match="ConflictException"):
        emr.boto.create_application(**{**same, "releaseLabel": "emr-7.2.0"})
