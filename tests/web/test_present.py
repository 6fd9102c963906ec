"""The routes about many schedules at once, in a world in memory: what they say of jobs, runs, fires and limits."""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.instants import iso, parse_instant
from chalicelib.flow.views import lists
from chalicelib.wiring import VERSION
from tests.support.clock import NOON
from tests.support.schedules import after, at, at_most, partitions
from tests.support.world import World, day, flights
from tests.web.many_schedules import NS, Counting

BY_LEAD = {"type": "approval", "role": "Lead"}
AT_NIGHT = {"type": "time_window", "start": "22:00", "end": "06:00", "on_unmet": "wait"}
OF_CLEAN = "workflow:demo.flights.clean"


@pytest.fixture
def api() -> Iterator[Counting]:
    """Jobs in each of the places where a job waits: for data, a person, the clock, a slot, and on pause."""
    world = World()
    slow = after("clean", "join", deadline={"start_within": "10m"}, constraints=[AT_NIGHT])
    world.deploy(
        flights(
            {
                "data": partitions(3, "notify", timeout="never"),
                "timed": partitions(3, "notify", timeout={"after": "2h"}),
                "asked": at("0 5 * * *", constraints=[BY_LEAD], tags={"team": "a"}),
                "one": partitions(1, "clean", timeout="never", **at_most(1)),
                "held": partitions(1, "notify", timeout="never"),
                "night": slow,
                "report": at("30 */6 * * *", "notify", priority=7, tags={"team": "b"}),
            }
        )
    )
    world.pause("held")
    for number in range(1, 4):
        world.run_now("one", f"r{number}")
    world.run_now("asked", "r1")
    world.settle()
    world.upload(day(1))
    world.settle()
    with pytest.MonkeyPatch.context() as patch:
        yield Counting(world, patch)


def groups(api: Counting) -> dict[tuple[str, str], Any]:
    return {(group["kind"], group["name"]): group for group in api.get(f"{NS}/now")["waiting"]["groups"]}


def test_waiting_jobs_are_counted_as_they_are_listed(api: Counting) -> None:
    jobs = api.get(f"{NS}/jobs?limit=100")["items"]
    assert {job["state"] for job in jobs} and lists.count(api.world.ports, "demo", 1_000) == len(jobs)
    assert lists.count(api.world.ports, "demo", 4) == 4
    assert lists.count(api.world.ports, "dem", 1_000) == 0


def test_every_waiting_job_is_in_the_list_once(api: Counting) -> None:
    schedules = [item["name"] for item in api.get(f"{NS}/schedules")["items"]]
    of_each = [api.get(f"{NS}/apps/flights/schedules/{short(name)}/jobs")["items"] for name in schedules]
    one_by_one = [job["job_id"] for jobs in of_each for job in jobs]

    pages = api.pages(f"{NS}/jobs?limit=2")

    assert sorted(job["job_id"] for page in pages for job in page.body["items"]) == sorted(one_by_one)
    assert len(one_by_one) == 7


def short(name: str) -> str:
    return name.rpartition(".")[2]


def test_jobs_are_filtered_by_state_kind_and_queue(api: Counting) -> None:
    def found(wanted: str) -> list[str]:
        return [short(job["schedule"]) for job in api.get(f"{NS}/jobs?{wanted}")["items"]]

    assert sorted(found("state=PENDING_TRIGGER")) == ["data", "timed"]
    assert sorted(found("kind=run_now")) == ["asked", "one", "one"]
    queue = api.get(f"{NS}/jobs?queued_in={OF_CLEAN}")["items"]
    assert [(job["schedule"], job["queue"]["position"]) for job in queue] == [
        ("demo.flights.one", number) for number in (1, 2, 3)
    ]


def test_now_groups_jobs_by_what_holds_them(api: Counting) -> None:
    found = groups(api)

    assert {key: group["count"] for key, group in found.items()} == {
        ("data", "demo.flights.data"): 1,
        ("data", "demo.flights.timed"): 1,
        ("approval", "approval"): 1,
        ("limit", OF_CLEAN): 3,
        ("pause", "demo.flights.held"): 1,
    }
    assert found["data", "demo.flights.timed"]["changes_at"] == iso(NOON + 7_200_000)
    assert found["data", "demo.flights.data"]["changes_at"] is None


