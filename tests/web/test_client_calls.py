"""`sluice.Client` against the real routes: each call by task, and what it raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sluice import Client, WrongUsage
from sluice.refusals import Conflict, InUse, Invalid, NotFound, UnknownField, UnknownReference
from sluice.signing import Reply
from tests.support.schedules import BY_DAY, after
from tests.web.conftest import APP, Api, installation, settle_in

CLEAN, DAILY, NOTIFY = "demo.flights.clean", "demo.flights.daily", "demo.flights.notifies"
FLIGHTS = {"type": "partition", "dataset": "flights"}
DAY = {"year": "2013", "month": "1", "day": "5"}


class Routes:
    """The routes as a transport of the client: what a signed request over HTTP would get."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        sent = {name.replace("-", "_"): value for name, value in headers.items()}
        answer = self.api.send(method, path, content, **sent)
        lower = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status_code, lower, answer.body)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
        made.put(f"{APP}/workflows/join", {"target": emr})
        made.schedule("notifies", trigger={"type": "event", "event": "go"}, enabled=True)
        made.schedule("daily", trigger=FLIGHTS, by=BY_DAY, enabled=True)
        made.schedule("clean", trigger=FLIGHTS, workflow="clean", by=BY_DAY, enabled=True)
        made.put(f"{APP}/schedules/next", after("clean", "join", by=BY_DAY))
        yield made


@pytest.fixture
def client(api: Api) -> Client:
    """While the client pauses, the service works."""
    return Client("http://sluice.test", Routes(api), lambda seconds: api.work())


