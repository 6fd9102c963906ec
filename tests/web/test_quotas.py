"""Quotas over HTTP: what is refused, with which figure, and who may raise it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.web import quotas
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.signed import Signer, authorizing, member, role

ADA, PLATFORM = Signer(role("data")), Signer(role("platform"))
EVERY_SECOND = {"type": "time", "expression": "@every 1s"}


@pytest.fixture
def limited(api: Api) -> Iterator[Api]:
    quotas.memory.cache_clear()
    yield api
    quotas.memory.cache_clear()


def put(name: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return f"{APP}/schedules/{name}", {"workflow": "notify", "trigger": WEEKDAYS} | fields


def test_a_schedule_above_the_quota_is_refused(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"schedules": 1})
    limited.put(*put("one"))
    error = limited.refused(409, "PUT", *put("two"))
    assert (error["code"], error["message"]) == (
        "over_quota", "expected at most 1 schedules in namespace demo, got 2",
    )  # fmt: skip
    assert "sluice quotas demo" in error["hint"]
    limited.put(*put("one", priority=3))


def test_a_spread_of_every_second_is_refused(limited: Api) -> None:
    spread = {"count": 100_000, "over": "1s"}
    error = limited.refused(409, "PUT", *put("noisy", trigger=EVERY_SECOND, spread=spread))
    assert error["message"] == "expected at most 1000 fires a second in namespace demo, got 100000"


def test_a_deployment_above_the_quota_changes_nothing(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"fires_per_second": 1.5})
    target = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    schedules = {name: {"workflow": "w", "trigger": EVERY_SECOND} for name in ("a", "b")}
    before = limited.all_but_audit()
    body = {"workflows": {"w": {"target": target}}, "schedules": schedules}
    assert limited.refused(409, "PUT", f"{NS}/apps/orders", body)["code"] == "over_quota"
    assert limited.all_but_audit() == before


def test_fires_of_stored_schedules_count(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"fires_per_second": 1.5})
    limited.put(*put("first", trigger=EVERY_SECOND))
    quotas.memory.cache_clear()
    assert limited.refused(409, "PUT", *put("second", trigger=EVERY_SECOND))["code"] == "over_quota"
    assert limited.get(f"{NS}/quotas")["used"]["fires_per_second"] == 1


def test_o14_the_fires_of_a_dag_count(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"fires_per_second": 1.5})
    limited.put(*put("first", trigger=EVERY_SECOND))
    document = {"trigger": EVERY_SECOND, "nodes": {"a": {"workflow": "clean"}}, "edges": []}
    assert limited.refused(409, "PUT", f"{APP}/dags/daily", document)["code"] == "over_quota"
    target = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    body = {"dags": {"daily": document}, "workflows": {"clean": {"target": target}}}
    error = limited.refused(409, "PUT", f"{NS}/apps/orders", body)
    assert error["message"] == "expected at most 1.5 fires a second in namespace demo, got 2"


def test_documents_above_the_quota_are_refused(limited: Api) -> None:
    used = limited.get(f"{NS}/quotas")["used"]["documents"]
    limited.put(f"{NS}/quotas", {"documents": used})
    for path, body in ((f"{NS}/policies/calm", {"max_events": 5}), (f"{NS}/pools/spark", {"size": 5})):
        assert limited.refused(409, "PUT", path, body)["code"] == "over_quota"
    limited.put(f"{NS}/datasets/weather", {"bucket": "lake", "prefix": "raw/weather/", "keys": ["day"]})


def test_a_namespace_without_quotas_has_the_default_ones(limited: Api) -> None:
    view = limited.get(f"{NS}/quotas")
    assert (view["version"], view["effective"]["schedules"], view["used"]["documents"]) == (0, 100_000, 4)


def test_only_administrators_of_the_installation_raise_quotas(limited: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    limited.put(f"{NS}/access", {"members": [{"member": member("data"), "roles": ["admin"]}]})
    authorizing(monkeypatch, "enforce")
    assert ADA.error("PUT", f"{NS}/quotas", {"schedules": 5})["code"] == "forbidden"
    assert PLATFORM.status("PUT", f"{NS}/quotas", {"schedules": 5}) == 201
    assert ADA.status("GET", f"{NS}/quotas") == 200


def test_requests_above_the_quota_are_throttled(limited: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    limited.put("/v1/namespaces/quiet")
    limited.put(f"{NS}/quotas", {"requests_per_second": 1})

    class Stopped:
        def now(self) -> int:
            return 1_800_000_000_000

        def wait_until(self, instant: int) -> None: ...

    stopped = replace(ports(), clock=Stopped())
    monkeypatch.setattr("chalicelib.web.access.ports", lambda: stopped)
    quotas.memory.cache_clear()
    statuses = [limited.send("PUT", f"{NS}/policies/calm", {"max_events": 5}).status_code for _ in range(12)]
    assert statuses == [201, *[200] * 9, 429, 429]
    assert limited.get("/v1/namespaces/quiet")["name"] == "quiet"


def wait_for_ever(api: Api, *keys: str, name: str = "held") -> list[str]:
    """Jobs that wait for an approval: one for each key."""
    api.put(*put(name, constraints=[{"type": "approval", "people": ["arn:aws:iam::123456789012:role/lead"]}]))
    return [api.post(f"{APP}/schedules/{name}/run", {}, idempotency_key=key)["job_id"] for key in keys]


def refused_for_waiting(api: Api, path: str, body: Any = None, **headers: str) -> None:
    error = api.refused(409, "POST", path, body, **headers)
    assert (error["code"], error["message"]) == (
        "over_quota", "expected at most 2 waiting jobs in namespace demo, got 2 before this request",
    )  # fmt: skip
    assert "sluice quotas demo" in error["hint"]


def test_requests_make_no_jobs_above_the_quota_of_waiting(limited: Api) -> None:
    wait_for_ever(limited, "a", "b")
    limited.work()
    limited.put(f"{NS}/quotas", {"waiting_jobs": 2})
    quotas.memory.cache_clear()
    assert limited.get(f"{NS}/quotas")["used"]["waiting_jobs"] == 2
    before = limited.all_but_audit()
    interval = {"from": "2026-01-05T00:00:00Z", "to": "2026-01-09T00:00:00Z"}
    refused_for_waiting(limited, f"{APP}/schedules/held/run", {})
    refused_for_waiting(limited, f"{APP}/schedules/held/backfills", interval)
    refused_for_waiting(limited, "/v1/runs/demo.flights.held.x.y/rerun")
    refused_for_waiting(limited, f"{NS}/dead-letters/redrive", {"schedule": "flights.held"})
    refused_for_waiting(limited, f"{NS}/dead-letters/demo.flights.held.x.y/redrive")
    refused_for_waiting(limited, f"{NS}/reprocess", {"run": "demo.flights.held.x.y"})
    assert limited.all_but_audit() == before


def test_a_process_counts_the_jobs_that_it_lets_in(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"waiting_jobs": 2})
    wait_for_ever(limited, "a", "b")
    refused_for_waiting(limited, f"{APP}/schedules/held/run", {}, idempotency_key="c")


def test_a_repeat_above_the_quota_finds_its_first_job(limited: Api) -> None:
    limited.put(f"{NS}/quotas", {"waiting_jobs": 2})
    first, _ = wait_for_ever(limited, "a", "b")
    quotas.memory.cache_clear()
    assert limited.post(f"{APP}/schedules/held/run", {}, idempotency_key="a")["job_id"] == first


def test_jobs_that_are_dropped_make_room_for_others(limited: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    limited.put(f"{NS}/quotas", {"waiting_jobs": 2})
    wait_for_ever(limited, "a", "b")
    limited.work()
    limited.delete(f"{APP}/schedules/held")
    limited.work()
    monkeypatch.setattr(quotas, "REMEMBERED", 0)
    assert wait_for_ever(limited, "c", name="other")


def test_waiting_jobs_of_other_namespaces_do_not_count(limited: Api) -> None:
    wait_for_ever(limited, "a", "b")
    limited.put("/v1/namespaces/quiet")
    limited.put("/v1/namespaces/quiet/quotas", {"waiting_jobs": 1})
    assert limited.get("/v1/namespaces/quiet/quotas")["used"]["waiting_jobs"] == 0
