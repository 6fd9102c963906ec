"""Runs, jobs, records and dead letters are filtered alike: by app, workflow, target, tag, text, time and deadline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from chalicelib.core.instants import DAY, iso
from chalicelib.core.jobs.holds import HoldKind
from chalicelib.core.states import JobState
from chalicelib.flow.views import lists
from chalicelib.web import filters, table
from chalicelib.wiring import ports
from sluice import states
from sluice.cli import completion
from sluice.cli import filters as options
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in

ASKING = [{"type": "approval", "people": ["arn:aws:iam::123456789012:user/ada"]}]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """Three runs, three waiting jobs, and three records, each of another schedule and app, workflow, target or tag."""
    with installation() as made:
        settle_in(made)
        target = made.get(f"{APP}/workflows/notify")["target"]
        made.put(f"{NS}/apps/other", {"workflows": {"tell": {"target": target}}, "tags": {"tier": "gold"}})
        made.put(f"{APP}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
        hasty = {"start_within": "1ms", "since": "nominal"}
        for place, name, workflow, more in (
            (APP, "send", "notify", {"tags": {"team": "a"}}),
            (APP, "pull", "pulled", {"tags": {"team": "b"}, "deadline": hasty}),
            (f"{NS}/apps/other", "tell", "tell", {}),
            (APP, "ask", "notify", {"constraints": ASKING, "tags": {"team": "a"}}),
            (APP, "late", "pulled", {"constraints": ASKING, "tags": {"team": "b"}, "deadline": hasty}),
            (f"{NS}/apps/other", "ask", "tell", {"constraints": ASKING}),
        ):
            made.put(f"{place}/schedules/{name}", {"workflow": workflow, "trigger": WEEKDAYS, "enabled": True, **more})
            answer = made.post(f"{place}/schedules/{name}/run", {}, idempotency_key=f"run-{place}-{name}")
            if name in ("ask", "late"):
                made.work()
                dropped = made.post(f"{place}/schedules/{name}/run", {}, idempotency_key=f"drop-{place}-{name}")
                made.work()
                made.post(f"/v1/jobs/{dropped['job_id']}/cancel")
            assert answer["job_id"]
        made.work()
        yield made


def found(api: Api, path: str, query: str = "") -> set[str]:
    """The schedules of the items of a list, by app and name."""
    names: set[str] = set()
    cursor = ""
    while True:
        page = api.get(f"{path}?{query}{cursor}")
        names |= {item["schedule"].partition(".")[2] for item in page["items"]}
        if page["next_cursor"] is None:
            return names
        cursor = f"&cursor={page['next_cursor']}"


RUNS = {"flights.send", "flights.pull", "other.tell"}
JOBS = {"flights.ask", "flights.late", "other.ask"}


@pytest.mark.parametrize(
    ("query", "runs", "jobs"),
    [
        ("", RUNS, JOBS),
        ("app=flights", {"flights.send", "flights.pull"}, {"flights.ask", "flights.late"}),
        ("app=nothing", set(), set()),
        ("workflow=flights.notify", {"flights.send"}, {"flights.ask"}),
        ("workflow=notify&app=flights", {"flights.send"}, {"flights.ask"}),
        ("target=worker", {"flights.pull"}, {"flights.late"}),
        ("target=sns", set(), set()),
        ("tag=team%3Da", {"flights.send"}, {"flights.ask"}),
        ("tag=team", {"flights.send", "flights.pull"}, {"flights.ask", "flights.late"}),
        ("tag=tier%3Dgold", {"other.tell"}, {"other.ask"}),
        ("q=OTHER.", {"other.tell"}, {"other.ask"}),
        ("late=true", {"flights.pull"}, {"flights.late"}),
        ("from=2000-01-01T00:00:00Z", RUNS, JOBS),
        ("to=2000-01-01T00:00:00Z", set(), set()),
        ("tag=team&target=sqs", {"flights.send"}, {"flights.ask"}),
    ],
)
def test_runs_and_jobs_are_filtered_by_one_meaning(api: Api, query: str, runs: set[str], jobs: set[str]) -> None:
    assert found(api, f"{NS}/runs", query) == runs
    assert found(api, f"{NS}/jobs", query) == jobs
    if "late" not in query:  # what never ran has no deadline
        assert found(api, f"{NS}/records", query) == jobs


def present(api: Api, query: str) -> tuple[set[str], set[str], int]:
    """The schedules of the jobs of all groups, those that wait for an approval, and how many jobs wait."""
    view = api.get(f"{NS}/now?{query}")
    jobs = [job["schedule"] for group in view["waiting"]["groups"] for job in group["jobs"]]
    asked = [each["schedule"] for each in view["approvals"]["schedules"]]
    return ({name.partition(".")[2] for name in jobs}, {name.partition(".")[2] for name in asked},
            view["waiting"]["count"])  # fmt: skip


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("", JOBS),
        ("app=flights", {"flights.ask", "flights.late"}),
        ("app=nothing", set()),
        ("workflow=flights.notify", {"flights.ask"}),
        ("target=worker", {"flights.late"}),
        ("tag=team%3Da", {"flights.ask"}),
        ("tag=tier", {"other.ask"}),
        ("q=OTHER.", {"other.ask"}),
        ("late=true", {"flights.late"}),
        ("late=true&tag=team%3Da", set()),
    ],
)
def test_the_present_is_filtered_like_the_lists(api: Api, query: str, jobs: set[str]) -> None:
    assert present(api, query) == (jobs, jobs, len(jobs))
    overdue = api.get(f"{NS}/now?{query}")["overdue"]["count"]
    assert overdue == 0, "what waits for an approval is not overdue"


def test_the_present_of_an_unknown_filter_is_refused(api: Api) -> None:
    assert "workflow" in api.refused(400, "GET", f"{NS}/now?workflow=notify")["field"]
    assert api.refused(400, "GET", f"{NS}/now?state=RUNNING")["field"] == "state"


def test_state_and_kind_are_those_of_each_list(api: Api) -> None:
    assert found(api, f"{NS}/runs", "state=SUCCEEDED") == {"flights.send", "other.tell"}
    assert found(api, f"{NS}/jobs", "state=PENDING_TRIGGER") == set()
    assert found(api, f"{NS}/records", "kind=DROPPED") == JOBS
    assert found(api, f"{NS}/records", "kind=EXPIRED") == set()
    assert "state" in api.refused(400, "GET", f"{NS}/runs?state=DONE")["field"]


def test_the_lists_of_one_schedule_and_workflow_are_filtered(api: Api) -> None:
    send = f"{APP}/schedules/send"
    assert found(api, f"{send}/runs", "q=send&target=sqs&workflow=notify") == {"flights.send"}
    for query in ("q=nothing", "target=sns", "workflow=pulled", "late=true", "to=2000-01-01T00:00:00Z"):
        assert found(api, f"{send}/runs", query) == set()
    assert found(api, f"{APP}/workflows/notify/runs", "tag=team&app=flights") == {"flights.send"}
    assert found(api, f"{APP}/workflows/notify/runs", "app=other") == set()
    assert found(api, f"{APP}/schedules/late/jobs", "late=true") == {"flights.late"}
    assert found(api, f"{APP}/schedules/ask/jobs", "late=true") == set()
    assert found(api, f"{APP}/schedules/ask/records", "kind=DROPPED&q=ask") == {"flights.ask"}
    assert found(api, f"{APP}/schedules/ask/records", "kind=LATE") == set()


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("workflow=notify", "workflow", "add app=..."),
        ("target=queue", "target", "one of emr_serverless"),
        ("tag=%3Da", "tag", "a tag such as team=a"),
        ("late=yes", "late", "true or false"),
        ("from=yesterday", "from", "RFC 3339"),
        ("from=2026-03-02T00:00:00Z&to=2026-03-02T00:00:00Z", "to", "an instant after from"),
        ("day=2026-03-02&to=2026-03-02T00:00:00Z", "to", "a day, or from and to"),
        ("app=a.b", "app", "a name"),
    ],
)
def test_a_wrong_filter_is_refused_with_what_to_do(api: Api, query: str, field: str, said: str) -> None:
    error = api.refused(400, "GET", f"{NS}/runs?{query}")
    assert error["field"] == field
    assert said in f"{error['message']} {error['hint']}"


def test_a_span_of_many_days_is_read_some_days_at_a_time(api: Api) -> None:
    """The runs are of today. So they are on the first page, and each later page is empty, but the last one ends."""
    begin, pages = iso(ports().clock.now() - 60 * DAY), 0
    names: set[str] = set()
    cursor = ""
    while True:
        page = api.get(f"{NS}/runs?from={begin}{cursor}")
        names, pages = names | {item["schedule"].partition(".")[2] for item in page["items"]}, pages + 1
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert names == RUNS
    assert 61 / lists.MAX_DAYS > pages > 1, "a request reads some fortnights, not all"


def test_dead_letters_have_the_filters_of_runs(api: Api) -> None:
    for query in ("app=flights", "workflow=flights.notify", "target=sqs", "tag=team", "q=x", "to=2000-01-01T00:00:00Z"):
        assert found(api, f"{NS}/dead-letters", query) == set()


def test_the_command_line_knows_the_values_of_the_service() -> None:
    assert options.TARGETS == filters.TARGET_TYPES
    assert get_args(HoldKind) == states.HOLDS
    assert get_args(JobState) == completion.JOB_STATES


def test_each_list_of_work_has_the_common_filters() -> None:
    lists_of: dict[str, Any] = {route.path: route.query for route in table.ROUTES if route.paged}
    for path in ("/runs", "/jobs", "/records", "/dead-letters"):
        assert {*table.OF_ANY, "from", "to"} <= set(lists_of[table.NS + path])