def test_an_applied_file_is_deployed_and_unchanged_after(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("""
        namespace: ${where}
        app: orders
        workflows: {clean: {target: {type: emr_serverless, entry_point: s3://code/clean.py}}}
        schedules: {nightly: {workflow: clean, trigger: {type: time, expression: 0 5 * * *}}}
    """)
    values = {"where": "fresh"}
    first = client.apply(path, values)
    assert first.created == ("app fresh.orders", "workflow fresh.orders.clean", "schedule fresh.orders.nightly")
    assert not client.apply(path, values).changed
    assert client.get("/v1/namespaces/fresh/apps/orders/schedules/nightly")["workflow"] == "fresh.orders.clean"


def test_a_dry_run_over_the_routes_stores_nothing(api: Api, client: Client) -> None:
    before = api.everything()
    document = {
        "namespace": "demo",
        "app": "dry",
        "workflows": {"x": {"target": {"type": "worker", "pool": "machines"}}},
    }
    report = client.apply(document, dry_run=True)
    assert report.created == ("app demo.dry", "workflow demo.dry.x")
    assert api.everything() == before


def test_a_run_over_the_routes_waits_for_its_end(client: Client) -> None:
    work = client.run(NOTIFY, {"limit": 5}, wait=True, timeout=60)
    assert (work.state, work.succeeded, work.schedule) == ("SUCCEEDED", True, NOTIFY)
    assert work.document["properties"] == {"limit": 5}
    assert client.work(work.id) == work
    assert client.why(work.id).state == "SUCCEEDED"


def test_a_run_of_a_partition_has_its_correlation(client: Client) -> None:
    work = client.run(DAILY, partition=DAY, wait=True, timeout=60)
    assert (work.state, work.document["correlation"]) == ("SUCCEEDED", DAY)


def test_the_reason_of_a_waiting_job_is_that_of_the_routes(api: Api, client: Client) -> None:
    api.post("/v1/namespaces/demo/events", {"events": [{"type": "other"}]})
    work = client.run(NOTIFY, at="2099-01-01T00:00:00Z")
    assert not work.ended
    assert "2099-01-01" in client.why(work.id).why
    why = client.why(NOTIFY)
    assert (why.state, [job.id for job in why.waiting]) == ("enabled", [work.id])
    assert [job.id for job in client.jobs(NOTIFY)] == [work.id]
    client.cancel(work.id)
    assert list(client.jobs(NOTIFY)) == []
    [record] = [record for record in client.records(NOTIFY) if record.id == work.id]
    assert "cancelled" in record.reason
    with pytest.raises(NotFound) as gone:
        client.wait(work.id)
    assert "cancelled" in str(gone.value.hint)


def test_runs_over_the_routes_come_page_by_page(client: Client) -> None:
    made = [client.run(NOTIFY, wait=True, timeout=60).id for _ in range(3)]
    assert [run.id for run in client.runs(NOTIFY, most=3)] == made[::-1]
    assert set(made) < {run.id for run in client.runs("demo", state="SUCCEEDED")}


def test_a_reprocessing_is_planned_begun_and_cancelled(api: Api, client: Client) -> None:
    before = api.everything()
    plan = client.reprocess("demo.flights", DAY, only=True, dry_run=True)
    assert (plan.id, plan.total, [step.schedule for step in plan.steps]) == (None, 2, [CLEAN, DAILY])
    assert all(step.why for step in plan.steps)
    assert api.everything() == before

    begun = client.reprocess("demo.flights", DAY, upto="demo.flights.join")
    assert (begun.state, begun.ended, begun.total) == ("RUNNING", False, 2)
    assert client.reprocessing("demo", str(begun.id)).id == begun.id
    over = client.cancel_reprocessing("demo", str(begun.id), runs=True)
    assert (over.state, over.ended, over.succeeded) == ("CANCELLED", True, False)
    assert [each.id for each in client.reprocessings("demo")] == [begun.id]


def test_a_reprocessing_of_a_range_waits_for_its_end(api: Api, client: Client) -> None:
    first, last = DAY | {"day": "6"}, DAY | {"day": "7"}
    for day in (first, last):
        client.register_partition("demo.flights", day)
    api.work()
    for name in ("clean", "next"):
        api.delete(f"{APP}/schedules/{name}")
    done = client.reprocess("demo.flights", since=first, until=last, concurrency=2, wait=True, timeout=60)
    assert (done.state, done.succeeded, done.total) == ("DONE", True, 2)


REFUSED = [
    (lambda client: client.run("demo.flights.missing"), NotFound, "not_found"),
    (lambda client: client.why("demo.flights.missing"), NotFound, "not_found"),
    (lambda client: client.work("no-id"), NotFound, "not_found"),
    (lambda client: client.apply({"namespace": "demo", "app": "x", "moon": 1}), UnknownField, "unknown_field"),
    (lambda client: client.reprocess("demo.moon", DAY), (NotFound, UnknownReference), None),
    (lambda client: client.reprocess("demo.flights", {"moon": "1"}), Invalid, "invalid"),
    (lambda client: client.delete(f"{APP}/workflows/notify"), InUse, "in_use"),
]


@pytest.mark.parametrize(("call", "expected", "code"), REFUSED)
def test_a_refusal_of_a_route_has_its_class(client: Client, call, expected, code) -> None:
    with pytest.raises(expected) as refused:
        call(client)
    assert code is None or refused.value.code == code
    assert refused.value.message


def test_a_run_that_ended_cannot_be_cancelled(client: Client) -> None:
    work = client.run(NOTIFY, wait=True, timeout=60)
    with pytest.raises(Conflict) as refused:
        client.cancel(work.id)
    assert refused.value.code == "conflict"


def test_the_views_of_a_console_are_calls_of_the_client(api: Api, client: Client) -> None:
    viewed = api.schedule("viewed", trigger=FLIGHTS, by=BY_DAY, enabled=True)["name"]
    api.post("/v1/namespaces/demo/datasets/flights/partitions", {"partition": DAY | {"day": "21"}})
    api.work()
    hour = datetime.now(UTC) - timedelta(hours=1)
    found = client.timeline("demo", hour, schedule="flights.viewed", ids=True)
    [run_id] = [name.partition("#")[0] for name in found["ids"]]
    assert found["names"] == [viewed]
    assert {node["id"] for node in client.lineage(run_id)["nodes"]} == {run_id, "partition:demo.flights/2013/1/21"}
    assert [sum(day["counts"].values()) for day in client.days(viewed, zone="UTC")["days"]] == [1]
    around = client.graph("demo", "dataset:demo.flights", up=0, down=1)
    assert f"schedule:{viewed}" in {node["id"] for node in around["nodes"]}
    assert run_id in {run["run_id"] for run in client.partition("demo.flights", 2013, "1", 21)["runs"]}
    with pytest.raises(WrongUsage):
        client.timeline("demo", datetime(2026, 1, 1))


def test_l18_the_client_changes_schedules_by_their_names(api: Api, client: Client) -> None:
    switched = api.schedule("switched", enabled=True)["name"]
    planned = client.change("pause", [switched, "demo.flights.gone"], mode="drain", dry_run=True)
    assert (planned["changed"], [each["name"] for each in planned["failed"]]) == ([switched], ["demo.flights.gone"])
    assert client.change("pause", [switched])["changed"] == [switched]
    assert client.change("resume", [switched])["changed"] == [switched]
