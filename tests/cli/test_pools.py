"""``sluice pools``, ``describe pool``, and the approval of a job that waits for it (W3, C16)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import JOB, job, past

POOLS = "/v1/namespaces/demo/pools"
POOL: dict[str, Any] = {
    "name": "demo.cluster",
    "kind": "pool",
    "description": "the big one",
    "tags": {},
    "owner": "",
    "size": 64,
    "unit": "vcpu",
    "shares": {"flights.report": {"reserved": 16}},
    "version": 2,
    "updated_at": past(minutes=3),
    "updated_by": "tester",
}
WAITER = {"position": 1, "job_id": JOB, "schedule": "demo.flights.clean", "attempt": None}
PARTS = [
    {"of": "everybody", "units": 48, "in_use": 40, "waiting": 3, "queue": [WAITER]},
    {"of": "demo.flights.report", "units": 16, "in_use": 8, "waiting": 0, "queue": []},
]


def test_w3_pools_are_listed_with_what_they_reserve(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[POOLS] = [POOL]
    header, row = sluice("pools", "-n", "demo").stdout.splitlines()[:2]
    assert header.split()[:4] == ["NAME", "SIZE", "UNIT", "RESERVED"]
    assert row.split()[:4] == ["demo.cluster", "64", "vcpu", "flights.report=16"]
    assert json.loads(sluice("pools", "-n", "demo", "--json").stdout)["items"] == [POOL]


def test_w3_a_pool_is_described_with_what_is_in_use(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{POOLS}/cluster", {**POOL, "in_use": 48, "waiting": 3, "parts": PARTS})
    answer = sluice("describe", "pool", "demo.cluster").stdout
    assert "40 of 48 in use, 3 waiting: everybody" in answer
    assert "8 of 16 in use, 0 waiting: demo.flights.report" in answer
    assert f"3 waiting: everybody\n  #  JOB\n  1  {JOB}\n" in answer
    assert answer.count("waiting: demo.flights.report") == 1, "no table of an empty queue"


def test_w2_a_pool_is_described_with_its_aging(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{POOLS}/cluster", {**POOL, "aging": "30m"}, POOL)
    assert "a step of priority for each 30m of waiting" in sluice("describe", "pool", "demo.cluster").stdout
    assert "aging" not in sluice("describe", "pool", "demo.cluster").stdout


def test_c16_a_job_is_approved_or_refused_with_a_reason(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"/v1/jobs/{JOB}/approve", job())
    done = sluice("jobs", "approve", JOB, "--reason", "the figures are in")
    assert (done.exit_code, done.stderr.strip()) == (0, f"approved: {JOB}")
    refused = {"job_id": JOB, "state": "ABORTED", "reason": "refused by bob"}
    api.play("POST", f"/v1/jobs/{JOB}/refuse", refused)
    assert json.loads(sluice("jobs", "refuse", JOB, "--json").stdout) == refused
    assert [request.body for request in api.requests] == [{"reason": "the figures are in"}, {"reason": ""}]


def test_c16_all_that_wait_of_a_schedule_are_approved(api: PlayedApi, sluice: Sluice) -> None:
    """A job that waits for its window alone is left out. One that is refused stops no other."""
    asked = [{"kind": "window"}, {"kind": "approval"}]
    jobs = [("a", asked), ("b", [{"kind": "window"}]), ("c", [{"kind": "approval"}]), ("d", asked)]
    path = "/v1/namespaces/demo/apps/flights/schedules/report/jobs"
    api.lists[path] = [{**job(), "job_id": name, "waits_for": holds} for name, holds in jobs]
    api.play("POST", "/v1/jobs/a/approve", job())
    api.refuse("POST", "/v1/jobs/c/approve", 403, "forbidden", "expected another person")
    api.play("POST", "/v1/jobs/d/approve", job())
    done = sluice("jobs", "approve", "--schedule", "demo.flights.report", "--reason", "checked")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == "approved: a" and "approved: d" in done.stderr
    assert "expected another person" in done.stderr
    assert [request.body for request in api.requests[1:]] == [{"reason": "checked"}] * 3


def test_c16_nothing_that_waits_for_approval_is_an_error(api: PlayedApi, sluice: Sluice) -> None:
    api.lists["/v1/namespaces/demo/apps/flights/schedules/report/jobs"] = [{**job(), "waits_for": []}]
    for verb in ("approve", "refuse"):
        done = sluice("jobs", verb, "--schedule", "demo.flights.report")
        assert done.exit_code == 2
        assert "expected a job of demo.flights.report that waits for an approval, got none" in done.stderr
        assert "sluice why demo.flights.report" in done.stderr


@pytest.mark.parametrize("given", [(), (JOB, "--schedule", "demo.flights.report")])
def test_c16_either_jobs_or_a_schedule_are_named(sluice: Sluice, given: tuple[str, ...]) -> None:
    done = sluice("jobs", "approve", *given)
    assert done.exit_code == 2
    assert "expected either the ids of jobs, or --schedule" in done.stderr