def test_each_job_says_what_it_waits_for(api: Counting) -> None:
    found = api.get(f"{NS}/jobs")["items"]
    kinds = {short(job["schedule"]): [hold["kind"] for hold in job["waits_for"]] for job in found}
    of_groups = {job["job_id"]: job["waits_for"] for group in groups(api).values() for job in group["jobs"]}

    assert kinds == {
        "data": ["data"],
        "timed": ["data"],
        "asked": ["approval"],
        "one": ["limit"],
        "held": ["pause"],
    }
    for job in found:
        path = f"{NS}/apps/flights/schedules/{short(job['schedule'])}/jobs"
        alone = api.get(f"/v1/jobs/{job['job_id']}")
        assert job["waits_for"] == alone["waits_for"] == of_groups[job["job_id"]]
        assert job["waits_for"] in [each["waits_for"] for each in api.get(path)["items"]]


def test_a_waiting_job_says_where_its_priority_comes_from(api: Counting) -> None:
    """The urgent schedule waits for the workflow in whose queue the jobs stand."""
    api.world.put("urgent", after("clean", "notify", priority=9))
    api.world.tick()
    api.world.settle()

    jobs = api.get(f"{NS}/jobs?queued_in={OF_CLEAN}")["items"]

    assert {job["inherited_priority"] for job in jobs} == {"priority 9, inherited from demo.flights.urgent"}


def test_a_job_that_waits_for_the_night_and_a_person_names_both(api: Counting) -> None:
    api.world.put("both", at("0 5 * * *", constraints=[AT_NIGHT, BY_LEAD]))
    api.world.run_now("both", "r1")
    api.world.settle()

    [job] = [job for job in api.get(f"{NS}/jobs")["items"] if short(job["schedule"]) == "both"]
    now = api.get(f"{NS}/now")

    assert [(hold["kind"], hold["name"]) for hold in job["waits_for"]] == [
        ("window", "time_window"),
        ("approval", "approval"),
    ]
    assert [hold["of"] for hold in job["waits_for"]] == ["between 22:00 and 06:00 in UTC", "approved by a Lead"]
    assert job["waits_for"][0]["changes_at"] == iso(NOON + 10 * 3_600_000)
    assert sorted(short(of["schedule"]) for of in now["approvals"]["schedules"]) == ["asked", "both"]


def test_now_says_the_same_reasons_as_why(api: Counting) -> None:
    for group in groups(api).values():
        job = group["jobs"][0]
        why = api.get(f"/v1/jobs/{job['job_id']}/why")["why"]
        assert why == job["reason"]
        assert why.startswith(group["why"])


def test_now_shows_approvals_runs_and_overdue_work(api: Counting) -> None:
    api.world.finish()
    api.world.settle()
    api.world.pass_by("11m")

    found = api.get(f"{NS}/now")

    [asked] = found["approvals"]["schedules"]
    assert (asked["schedule"], asked["count"], asked["late"]) == ("demo.flights.asked", 1, 0)
    assert [job["schedule"] for job in asked["jobs"]] == ["demo.flights.asked"]
    assert [run["schedule"] for run in found["running"]["runs"]] == ["demo.flights.one"]
    [late] = found["overdue"]["items"]
    assert (late["kind"], late["schedule"]) == ("job", "demo.flights.night")
    assert late["why"].startswith(f"not started by {iso(NOON + 600_000)}: ")
    assert (late["count"], late["goes_on_at"]) == (1, iso(NOON + 10 * 3_600_000))
    assert (found["overdue"]["count"], found["overdue"]["going_on"]) == (1, 1)


