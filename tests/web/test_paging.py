"""Every list goes page by page, by a cursor that is opaque and belongs to that list alone."""

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from chalicelib.core import ids
from chalicelib.core.instants import iso
from chalicelib.web.paging import MARK
from chalicelib.wiring import ports
from tests.web import answer_schemas, large_fires
from tests.web.conftest import APP, KEYS, NS, Api, installation, settle_in
from tests.web.signed import resource_of

ONE = f"{APP}/schedules/s1"
WAITING = {"type": "partition", "dataset": "flights"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """An API with seven objects of each kind."""
    with installation() as full:
        settle_in(full)
        target = full.get(f"{APP}/workflows/notify")["target"]
        for number in range(1, 8):
            full.put(f"/v1/namespaces/n{number}")
            full.put(f"{NS}/apps/a{number}")
            full.put(f"{NS}/datasets/d{number}", {"bucket": "lake", "prefix": f"d{number}/", "keys": KEYS})
            full.put(f"{APP}/workflows/w{number}", {"target": target})
            full.schedule(f"s{number}", properties={"n": number})
        for number in range(6):
            full.schedule("s1", properties={"n": number})
        for number in range(7):
            full.post(f"{ONE}/run", idempotency_key=f"run {number}")
        full.work()
        two = {"type": "all", "triggers": [WAITING, {"type": "partition", "dataset": "weather"}]}
        full.schedule("s1", trigger=two, by=KEYS, enabled=True)
        days = [{"partition": {"year": "2013", "month": "1", "day": str(day)}} for day in range(1, 8)]
        for day in days:
            full.post(f"{NS}/datasets/flights/partitions", day)
        full.post(f"{ONE}/disable")
        full.post(f"{ONE}/enable")
        for day in range(8, 15):
            full.post(f"{NS}/datasets/flights/partitions", {"partition": {"year": "2013", "month": "1", "day": day}})
        yield full


LISTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "/v1/namespaces": lambda item: item["name"],
    f"{NS}/apps": lambda item: item["name"],
    f"{NS}/datasets": lambda item: item["name"],
    f"{NS}/datasets/flights/partitions": lambda item: item["path"],
    f"{NS}/jobs": lambda item: item["job_id"],
    f"{NS}/runs": lambda item: item["run_id"],
    f"{NS}/runs?state=SUCCEEDED": lambda item: item["run_id"],
    f"{NS}/records": lambda item: item["id"],
    f"{APP}/workflows": lambda item: item["name"],
    f"{APP}/schedules": lambda item: item["name"],
    f"{ONE}/jobs": lambda item: item["job_id"],
    f"{ONE}/runs": lambda item: item["run_id"],
    f"{ONE}/records": lambda item: item["id"],
    f"{ONE}/versions": lambda item: item["version"],
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_a_list_is_the_same_in_pages_of_any_size(api: Api, path: str, limit: int) -> None:
    whole = api.get(path)
    assert whole["next_cursor"] is None
    assert len(whole["items"]) >= 7

    with_more = path + ("&" if "?" in path else "?")
    pages = [api.get(f"{with_more}limit={limit}")]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        assert len(pages) < 50
        pages.append(api.get(f"{with_more}limit={limit}&cursor={cursor}"))

    assert all(len(page["items"]) <= limit for page in pages)
    assert [item for page in pages for item in page["items"]] == whole["items"]
    names = [LISTS[path](item) for item in whole["items"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_of_another_list_or_of_none_is_refused(api: Api, path: str) -> None:
    with_more = path + ("&" if "?" in path else "?")
    elsewhere = "/v1/namespaces" if path != "/v1/namespaces" else f"{NS}/apps"
    foreign = api.get(f"{elsewhere}?limit=1")["next_cursor"]
    mine = api.get(f"{with_more}limit=1")["next_cursor"]
    assert foreign
    assert mine

    for junk in (foreign, mine[:-2], "x" + mine, "", "junk", "%C3%A9", "e30=", "bnVsbA"):
        error = api.refused(400, "GET", f"{with_more}cursor={junk}")
        assert (error["code"], error["field"]) == ("bad_cursor", "cursor")
        assert error["hint"] == "leave the cursor out to begin at the start"


@pytest.mark.parametrize("path", LISTS)
def test_a_limit_has_its_bounds(api: Api, path: str) -> None:
    with_more = path + ("&" if "?" in path else "?")
    for limit in ("0", "501", "-1", "1.5", "ten", "", "²", "9" * 5000):
        error = api.refused(400, "GET", f"{with_more}limit={limit}")
        assert error["field"] == "limit"
        assert error["message"].startswith("expected a number from 1 to 500, got '")


@pytest.mark.parametrize("path", LISTS)
def test_an_unknown_filter_is_refused(api: Api, path: str) -> None:
    with_more = path + ("&" if "?" in path else "?")
    error = api.refused(400, "GET", f"{with_more}sate=FAILED")
    assert (error["code"], error["field"]) == ("unknown_field", "sate")
    assert "limit, cursor" in error["hint"]


@pytest.mark.parametrize(
    ("path", "field", "expected"),
    [
        (f"{NS}/runs?state=failed", "state", "one of STARTING, RUNNING, "),
        (f"{ONE}/runs?state=DONE", "state", "one of STARTING, RUNNING, "),
        (f"{NS}/runs?day=yesterday", "day", "a day such as 2026-11-20"),
        (f"{NS}/records?day=2026-02-30", "day", "a day such as 2026-11-20"),
        (f"{ONE}/runs?day=20260302", "day", "a day such as 2026-11-20"),
        (f"{ONE}/preview?count=1001", "count", "a number from 1 to 1000"),
        (f"{ONE}/preview?count=0", "count", "a number from 1 to 1000"),
    ],
)
def test_a_filter_value_must_be_valid(api: Api, path: str, field: str, expected: str) -> None:
    error = api.refused(400, "GET", path)
    assert error["field"] == field
    assert error["message"].startswith(f"expected {expected}")
    assert "got" in error["message"]


def encoded(position: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


KEY = {"pk": {"S": "x"}, "sk": {"S": "y"}}
INNER = [7, True, "text", [1], {}, {"pk": {"S": 1}}, KEY, [0, KEY], [-1, None], [0, "x"], [10**30, None]]
FORGED = ["", "junk", "-1", "null", "[1]", '["a", 1]', '[9, "x"]', "[[1], null]", *map(encoded, INNER)]
FORGED += [json.dumps([0, encoded(position)]) for position in (7, KEY, [0, "x"])]


@pytest.mark.parametrize("path", LISTS)
def test_a_forged_cursor_never_fails_the_request(api: Api, path: str) -> None:
    """The mark of a cursor is no secret: an attacker can compute it for any position."""
    plain, _, filters = path.partition("?")
    resource, segments = resource_of("GET", plain)
    pairs = sorted(tuple(each.split("=")) for each in filters.split("&") if each)
    for position in FORGED:
        mark = ids.digest(resource, sorted(segments.items()), pairs, position, length=MARK)
        cursor = base64.urlsafe_b64encode((mark + position).encode()).decode().rstrip("=")
        answer = api.send("GET", f"{path}{'&' if filters else '?'}cursor={cursor}")
        assert answer.status_code in (200, 400), (position, answer.body)
        if answer.status_code == 400:
            assert json.loads(answer.body)["error"]["code"] == "bad_cursor"


def _paged() -> list[tuple[str, frozenset[str]]]:
    """The paths of all operations that take a cursor, with the parameters of their query, from the OpenAPI document."""
    paths = answer_schemas.document()["paths"]
    taken = {
        path: frozenset(each["name"] for each in methods["get"].get("parameters", ()) if each["in"] == "query")
        for path, methods in paths.items()
        if "get" in methods
    }
    return sorted((path, names) for path, names in taken.items() if "cursor" in names)


PAGED = _paged()
# What the paths of the lists name. Nothing has to exist: a cursor is read before the list, or the list is not found.
NAMED = {"ns": "demo", "app": "flights", "name": "s1"}
RUN = "demo.flights.s1.mf3k0p2q.0a1b2c3d4e5f60718293"
OF_KIND = {"datasets": "flights", "workflows": "clean", "dags": "whole", "messages": "hello"}


def test_the_lists_are_those_of_the_openapi_document() -> None:
    assert len(PAGED) == 34
    assert {resource_of("GET", path.partition("?")[0])[0] for path in LISTS} <= {path for path, _ in PAGED}


@pytest.mark.parametrize("path", [path for path, _ in PAGED])
def test_no_list_of_the_api_fails_for_a_forged_cursor(api: Api, path: str) -> None:
    kind = path.split("/{name}")[0].rpartition("/")[2]
    if kind == "dags":
        api.put(
            f"{APP}/dags/whole",
            {"trigger": {"type": "time", "expression": "@daily"}, "nodes": {"a": {"workflow": "notify"}}},
        )
    if kind == "messages":
        api.put(f"{APP}/messages/hello", {"due_time": "1d", "workflow": "notify"})
    if kind == "reports" or path.endswith("/reports"):
        s3, day = boto3.client("s3"), iso(ports().clock.now())[:10]
        with contextlib.suppress(s3.exceptions.BucketAlreadyExists, s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket="lake-bucket")
        s3.put_object(Bucket="lake-bucket", Key=f"history_report/json/day={day}/version=1/_SUCCESS", Body=b"")
    values = {**NAMED, "name": OF_KIND.get(kind, "s1"), "run_id": RUN, "job_id": RUN}
    if path.endswith("/periods"):
        values["name"] = "timed"
        api.put(f"{APP}/schedules/timed", {"workflow": "notify", "trigger": {"type": "time", "expression": "@daily"}})
    if "{fire_id}" in path:
        values["fire_id"] = large_fires.put(events=300)
    if path.endswith("/elements"):
        nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "clean", "each": {"of": "a"}}}
        edges, daily = [{"from": "a", "to": "b"}], {"type": "time", "expression": "@daily"}
        target = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
        api.put(f"{APP}/workflows/clean", {"target": target})
        api.put(f"{APP}/dags/mapped", {"trigger": daily, "nodes": nodes, "edges": edges, "enabled": True})
        begun = api.post(f"{APP}/dags/mapped/run")["run_id"]
        api.work()
        values |= {"name": "mapped", "run_id": begun, "node": "b"}
    filled = re.sub(r"{(\w+)}", lambda found: values.get(found[1], "x1"), path)
    resource, segments = resource_of("GET", filled)
    seen = set()
    for position in FORGED:
        mark = ids.digest(resource, sorted(segments.items()), [], position, length=MARK)
        cursor = base64.urlsafe_b64encode((mark + position).encode()).decode().rstrip("=")
        answer = api.send("GET", f"{filled}?cursor={cursor}")
        assert answer.status_code in (200, 400, 404), (position, answer.body)
        seen.add(answer.status_code)
        if answer.status_code == 400:
            assert json.loads(answer.body)["error"]["code"] == "bad_cursor", answer.body
    assert seen & {200, 400}, "the list must exist, so that its cursor is read"


def test_a_list_of_six_megabytes_is_answered_in_pages(api: Api) -> None:
    """Through the route and its document: the answer of a Lambda has at most 6 MB."""
    target = api.get(f"{APP}/workflows/notify")["target"]
    api.put(f"{NS}/apps/large")
    for number in range(70):
        name = f"{NS}/apps/large/workflows/w{number:02d}"
        api.put(name, {"target": target, "properties": {"text": '\\"' * 24_000}})
    found, cursor = [], ""
    while True:
        answer = api.send("GET", f"{NS}/apps/large/workflows?limit=500{cursor}")
        assert answer.status_code == 200
        assert len(json.dumps({"statusCode": 200, "headers": {}, "body": answer.body.decode()})) < 6_291_556
        page = json.loads(answer.body)
        found.append([item["name"] for item in page["items"]])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert len(found) > 1
    assert [name for names in found for name in names] == [f"demo.large.w{number:02d}" for number in range(70)]
