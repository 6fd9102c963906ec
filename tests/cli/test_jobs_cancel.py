"""`sluice jobs cancel`: cancels waiting jobs, on record."""

from __future__ import annotations

import json

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import ARN, JOB, record


def test_w8_a_cancelled_job_is_told_with_its_record(api: PlayedApi, sluice: Sluice) -> None:
    view = record("DROPPED", reason=f"cancelled by {ARN}")
    api.play("POST", f"/v1/jobs/{JOB}/cancel", view)
    done = sluice("jobs", "cancel", JOB)
    assert (done.exit_code, done.stderr.strip()) == (0, f"{JOB} is cancelled: cancelled by {ARN}")
    assert json.loads(sluice("jobs", "cancel", JOB, "--json").stdout) == view


def test_w8_a_job_that_ran_is_refused_and_others_go_on(api: PlayedApi, sluice: Sluice) -> None:
    hint = "it has become a run: ask for the run of the same id"
    api.refuse("POST", f"/v1/jobs/{JOB}/cancel", 404, "not_found", f"no job named '{JOB}'", hint=hint)
    api.play("POST", f"/v1/jobs/{JOB}2/cancel", record("DROPPED", reason=f"cancelled by {ARN}"))
    done = sluice("jobs", "cancel", JOB, f"{JOB}2")
    assert done.exit_code == 1
    assert f"hint: {hint}" in done.stderr
    assert f"{JOB}2 is cancelled" in done.stderr
