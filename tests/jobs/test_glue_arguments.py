"""The library of jobs in a script of AWS Glue: it finds its context among the arguments that Glue gives it (W22)."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import sluice_job

from infra.local.glue_jobs import arguments_of

URI = "s3://control/context/demo.flights.clean.1.a.json"
OWN = {"--day": "-1", "--sluice-context": URI, "--sluice-run": "demo.flights.clean.1.a-1"}
DEFAULTS = {
    "--job-language": "python",
    "--enable-metrics": "",
    "--conf": "spark.a=1 --conf spark.b=2",
    "--TempDir": "s3://t/",
}
CONTEXT: dict[str, Any] = {
    "schema": 1,
    "run_id": "demo.flights.clean.1.a",
    "attempt": 1,
    "schedule": "demo.flights.clean",
    "workflow": "demo.flights.brief",
    "properties": {"depth": 3},
    "events": [],
    "manifest": "s3://control/context/manifest.jsonl",
    "correlation": None,
    "logical_start_time": 0,
    "upstream": None,
    "missing": [],
    "result_uri": "s3://control/results/a-1.json",
}


class Bucket:
    """A client of S3 with the control bucket."""

    def __init__(self) -> None:
        self.objects = {URI.partition("control/")[2]: json.dumps(CONTEXT), "context/manifest.jsonl": ""}

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[Key].encode())}

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:
        self.objects[Key] = Body.decode()


def argv(kind: str) -> list[str]:
    """The arguments of a script, as Glue lines them up: those that it sets itself, then those of job and job run."""
    job = {"Name": "etl", "Command": {"Name": kind}, "DefaultArguments": DEFAULTS}
    return [part for pair in arguments_of(job, {"Id": "jr_1", "Arguments": OWN}).items() for part in pair]


@pytest.mark.parametrize("kind", ["glueetl", "pythonshell"])
def test_w22_a_script_of_glue_finds_its_context(kind: str) -> None:
    given = argv(kind)
    assert ("--JOB_NAME" in given) is (kind == "glueetl")
    assert sluice_job._context_of("etl", given) == URI
    assert sluice_job._context_of("etl", ["--day", "-1", f"--sluice-context={URI}"]) == URI


def test_w22_a_script_without_a_context_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sluice_job._context_of("etl", ["--JOB_NAME", "etl"])
    assert "etl: error: the following arguments are required: --sluice-context" in capsys.readouterr().err


def test_w18_a_python_shell_job_reads_and_hands_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Bucket()
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda service: made))
    monkeypatch.setattr(sluice_job, "_loaded", [])
    monkeypatch.delenv("SLUICE_RESULT_FILE", raising=False)
    context = sluice_job.RunContext.from_arguments("etl", argv("pythonshell"))
    assert (context.run_id, context.number("depth")) == ("demo.flights.clean.1.a", 3)
    sluice_job.result({"rows": 7})
    assert made.objects["results/a-1.json"] == '{"rows":7}'
