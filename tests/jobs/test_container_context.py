"""The library of jobs in a container: it finds its context by its environment, and needs no Spark (W22)."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import sluice_job

CONTEXT: dict[str, Any] = {
    "schema": 1,
    "run_id": "demo.flights.clean.1.a",
    "attempt": 1,
    "schedule": "demo.flights.clean",
    "workflow": "demo.flights.brief",
    "properties": {},
    "events": [],
    "manifest": None,
    "correlation": None,
    "logical_start_time": 0,
    "upstream": None,
    "missing": [],
    "result_uri": "s3://control/results/a-1.json",
}


class Bucket:
    """A client of S3 with one bucket."""

    def __init__(self) -> None:
        self.objects = {"context/a.json": json.dumps(CONTEXT)}

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[Key].encode())}

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:
        if Key == "forbidden":
            raise PermissionError("AccessDenied")
        self.objects[Key] = Body.decode()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket()
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda service: made))
    monkeypatch.setattr(sluice_job, "_loaded", [])
    monkeypatch.delenv("SLUICE_RESULT_FILE", raising=False)
    monkeypatch.setenv("SLUICE_CONTEXT", "s3://control/context/a.json")
    return made


def test_w22_a_container_reads_its_context_and_hands_on_a_result(bucket: Bucket) -> None:
    context = sluice_job.RunContext.from_environment()
    assert (context.run_id, context.attempt) == ("demo.flights.clean.1.a", 1)
    sluice_job.result({"rows": 3})
    assert bucket.objects["results/a-1.json"] == '{"rows":3}'


def test_w22_a_container_without_its_context_says_what_to_do(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_CONTEXT", "s3://control/context/b.json")
    with pytest.raises(sluice_job.ContextError, match="allow s3:GetObject on context/"):
        sluice_job.RunContext.from_environment()
    monkeypatch.delenv("SLUICE_CONTEXT")
    with pytest.raises(sluice_job.ContextError, match="expected the address of a run context in SLUICE_CONTEXT"):
        sluice_job.RunContext.from_environment()


def test_w22_a_result_that_cannot_be_written_names_the_right(bucket: Bucket) -> None:
    bucket.objects["context/a.json"] = json.dumps({**CONTEXT, "result_uri": "s3://control/forbidden"})
    sluice_job.RunContext.from_environment()
    with pytest.raises(sluice_job.ResultError, match="allow s3:PutObject on results/"):
        sluice_job.result(1)
