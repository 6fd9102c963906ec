"""Pools and approvals over the API (W3, C16)."""

from __future__ import annotations

from typing import Any

from tests.web.conftest import APP, NS, Api

POOL = f"{NS}/pools/cluster"
EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
NEVER = {"type": "time", "expression": "0 0 1 1 *"}


def put(api: Api, **schedule: Any) -> str:
    """Request a run of a schedule. Returns the id of its job."""
    api.put(f"{APP}/workflows/spark", {"target": EMR, "pool": "cluster", "slots": 2})
    api.put(f"{APP}/schedules/nightly", {"workflow": "spark", "trigger": NEVER, "enabled": True, **schedule})
    job: str = api.post(f"{APP}/schedules/nightly/run")["job_id"]
    return job


def test_w3_a_pool_is_put_read_with_its_use_and_deleted(api: Api) -> None:
    assert api.put(POOL, {"size": 4, "shares": {"flights.spark": {"reserved": 2}}})["did"] == "created"
    answer = api.get(POOL)
    assert (answer["size"], answer["unit"], answer["in_use"], answer["waiting"]) == (4, "slots", 0, 0)
    assert [part["of"] for part in answer["parts"]] == ["everybody", "demo.flights.spark"]
    assert [part["queue"] for part in answer["parts"]] == [[], []]
    assert [each["name"] for each in api.get(f"{NS}/pools")["items"]] == ["demo.cluster"]

    put(api)
    error = api.refused(409, "DELETE", POOL)
    assert error["code"] == "in_use"
    assert "workflow demo.flights.spark" in error["message"]
    api.delete(f"{APP}/schedules/nightly")
    api.delete(f"{APP}/workflows/spark")
    api.delete(POOL)
    api.refused(404, "GET", POOL)


def test_w3_bad_pools_are_refused_by_field(api: Api) -> None:
    assert api.refused(400, "PUT", POOL, {"size": 0})["field"] == "size"
    assert api.refused(400, "PUT", POOL, {"size": 1, "unit": "gpu"})["field"] == "unit"
    assert api.refused(400, "PUT", POOL, {"size": 1, "shares": {"a": {"reserved": 2}}})["field"] == "shares"
    error = api.refused(400, "PUT", f"{APP}/workflows/spark", {"target": EMR, "pool": "nowhere"})
    assert (error["code"], error["field"]) == ("unknown_reference", "pool")
    error = api.refused(400, "PUT", f"{APP}/workflows/spark", {"target": EMR, "pool": "a.b.c"})
    assert "a pool as name or namespace.name" in error["message"]


def test_c16_only_a_person_who_may_approve_can_approve_or_refuse(api: Api) -> None:
    """The client of these tests signs as a user whom no rule names."""
    api.put(POOL, {"size": 4})
    job = put(api, constraints=[{"type": "approval", "role": "DataOwner"}])
    for verdict in ("approve", "refuse"):
        error = api.refused(403, "POST", f"/v1/jobs/{job}/{verdict}", {"reason": "why not"})
        assert (error["code"], "approved by a DataOwner" in error["message"]) == ("forbidden", True)
        assert api.refused(400, "POST", f"/v1/jobs/{job}/{verdict}", {"reson": "x"})["code"] == "unknown_field"
    assert api.get(f"/v1/jobs/{job}")["approvals"] == []
    api.refused(404, "POST", f"/v1/jobs/{job[:-4]}ffff/approve")