def test_late_approvals_and_late_jobs_count_once_each(api: Counting) -> None:
    """Nine jobs wait for a person, past their deadline; one waits for its window, and three for a slot."""
    api.world.put("sheets", at("0 5 * * *", constraints=[BY_LEAD], deadline={"start_within": "5m"}))
    for number in range(9):
        api.world.run_now("sheets", f"s{number}")
    api.world.put("both", at("0 5 * * *", constraints=[AT_NIGHT, BY_LEAD], deadline={"start_within": "5m"}))
    api.world.run_now("both", "b")
    api.world.put("slots", partitions(1, "clean", deadline={"start_within": "5m"}, **at_most(1)))
    for number in range(3):
        api.world.run_now("slots", f"q{number}")
    api.world.settle()
    api.world.pass_by("11m")

    found = api.get(f"{NS}/now")

    asked = {short(of["schedule"]): (of["count"], of["late"]) for of in found["approvals"]["schedules"]}
    assert asked == {"asked": (1, 0), "sheets": (9, 9), "both": (1, 1)}
    assert [len(of["jobs"]) for of in found["approvals"]["schedules"]] == [1, 5, 1]
    late = {short(item["schedule"]): (item["kind"], item["count"]) for item in found["overdue"]["items"]}
    assert late == {"slots": ("job", 3)}
    assert (found["overdue"]["count"], found["overdue"]["going_on"]) == (3, 0)
    assert groups(api)["window", "time_window"]["changes_at"] == iso(NOON + 10 * 3_600_000)


def test_now_names_schedules_that_failures_have_paused(api: Counting) -> None:
    api.world.put("frail", {**partitions(1, "join"), "pause_after_failures": 1})
    api.world.run_now("frail")
    api.world.settle()
    api.world.finish("FAILED", "disk full")
    api.world.settle()

    [paused] = api.get(f"{NS}/now")["paused"]["schedules"]

    assert (paused["schedule"], paused["state"]) == ("demo.flights.frail", "hold")
    assert paused["reason"].startswith("1 run failed in a row")
    api.world.resume("frail")
    assert api.get(f"{NS}/now")["paused"] == {"count": 0, "at_least": False, "schedules": []}


def test_fires_are_those_of_every_preview_in_order(api: Counting) -> None:
    api.world.put("often", {**at("* * * * *", "notify"), "enabled": True})
    api.world.tick()  # the fires of the next two minutes are prepared, and timers have passed them

    end = iso(NOON + 24 * 3_600_000)
    found = api.get(f"{NS}/fires?to={end}")

    expected = sorted(
        (at, name)
        for name, count in (("asked", 3), ("report", 6), ("often", 1_440))
        for at in api.get(f"{NS}/apps/flights/schedules/{name}/preview?count={min(count, 1_000)}")["items"]
        if at <= end
    )
    listed = [(item["nominal_at"], short(item["schedule"])) for item in found["items"]]
    assert [fire for fire in sorted(listed) if fire <= expected[900]] == expected[:901]
    assert (found["at_least"], found["complete_to"]) == (False, end)


def test_the_first_fires_end_where_a_limit_says(api: Counting) -> None:
    api.world.put("often", {**at("* * * * *", "notify"), "enabled": True})
    api.world.tick()
    every = api.get(f"{NS}/fires")["items"]

    for limit in (1, 3, 20):
        found = api.get(f"{NS}/fires?limit={limit}")
        assert found["items"] == every[:limit]
        assert (found["at_least"], found["complete_to"]) == (True, every[limit]["due_at"])


def test_a_skipped_fire_says_so(api: Counting) -> None:
    from chalicelib.flow.schedules import pauses

    nominal = parse_instant(api.get(f"{NS}/fires")["items"][0]["nominal_at"])
    pauses.skip(api.ports, "demo.flights.report", nominal, "ada", True)

    skipped = [(item["schedule"], item["skipped"]) for item in api.get(f"{NS}/fires")["items"][:2]]

    assert skipped == [("demo.flights.report", True), ("demo.flights.report", False)]


def test_a_glance_says_what_why_says(api: Counting) -> None:
    wanted = ["flights.one", "demo.flights.data", "flights.none", "flights.report", "flights.held"]

    found = api.ask(f"{NS}/glance", {"schedules": wanted}).body

    assert found["gone"] == ["demo.flights.none"]
    for item in found["items"]:
        why = api.get(f"{NS}/apps/flights/schedules/{short(item['schedule'])}/why")
        assert {name: item[name] for name in ("why", "state", "next_fire")} == {
            name: why[name] for name in ("why", "state", "next_fire")
        }
        assert item["waiting"] == len(why["jobs"])
    assert [run["state"] for run in found["items"][0]["last"]] == ["STARTING"]


