"""Separation of duties: who asked for a job is stored, and does not approve it. A lease belongs to who claimed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.web import audit
from chalicelib.wiring import ports
from tests.support.dags import dag
from tests.web.conftest import APP, NS, Api
from tests.web.signed import Signer, enforcing, member, role

# The sessions of this role are persons, as the installation says.
ADA, BOB, CYD = (Signer(role("data", name)) for name in ("ada", "bob", "cyd"))
WORKER, OTHER = Signer(role("worker", "i-1")), Signer(role("other", "i-1"))
MEMBERS = [
    {"member": member("data"), "roles": ["admin", "approver"]},
    {"member": member("worker"), "roles": ["worker"]},
    {"member": member("other"), "roles": ["worker"]},
]
BY_DATA = {"type": "approval", "role": "data"}
DAY = {"year": "2013", "month": "1", "day": "1"}


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    api.put(f"{NS}/access", {"members": MEMBERS})
    monkeypatch.setenv("SLUICE_PERSONAL_ROLES", member("data"))
    enforcing(monkeypatch)
    audit.refusals.cache_clear()
    yield api
    audit.refusals.cache_clear()


def done(signer: Signer, method: str, path: str, body: Any = None) -> Any:
    status, answer = signer.send(method, path, body)
    assert status < 300, answer
    return answer


def put(name: str, **fields: Any) -> None:
    body = {"workflow": "notify", "trigger": {"type": "event", "event": "closed"}, "enabled": True} | fields
    done(ADA, "PUT", f"{APP}/schedules/{name}", body)


def waiting(name: str) -> dict[str, Any]:
    [job] = done(ADA, "GET", f"{APP}/schedules/{name}/jobs")["items"]
    found: dict[str, Any] = job
    return found


def test_nobody_approves_a_run_that_they_requested(enforced: Api) -> None:
    put("daily", constraints=[BY_DATA])
    job = done(ADA, "POST", f"{APP}/schedules/daily/run")["job_id"]
    assert waiting("daily")["requested_by"] == role("data", "ada")
    enforced.work()
    error = ADA.error("POST", f"/v1/jobs/{job}/approve", {})
    assert (error["code"], error["hint"]) == (
        "forbidden",
        "ask another person to approve it (approved by a data); you may still refuse it",
    )
    done(BOB, "POST", f"/v1/jobs/{job}/approve", {})
    enforced.work()
    run = done(ADA, "GET", f"/v1/runs/{job}")
    assert (run["state"], run["requested_by"]) == ("SUCCEEDED", role("data", "ada"))


def test_who_requested_a_run_may_refuse_it(enforced: Api) -> None:
    put("daily", constraints=[BY_DATA])
    job = done(ADA, "POST", f"{APP}/schedules/daily/run")["job_id"]
    enforced.work()
    assert done(ADA, "POST", f"/v1/jobs/{job}/refuse", {})["state"] == "ABORTED"


def test_nobody_approves_a_job_that_counts_their_event(enforced: Api) -> None:
    both = {"type": "all", "triggers": [{"type": "event", "event": name} for name in ("closed", "checked")]}
    put("daily", trigger=both, constraints=[BY_DATA])
    done(ADA, "POST", f"{NS}/events", {"events": [{"type": "closed"}]})
    done(BOB, "POST", f"{NS}/events", {"events": [{"type": "checked"}]})
    enforced.work()
    job = waiting("daily")
    assert job["requested_by"] == role("data", "bob")
    for signer in (ADA, BOB):
        assert signer.error("POST", f"/v1/jobs/{job['job_id']}/approve", {})["code"] == "forbidden"
    done(CYD, "POST", f"/v1/jobs/{job['job_id']}/approve", {})


def test_a_registered_partition_names_who_reported_it(enforced: Api) -> None:
    put("daily", trigger={"type": "partition", "dataset": "flights"}, constraints=[BY_DATA])
    done(ADA, "POST", f"{NS}/datasets/flights/partitions", {"partition": DAY})
    enforced.work()
    assert ADA.error("POST", f"/v1/jobs/{waiting('daily')['job_id']}/approve", {})["code"] == "forbidden"


def test_reruns_and_backfills_name_who_requested_them(enforced: Api) -> None:
    put("daily", trigger={"type": "partition", "dataset": "flights"})
    first = done(ADA, "POST", f"{APP}/schedules/daily/run")["job_id"]
    enforced.work()
    again = done(BOB, "POST", f"/v1/runs/{first}/rerun")["job_id"]
    done(CYD, "POST", f"{APP}/schedules/daily/backfills", {"partitions": {"values": [DAY]}})
    enforced.work()
    runs = {run["run_id"]: run["requested_by"] for run in done(ADA, "GET", f"{APP}/schedules/daily/runs")["items"]}
    assert (runs.pop(first), runs.pop(again)) == (role("data", "ada"), role("data", "bob"))
    assert list(runs.values()) == [role("data", "cyd")]


def test_each_node_of_a_dag_run_names_who_requested_it(enforced: Api) -> None:
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "clean"}}
    done(ADA, "PUT", f"{APP}/dags/whole", dag("a -> b", nodes=nodes, by=[], enabled=True))
    put("downstream", trigger={"type": "program_status", "workflow": "clean", "statuses": ["COMPLETED"]})
    begun = done(BOB, "POST", f"{APP}/dags/whole/run")["run_id"]
    enforced.work()
    for node in ("a", "b"):
        run = done(ADA, "GET", f"{APP}/dags/whole/runs/{begun}")["nodes"][node]["run_id"]
        assert done(ADA, "GET", f"/v1/runs/{run}")["requested_by"] == role("data", "bob")
        complete.advance_run(ports(), run, 1, RunUpdate("SUCCEEDED", ports().clock.now()))
        enforced.work()
    outside = done(ADA, "GET", f"{APP}/schedules/downstream/runs")["items"]
    assert {run["requested_by"] for run in outside} == {None}


def test_a_lease_belongs_to_who_claimed_it(enforced: Api) -> None:
    pulled = {"target": {"type": "worker", "pool": "own", "arguments": []}}
    done(ADA, "PUT", f"{APP}/workflows/pulled", pulled)
    put("pull", workflow="pulled")
    run = done(ADA, "POST", f"{APP}/schedules/pull/run")["job_id"]
    enforced.work()
    [lease] = done(WORKER, "POST", "/v1/workers/demo.own/claim", {"worker": "ann", "wait": 0})["leases"]
    path, end = f"/v1/leases/{lease['lease']}", {"worker": "ann", "state": "succeeded"}
    short, token = lease["lease"].rpartition("-")[::2]
    for signer, wrong in (
        (OTHER, path),
        (WORKER, f"/v1/leases/{short}"),
        (WORKER, f"/v1/leases/{short}-{token[::-1]}"),
    ):
        assert signer.error("POST", f"{wrong}/report", end)["code"] == "forbidden"
        assert signer.error("POST", f"{wrong}/heartbeat", {"worker": "ann"})["code"] == "forbidden"
        assert signer.error("POST", f"{wrong}/release", {"worker": "ann"})["code"] == "forbidden"
    assert token not in str(enforced.everything())
    assert done(WORKER, "POST", f"{path}/heartbeat", {"worker": "ann"})["lease"] == lease["lease"]
    assert done(WORKER, "POST", f"{path}/report", end)["state"] == "SUCCEEDED"
    assert done(ADA, "GET", f"/v1/runs/{run}")["state"] == "SUCCEEDED"


def test_a_claim_on_an_unknown_pool_is_not_found(enforced: Api) -> None:
    error = WORKER.error("POST", "/v1/workers/demo.nowhere/claim", {"worker": "ann", "wait": 0})
    assert (error["code"], "target.pool" in error["hint"]) == ("not_found", True)
