"""What a member of one namespace learns about another, and can do there, by what names both (O5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.web import unseen
from chalicelib.wiring import ports
from tests.support.schedules import BY_DAY, after
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in
from tests.web.signed import Signer, authorizing, member, role

OTHER = "/v1/namespaces/other"
SECRET = f"{OTHER}/apps/secret"
DAY = {"year": "2013", "month": "1", "day": "4"}
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
ONE_RUN = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
HIDDEN = ("other.hidden", "other.absent")
ADMIN = Signer(role("platform"))
OURS = Signer(role("ours"))
BOTH = Signer(role("both"))


def settle_both(api: Api) -> None:
    """The namespaces ``demo`` and ``other``. A schedule of ``other`` counts the dataset and a workflow of ``demo``."""
    settle_in(api)
    api.put(OTHER)
    api.put(SECRET)
    api.put(f"{OTHER}/datasets/hidden", {"bucket": "lake", "prefix": "raw/hidden/", "keys": ["year", "month", "day"]})
    api.put(f"{SECRET}/workflows/plan", EMR)
    api.put(f"{APP}/workflows/clean_up", EMR)
    api.schedule(
        "clean", workflow="clean", trigger={"type": "partition", "dataset": "flights"}, by=BY_DAY, enabled=True
    )
    counts = {"type": "partition", "dataset": "demo.flights"}
    api.put(f"{SECRET}/schedules/counts", {"workflow": "plan", "trigger": counts, "by": BY_DAY, "enabled": True})
    follows = after("demo.flights.clean", "plan", by=BY_DAY)
    api.put(f"{SECRET}/schedules/follows", follows | {"enabled": True})
    own = {"type": "partition", "dataset": "hidden"}
    api.put(f"{SECRET}/schedules/own", {"workflow": "plan", "trigger": own, "by": BY_DAY, "enabled": True})
    api.put(f"{NS}/datasets/derived", {"bucket": "lake", "prefix": "derived/", "keys": ["day"]})
    api.put(f"{APP}/workflows/derive", EMR | {"produces": ["derived"]})
    api.put(f"{APP}/schedules/derive", {"workflow": "derive", "trigger": WEEKDAYS, "enabled": True})
    size = {"type": "size", "dataset": "demo.derived", "bytes": "1GB"}
    api.put(f"{SECRET}/schedules/sizes", {"workflow": "plan", "trigger": size, "enabled": True})
    boss = {"member": member("boss"), "roles": ["admin"]}
    both = {"member": member("both"), "roles": ["admin"]}
    api.put(f"{NS}/access", {"members": [boss, both, {"member": member("ours"), "roles": ["admin"]}]})
    worker = {"member": member("worker"), "roles": ["worker"], "pools": ["etl"]}
    api.put(f"{SECRET}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
    api.put(f"{SECRET}/workflows/tight", {"target": {"type": "worker", "pool": "gpu"}})
    api.put(f"{OTHER}/access", {"members": [boss, both, worker, {"member": member("ours"), "roles": ["producer"]}]})


@pytest.fixture(scope="module")
def standing() -> Iterator[Api]:
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        settle_both(api)
        api.post(f"{NS}/datasets/flights/partitions", {"partition": DAY})
        api.work()
        [run] = ports().runs.runs("schedule", "demo.flights.clean", 9, None).items
        now = ports().clock.now()
        for state in ("RUNNING", "SUCCEEDED"):
            complete.advance_run(ports(), run.run_id, run.attempt, RunUpdate(state, now, ""))
        for name in ("pulled", "tight"):
            given = {"workflow": f"other.secret.{name}", "trigger": WEEKDAYS, "enabled": True}
            api.put(f"{APP}/schedules/{name}", given)
            api.post(f"{APP}/schedules/{name}/run")
        single = {"trigger": WEEKDAYS, "constraints": [ONE_RUN], "enabled": True}
        for path in (f"{SECRET}/schedules/first", f"{APP}/schedules/second"):
            api.put(path, single | {"workflow": "demo.flights.clean_up"})
            api.post(f"{path}/run")
            api.work()
        api.put(f"{NS}/pools/small", {"size": 1})
        queued = {"workflow": "plan", "trigger": WEEKDAYS, "pool": "demo.small", "enabled": True}
        for path in (f"{SECRET}/schedules/queued", f"{SECRET}/schedules/queued_too"):
            api.put(path, queued)
            api.post(f"{path}/run")
            api.work()
        api.work()
        authorizing(patch, "enforce")
        yield api


def read(signer: Signer, target: str) -> Any:
    status, view = signer.send("GET", target)
    assert status == 200, view
    return view


@pytest.mark.usefixtures("standing")
def test_l22_a_plan_does_not_name_hidden_schedules() -> None:
    fires = {"schedule": "demo.flights.derive", "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}
    plans = [signer.send("POST", f"{NS}/reprocess", {"fires": fires, "dry_run": True})[1] for signer in (BOTH, OURS)]
    assert [[each["schedule"] for each in plan["not_followed"]] for plan in plans] == [["other.secret.sizes"], []]


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("name", ["own", "absent"])
def test_a_graph_is_not_drawn_around_what_is_hidden(name: str) -> None:
    target = f"{NS}/graph?around=schedule:other.secret.{name}"
    error = OURS.error("GET", target)
    assert (error["code"], error["message"]) == ("not_found", f"no schedule named 'other.secret.{name}'")
    if name == "own":
        assert "other.secret.plan" in json.dumps(read(BOTH, target))


@pytest.mark.usefixtures("standing")
def test_a_lineage_leaves_out_what_is_hidden() -> None:
    [run] = ports().runs.runs("schedule", "demo.flights.clean", 9, None).items
    target = f"/v1/runs/{run.run_id}/lineage"
    hidden = [node["id"] for node in read(BOTH, target)["nodes"] if "other.secret.follows" in node["id"]]
    assert hidden
    view = read(OURS, target)
    assert "other." not in json.dumps(view)
    assert {node["id"] for node in view["nodes"]} == {run.run_id, "partition:demo.flights/2013/1/4"}


def test_what_led_to_a_hidden_run_is_left_out_with_it() -> None:
    nodes = [
        {"id": "demo.a.b.1.1", "schedule": "demo.a.b", "depth": 0},
        {"id": "other.a.b.1.1", "schedule": "other.a.b", "depth": -1},
        {"id": "event:17", "schedule": None, "depth": -2},
        {"id": "event:18", "schedule": None, "depth": -1},
    ]
    pairs = (("other.a.b.1.1", "demo.a.b.1.1"), ("event:17", "other.a.b.1.1"), ("event:18", "demo.a.b.1.1"))
    edges = [{"from": start, "to": end} for start, end in pairs]
    view = {"run_id": "demo.a.b.1.1", "nodes": nodes, "edges": edges}
    left = unseen.lineage(view, lambda name: name.startswith("demo."))
    assert [node["id"] for node in left["nodes"]] == ["demo.a.b.1.1", "event:18"]
    assert left["edges"] == edges[2:]


@pytest.mark.usefixtures("standing")
def test_a_partition_leaves_out_who_counts_it_elsewhere() -> None:
    target = f"{NS}/datasets/flights/partition?values=2013/1/4"
    assert "other.secret.counts" in read(BOTH, target)["schedules"]
    view = read(OURS, target)
    assert view["schedules"] == ["demo.flights.clean"]
    assert "other." not in json.dumps(view)


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("state", ["", "?state=STARTING"])
def test_a_workflow_lists_no_runs_of_hidden_schedules(state: str) -> None:
    """A workflow of ``demo`` that a schedule of ``other`` runs, too."""
    target = f"{APP}/workflows/clean_up/runs{state}"
    assert [run["schedule"] for run in read(BOTH, target)["items"]] == ["other.secret.first"]
    assert read(OURS, target) == {"items": [], "next_cursor": None}


@pytest.mark.usefixtures("standing")
def test_a_worker_keeps_leases_of_its_pools_alone() -> None:
    """A pool is in the namespace of the workflow, and the id of a lease begins with that of the schedule."""
    worker, ann = Signer(role("worker")), {"worker": "ann"}
    [lease] = worker.send("POST", "/v1/workers/other.etl/claim", {**ann, "wait": 0})[1]["leases"]
    assert lease["lease"].startswith("demo.flights.pulled.")
    assert worker.status("POST", f"/v1/leases/{lease['lease']}/heartbeat", ann) == 200
    assert OURS.error("POST", f"/v1/leases/{lease['lease']}/heartbeat", ann)["code"] == "forbidden"
    assert Signer(role("x")).error("POST", f"/v1/leases/{lease['lease']}/heartbeat", ann)["code"] == "not_found"
    [tight] = ADMIN.send("POST", "/v1/workers/other.gpu/claim", {**ann, "wait": 0})[1]["leases"]
    assert (
        worker.error("POST", f"/v1/leases/{tight['lease']}/report", {**ann, "state": "failed"})["code"] == "forbidden"
    )


@pytest.mark.usefixtures("standing")
def test_a_reprocessing_runs_nothing_in_hidden_namespaces() -> None:
    for dry_run in (True, False):
        request = {"dataset": "flights", "partition": DAY, "dry_run": dry_run}
        error = OURS.error("POST", f"{NS}/reprocess", request)
        assert (error["code"], error["field"]) == ("forbidden", "scope")
        assert "other." not in json.dumps(error)
    asked = {"partition": DAY, "dry_run": True}
    hidden, absent = (OURS.error("POST", f"{NS}/reprocess", {"dataset": name, **asked}) for name in HIDDEN)
    assert hidden == {**absent, "message": absent["message"].replace("absent", "hidden")}
    begun = BOTH.send("POST", f"{NS}/reprocess", {"dataset": "flights", "partition": DAY})[1]
    shown = read(OURS, f"{NS}/reprocess/{begun['reprocess_id']}")
    assert "other.secret.counts" in json.dumps(begun)
    assert "other." not in json.dumps(shown)
    assert "other." not in json.dumps(read(OURS, f"{NS}/reprocess"))


@pytest.mark.usefixtures("standing")
def test_an_error_does_not_name_what_is_hidden() -> None:
    dataset = {"bucket": "lake", "prefix": "raw/hidden/", "keys": ["team-id", "day"]}
    wrong = {"workflow": "clean", "trigger": {"type": "partition", "dataset": "other.hiden"}}
    both = wrong | {"policy": "other.none"}
    requests: list[tuple[str, str, Any]] = [
        ("DELETE", f"{APP}/workflows/clean", None),
        ("DELETE", f"{NS}/datasets/flights", None),
        ("PUT", f"{NS}/datasets/mine", dataset),
        ("PUT", f"{APP}/schedules/new", wrong),
        ("PUT", f"{APP}/schedules/new", both),
        ("PUT", APP, {"datasets": {"mine": dataset}}),
    ]
    for method, target, body in requests:
        error = OURS.error(method, target, body)
        text = json.dumps(error).replace("other.hiden", "").replace("other.none", "")
        assert "other." not in text, (method, target, text)
        assert "(hidden)" in text or "may not read" in text
        assert "other." in json.dumps(BOTH.error(method, target, body)).replace("other.hiden", "")
    day = {"partition": DAY}
    assert OURS.error("POST", f"{OTHER}/datasets/hiden/partitions", day)["hint"].startswith("check the names")


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("target", [f"{NS}/pools/small", f"{NS}/limits?name=pool:demo.small"])
def test_a_queue_leaves_out_who_waits_elsewhere(target: str) -> None:
    assert "other.secret.queued_too" in json.dumps(read(BOTH, target))
    view = read(OURS, target)
    assert "other." not in json.dumps(view)
    [count] = [item["waiting"] for item in view.get("items", [view])]
    assert count == 1


@pytest.mark.usefixtures("standing")
def test_an_explanation_leaves_out_who_holds_a_permit_elsewhere() -> None:
    target = f"{APP}/schedules/second/why"
    assert "other.secret.first" in json.dumps(read(BOTH, target)["jobs"])
    view = read(OURS, target)
    assert "other." not in json.dumps(view)
    [job] = view["jobs"]
    assert job["limits"][0]["used"] == 1
    assert "other." not in json.dumps(read(OURS, f"/v1/jobs/{job['job_id']}/why"))