def test_schedules_are_listed_in_short_by_name(api: Counting) -> None:
    pages = api.pages(f"{NS}/schedules?limit=2")
    rows = {short(row["name"]): row for page in pages for row in page.body["items"]}

    assert list(rows) == sorted(rows) == ["asked", "data", "held", "night", "one", "report", "timed"]
    assert rows["report"]["triggered_by"] == "at 00:30, 06:30, 12:30 and 18:30 every day, UTC"
    assert (rows["report"]["priority"], rows["report"]["tags"]) == (7, {"team": "b"})
    assert (rows["held"]["state"], rows["held"]["enabled"]) == ("hold", False)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("tag=team=a", ["asked"]),
        ("tag=team", ["asked", "report"]),
        ("workflow=flights.join", ["night"]),
        ("app=flights&workflow=join", ["night"]),
        ("state=hold", ["held"]),
        ("q=GHTS.T", ["timed"]),
        ("q=nothing", []),
    ],
)
def test_the_schedules_that_fit_are_listed(api: Counting, wanted: str, names: list[str]) -> None:
    assert [short(row["name"]) for row in api.get(f"{NS}/schedules?{wanted}")["items"]] == names


def test_a_limit_shows_its_holders_and_its_queue(api: Counting) -> None:
    [limit] = api.get(f"{NS}/limits?name={OF_CLEAN}")["items"]

    assert (limit["in_use"], limit["maximum"], limit["unit"], limit["waiting"]) == (1, 1, "runs", 3)
    assert [holder["schedule"] for holder in limit["holders"]] == ["demo.flights.one"]
    assert [waiter["position"] for waiter in limit["waiters"]] == [1, 2, 3]
    own, starts = api.get(f"{NS}/limits?name=schedule:flights.one")["items"]
    assert own == limit
    assert (starts["name"], starts["unit"], starts["in_use"]) == ("emr:starts", "starts", None)
    [listed] = api.get(f"{NS}/limits")["items"]
    assert (listed["name"], listed["waiting"], listed["holders"]) == (OF_CLEAN, 3, None)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("GET", "/v1/namespaces/gone/now", None, 404, None),
        ("GET", f"{NS}/schedules?app=gone", None, 404, None),
        ("GET", f"{NS}/schedules?state=asleep", None, 400, "state"),
        ("GET", f"{NS}/schedules?workflow=clean", None, 400, "workflow"),
        ("GET", f"{NS}/schedules?limit=2001", None, 400, "limit"),
        ("GET", f"{NS}/schedules?cursor=x", None, 400, "cursor"),
        ("GET", f"{NS}/jobs?kind=nap", None, 400, "kind"),
        ("GET", f"{NS}/fires?from=2020-01-01T00:00:00Z", None, 400, "from"),
        ("GET", f"{NS}/fires?to=2030-01-01T00:00:00Z", None, 400, "to"),
        ("GET", f"{NS}/fires?from=9999-12-31T23:59:59Z", None, 400, "from"),
        ("GET", f"{NS}/fires?limit=2001", None, 400, "limit"),
        ("GET", f"{NS}/limits?name=pool:other.x", None, 400, "name"),
        ("GET", f"{NS}/limits?name=schedule:flights.gone", None, 404, None),
        ("POST", f"{NS}/glance", {"schedules": []}, 400, "schedules"),
        ("POST", f"{NS}/glance", {"schedules": ["a.b"] * 51}, 400, "schedules"),
        ("POST", f"{NS}/glance", {"schedules": ["other.flights.x"]}, 400, "schedules.0"),
    ],
)
def test_a_wrong_request_about_many_is_refused(
    api: Counting, method: str, path: str, body: Any, status: int, field: str | None
) -> None:
    content = json.dumps(body).encode() if body is not None else b""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
        answer = api.client.http.request(method, path, headers={}, body=content)

    error = json.loads(answer.body)["error"]
    assert answer.status_code == status, error
    assert field in (None, error["field"])
