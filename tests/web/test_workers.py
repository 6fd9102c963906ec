"""The worker API over HTTP: its answers to pull workers, and its refusals (W5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import APP, NS, WEEKDAYS, Api

CLAIM = "/v1/workers/demo.etl/claim"
ANN = {"worker": "ann"}
PULLED = {"target": {"type": "worker", "pool": "etl", "arguments": ["--fast"]}}


@pytest.fixture
def pool(api: Api) -> Api:
    """An app with a workflow for workers, and one run of it in its pool."""
    api.put(f"{APP}/workflows/pulled", PULLED)
    api.schedule("pull", workflow="pulled", trigger=WEEKDAYS, enabled=True)
    api.post(f"{APP}/schedules/pull/run", {"properties": {"day": "2026-03-01"}}, idempotency_key="k1")
    api.work()
    return api


def claim(api: Api, **more: Any) -> list[dict[str, Any]]:
    leases: list[dict[str, Any]] = api.post(CLAIM, {**ANN, "wait": 0, **more})["leases"]
    return leases


def test_w5_a_worker_claims_beats_and_reports_over_http(pool: Api) -> None:
    lease = claim(pool)[0]
    assert (lease["arguments"], lease["properties"]["day"]) == (["--fast"], "2026-03-01")
    assert lease["context"]["run_id"] == lease["run_id"]
    assert claim(pool) == []
    path = f"/v1/leases/{lease['lease']}"

    answer = pool.post(f"{path}/heartbeat", {**ANN, "message": "half way", "metrics": {"rows": 7, "share": 0.5}})
    assert (answer["state"], answer["cancel"]) == ("RUNNING", False)
    run = pool.get(f"/v1/runs/{lease['run_id']}")
    assert (run["state"], run["reason"], run["metrics"]) == ("RUNNING", "half way", {"rows": 7, "share": 0.5})

    end = {**ANN, "state": "succeeded", "exit_code": 0, "output": "one\ntwo\nthree"}
    assert pool.post(f"{path}/report", end)["state"] == "SUCCEEDED"
    assert pool.post(f"{path}/report", end)["state"] == "SUCCEEDED"
    logs = pool.get(f"/v1/runs/{lease['run_id']}/logs?lines=2")
    assert (logs["streams"], logs["exit_code"], logs["why"]) == ({"output": ["two", "three"]}, 0, None)


@pytest.mark.parametrize(
    "given", [{"result": {"mode": "full", "files": ["a"]}}, {"result_text": '{"mode": "full",\n  "files": ["a"]}'}]
)
def test_w18_a_worker_reports_a_result_over_http(pool: Api, given: dict[str, Any]) -> None:
    lease = claim(pool)[0]
    pool.post(f"/v1/leases/{lease['lease']}/heartbeat", ANN)
    answer = pool.post(f"/v1/leases/{lease['lease']}/report", {**ANN, "state": "succeeded", **given})
    assert answer["state"] == "SUCCEEDED" and "result_refused" not in answer
    assert pool.get(f"/v1/runs/{lease['run_id']}")["result"] == {"mode": "full", "files": ["a"]}


@pytest.mark.parametrize("given", [{"result": "x" * 11_000}, {"result_text": "mode: full"}])
def test_w18_a_refused_result_does_not_refuse_the_report(pool: Api, given: dict[str, Any]) -> None:
    lease = claim(pool)[0]
    pool.post(f"/v1/leases/{lease['lease']}/heartbeat", ANN)
    answer = pool.post(f"/v1/leases/{lease['lease']}/report", {**ANN, "state": "succeeded", **given})
    run = pool.get(f"/v1/runs/{lease['run_id']}")
    assert (answer["state"], run["state"], "result" in run) == ("SUCCEEDED", "SUCCEEDED", False)
    assert answer["result_refused"] == run["result_refused"]
    assert run["result_refused"].startswith("expected a result ")


def test_w18_a_failure_has_no_result(pool: Api) -> None:
    lease = claim(pool)[0]
    pool.post(f"/v1/leases/{lease['lease']}/heartbeat", ANN)
    pool.post(f"/v1/leases/{lease['lease']}/report", {**ANN, "state": "failed", "result": {"mode": "full"}})
    assert "result" not in pool.get(f"/v1/runs/{lease['run_id']}")


def test_w5_a_lost_lease_is_a_conflict_that_names_the_holder(pool: Api) -> None:
    lease = claim(pool)[0]
    pool.post(f"/v1/leases/{lease['lease']}/release", {**ANN, "message": "going down"})
    assert pool.post(CLAIM, {"worker": "bob", "wait": 0})["leases"][0]["run_id"] == lease["run_id"]

    error = pool.refused(409, "POST", f"/v1/leases/{lease['lease']}/report", {**ANN, "state": "succeeded"})

    assert error["code"] == "lease_lost"
    assert "attempt 1 is held by bob" in error["message"]
    assert [record["kind"] for record in pool.get(f"{NS}/records")["items"]] == ["LATE"]


@pytest.mark.parametrize(
    ("path", "body", "status", "expected"),
    [
        (CLAIM, {}, 400, "expected a value, got nothing"),
        (CLAIM, {"worker": "a b"}, 400, "text that matches"),
        (CLAIM, {**ANN, "capacity": 0}, 400, "greater than or equal to 1"),
        (CLAIM, {**ANN, "capacity": 11}, 400, "less than or equal to 10"),
        (CLAIM, {**ANN, "wait": 60}, 400, "less than or equal to 20"),
        (CLAIM, {**ANN, "pool": "etl"}, 400, "unknown field 'pool'"),
        ("/v1/workers/etl/claim", ANN, 400, "a pool's full name, namespace.pool"),
        ("/v1/workers/demo.flights.etl/claim", ANN, 400, "a pool's full name, namespace.pool"),
        ("/v1/leases/nothing/report", {**ANN, "state": "succeeded"}, 404, "no lease named"),
        ("/v1/leases/demo.flights.pull.1.abc-1-1/heartbeat", ANN, 409, "the run no longer exists"),
        ("/v1/leases/demo.flights.pull.1.abc-1-1/report", {**ANN, "state": "done"}, 400, "'succeeded' or 'failed'"),
        ("/v1/leases/demo.flights.pull.1.abc-1-1/heartbeat", {**ANN, "metrics": {"a": {}}}, 400, "metrics.a"),
        ("/v1/leases/demo.flights.pull.1.abc-1-1/heartbeat", {**ANN, "metrics": {"a": "x" * 2000}}, 400, "1000 bytes"),
    ],
)
def test_w5_an_invalid_worker_request_is_refused(
    standing: Api, path: str, body: dict[str, Any], status: int, expected: str
) -> None:
    error = standing.refused(status, "POST", path, body)
    assert expected in f"{error['field']}: {error['message']}"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"pool": "Etl"}, "expected a name"),
        ({"pool": "other.etl"}, "expected a name"),
        ({"heartbeat": "1s"}, "a heartbeat from 10s to 1h"),
        ({"heartbeat": "2h"}, "a heartbeat from 10s to 1h"),
        ({"command": "rm"}, "unknown field 'command'"),
    ],
)
def test_w5_a_workflow_for_an_impossible_pool_is_refused(standing: Api, changed: dict[str, Any], expected: str) -> None:
    target = {"type": "worker", "pool": "etl", **changed}
    error = standing.refused(400, "PUT", f"{APP}/workflows/pulled", {"target": target})
    assert expected in error["message"]


@pytest.mark.parametrize("timeout", ["30s", "31d", "soon", 5])
def test_w12_an_invalid_timeout_is_refused(standing: Api, timeout: Any) -> None:
    error = standing.refused(400, "PUT", f"{APP}/workflows/pulled", {**PULLED, "timeout": timeout})
    assert error["field"] == "timeout"
