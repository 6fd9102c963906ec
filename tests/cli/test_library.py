"""`sluice` as a library, against a simulated API: its requests, its results, and its exceptions."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chalicelib.core.errors import STATUS
from sluice import ApiRefused, Client, WrongUsage
from sluice.refusals import (
    BY_CODE,
    ChangedMeanwhile,
    Forbidden,
    Invalid,
    NotFound,
    Unavailable,
    UnknownField,
)
from tests.cli import recorded
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES

RUN, WHY = f"/v1/runs/{JOB}", f"/v1/jobs/{JOB}/why"
CLEAN_PATH = f"{SCHEDULES}/clean"
WAITING = {"job_id": JOB, "schedule": CLEAN, "state": "PENDING_CONSTRAINTS", "why": "waits for a permit"}
APP = {"namespace": "demo", "app": "flights", "workflows": {}}
REPORT = {"name": "demo.flights", "created": ["workflow demo.flights.clean"], "replaced": [], "deleted": []}


def run(state: str, **more: object) -> dict[str, object]:
    return {"run_id": JOB, "schedule": CLEAN, "state": state, "reason": "", **more}


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(api: PlayedApi, pauses: list[float]) -> Client:
    """The client of the address in the environment. Its pauses are recorded instead of made."""
    assert api.url
    return Client(pause=pauses.append)


def test_apply_sends_a_file_and_creates_its_namespace(api: PlayedApi, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("namespace: demo\napp: flights\nworkflows: {}\ndescription: ${text}\n")
    api.play("PUT", "/v1/namespaces/demo", {})
    api.play("PUT", "/v1/namespaces/demo/apps/flights", REPORT)
    report = client.apply(path, values={"text": "mine"})
    assert (report.created, report.changed) == (("workflow demo.flights.clean",), True)
    [sent] = api.sent("PUT", "/v1/namespaces/demo/apps/flights")
    assert sent.body == APP | {"description": "mine"}
    assert len(api.sent("PUT", "/v1/namespaces/demo")) == 1


def test_apply_of_a_document_keeps_a_known_namespace(api: PlayedApi, client: Client) -> None:
    api.play("GET", "/v1/namespaces/demo", recorded.namespace())
    api.play("PUT", "/v1/namespaces/demo/apps/flights", {"created": []})
    assert not client.apply(APP, update_schedules=False).changed
    [sent] = api.sent("PUT", "/v1/namespaces/demo/apps/flights")
    assert sent.query == {"update_schedules": "false"}
    assert api.sent("PUT", "/v1/namespaces/demo") == []


def test_a_dry_run_of_apply_creates_no_namespace(api: PlayedApi, client: Client) -> None:
    api.play("PUT", "/v1/namespaces/demo/apps/flights", REPORT)
    client.apply(APP, dry_run=True)
    assert [request.query for request in api.requests] == [{"dry_run": "true"}]


def test_apply_of_a_document_without_a_name_sends_nothing(api: PlayedApi, client: Client) -> None:
    with pytest.raises(WrongUsage, match="expected the name of its app, got nothing"):
        client.apply({"namespace": "demo"})
    assert api.requests == []


def test_a_run_is_a_job_at_first(api: PlayedApi, client: Client) -> None:
    api.play("POST", f"{CLEAN_PATH}/run", Played(202, WAITING))
    work = client.run(CLEAN, {"limit": 5}, at=datetime(2026, 3, 2, 12, tzinfo=UTC))
    assert (work.id, work.state, work.ended) == (JOB, "PENDING_CONSTRAINTS", False)
    [sent] = api.sent("POST", f"{CLEAN_PATH}/run")
    assert sent.body == {"properties": {"limit": 5}, "at": "2026-03-02T12:00:00+00:00"}
    assert sent.headers["idempotency-key"]


def test_a_run_under_a_key_is_the_same_from_any_process(api: PlayedApi, client: Client) -> None:
    api.play("POST", f"{CLEAN_PATH}/run", Played(hang_up=True), Played(202, WAITING))
    for _ in range(2):
        client.run(CLEAN, key="nightly-2026-03-01")
    keys = [request.headers["idempotency-key"] for request in api.sent("POST", f"{CLEAN_PATH}/run")]
    assert keys == ["nightly-2026-03-01"] * 3


def test_a_run_that_waits_returns_its_end(api: PlayedApi, client: Client, pauses: list[float]) -> None:
    api.play("POST", f"{CLEAN_PATH}/run", Played(202, WAITING))
    missing = Played(404, {"error": {"code": "not_found", "message": "no run"}})
    api.play("GET", RUN, missing, run("STARTING"), run("RETRYING"), run("FAILED", reason="out of memory"))
    api.play("GET", WHY, WAITING)
    work = client.run(CLEAN, wait=True)
    assert (work.state, work.succeeded, work.why) == ("FAILED", False, "out of memory")
    assert pauses == sorted(pauses) and len(pauses) == 3


def test_a_wait_ends_at_its_timeout(api: PlayedApi, client: Client, pauses: list[float]) -> None:
    api.play("GET", RUN, run("RUNNING"))
    with pytest.raises(TimeoutError, match=f"expected the end of {re.escape(JOB)} within 20 seconds"):
        client.wait(JOB, timeout=20)
    assert sum(pauses) == pytest.approx(20)


def test_a_wait_for_dropped_work_says_what_happened(api: PlayedApi, client: Client) -> None:
    api.refuse("GET", RUN, 404, "not_found", "no run")
    api.refuse("GET", WHY, 404, "not_found", "no job", hint="it was aborted: refused by ada")
    with pytest.raises(NotFound) as refused:
        client.wait(JOB)
    assert refused.value.hint == "it was aborted: refused by ada"


def test_a_run_of_a_partition_sends_it_as_correlation(api: PlayedApi, client: Client) -> None:
    api.play("POST", f"{CLEAN_PATH}/run", Played(202, WAITING))
    client.run(CLEAN, partition={"day": 1})
    [sent] = api.sent("POST", f"{CLEAN_PATH}/run")
    assert sent.body == {"properties": {}, "partition": {"day": 1}}


def test_why_of_a_schedule_names_its_waiting_jobs(api: PlayedApi, client: Client) -> None:
    answer = {"schedule": CLEAN, "state": "enabled", "why": "waits for a permit", "jobs": [WAITING]}
    api.play("GET", f"{CLEAN_PATH}/why", answer)
    why = client.why(CLEAN)
    assert (why.state, why.why, [job.id for job in why.waiting]) == ("enabled", "waits for a permit", [JOB])


def test_why_of_an_id_is_that_of_its_run_or_job(api: PlayedApi, client: Client) -> None:
    api.play("GET", WHY, WAITING)
    assert client.why(JOB).why == "waits for a permit"
    api.play("GET", f"{RUN}/why", {"run_id": JOB, "state": "FAILED", "why": "out of memory"})
    assert client.why(JOB).why == "out of memory"


def test_lists_are_iterators_over_their_pages(api: PlayedApi, client: Client) -> None:
    api.lists[f"{CLEAN_PATH}/runs"] = [run("FAILED", number=number) for number in range(250)]
    runs = client.runs(CLEAN, state="FAILED")
    assert api.requests == []
    assert next(runs).state == "FAILED"
    assert len(api.requests) == 1
    assert len(list(runs)) == 249
    assert [request.query["state"] for request in api.requests] == ["FAILED"] * 3
    api.lists["/v1/namespaces/demo/jobs"] = [WAITING] * 3
    assert [job.id for job in client.jobs("demo", most=2)] == [JOB] * 2


def test_records_have_their_reason_and_instant(api: PlayedApi, client: Client) -> None:
    record = {"id": JOB, "schedule": CLEAN, "kind": "ABORTED", "reason": "refused", "at": "2026-03-02T12:00:00.000Z"}
    api.lists[f"{CLEAN_PATH}/records"] = [record]
    [found] = client.records(CLEAN)
    assert (found.kind, found.reason, found.at) == ("ABORTED", "refused", datetime(2026, 3, 2, 12, tzinfo=UTC))


def test_work_is_cancelled_as_a_run_or_as_a_job(api: PlayedApi, client: Client) -> None:
    api.play("POST", f"/v1/jobs/{JOB}/cancel", {"id": JOB})
    client.cancel(JOB)
    assert [request.path for request in api.requests] == [f"{RUN}/cancel", f"/v1/jobs/{JOB}/cancel"]


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "invalid", Invalid),
        (400, "unknown_field", UnknownField),
        (403, "forbidden", Forbidden),
        (412, "changed_meanwhile", ChangedMeanwhile),
        (503, "unavailable", Unavailable),
    ],
)
def test_a_refusal_is_of_the_class_of_its_code(
    api: PlayedApi, client: Client, status: int, code: str, expected: type[ApiRefused]
) -> None:
    api.refuse("GET", f"{CLEAN_PATH}/why", status, code, "no", field="trigger")
    with pytest.raises(expected) as refused:
        client.why(CLEAN)
    assert type(refused.value) is expected
    assert (refused.value.status, refused.value.code, refused.value.field) == (status, code, "trigger")


def test_a_code_of_a_newer_release_is_a_plain_refusal(api: PlayedApi, client: Client) -> None:
    api.refuse("GET", f"{CLEAN_PATH}/why", 402, "out_of_budget", "no")
    with pytest.raises(ApiRefused) as refused:
        client.why(CLEAN)
    assert type(refused.value) is ApiRefused


def test_every_code_of_the_api_has_a_class() -> None:
    assert BY_CODE.keys() == STATUS.keys()


def test_a_client_without_an_address_is_wrong_usage() -> None:
    with pytest.raises(WrongUsage, match="expected SLUICE_API_URL in the environment"):
        Client()


def test_the_page_of_the_library_names_every_call() -> None:
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text()
    own = {name for name in vars(Client) if not name.startswith("_")}
    assert {name for name in own if f"client.{name}(" not in page} == set()
    assert {known.__name__ for known in BY_CODE.values()} <= set(re.findall(r"`(\w+)`", page))
