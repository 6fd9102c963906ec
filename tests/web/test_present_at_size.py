"""The routes of the console at 10,000 schedules, 6,500 waiting jobs, 1,000 active runs and 5,100 ended ones of one
schedule: calls, units, bytes and CPU time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.world import World
from tests.web import console_routes
from tests.web.console_routes import DAG_RUN, ELEMENTS, REQUESTS, Bounded
from tests.web.many_runs import dag_run, leave
from tests.web.many_schedules import LIMIT, LISTED, NS, QUEUED, RUNNING, WAKING, Counting, fill, names

MEGABYTE = 1_000_000  # API Gateway passes on ten, Lambda six
CPU_SECONDS = 10.0  # of any request: API Gateway waits 29 s; a second or less on a quiet machine


@pytest.fixture(scope="module")
def api() -> Iterator[Counting]:
    world = World(start_burst=500)  # EMR starts the runs of the DAG at once
    fill(world)
    leave(world)
    with pytest.MonkeyPatch.context() as patch:
        yield Counting(world, patch, large=True)


def test_a_page_of_2000_schedules_takes_fifty_calls(api: Counting) -> None:
    found = api.ask(f"{NS}/schedules?limit=2000")

    assert [item["name"] for item in found.body["items"]] == names()[:2_000]
    assert found.calls <= 50
    assert found.units <= 4_500, "one for each state and version, and the names"
    assert found.size < MEGABYTE


def test_a_search_among_10000_reads_only_what_fits(api: Counting) -> None:
    found = api.ask(f"{NS}/schedules?q=A7.S0042")

    assert [item["name"] for item in found.body["items"]] == ["demo.a7.s0042"]
    assert found.body["next_cursor"] is None
    assert found.calls <= 25


def test_the_palette_finds_one_of_10000_at_a_bounded_cost(api: Counting) -> None:
    found = api.ask(f"{NS}/schedules?q=a7.s0042&limit=50")

    assert [item["name"] for item in found.body["items"]] == ["demo.a7.s0042"]
    assert found.calls <= 25
    assert found.units <= 300, "all rows of the list take 23,000"


@pytest.mark.long
def test_a_filter_that_fits_few_goes_on_page_by_page(api: Counting) -> None:
    found = api.pages(f"{NS}/schedules?tag=team=a&app=a3&state=enabled")
    assert [item["name"] for page in found for item in page.body["items"]] == names()[3_000:4_000:2]
    assert api.pages(f"{NS}/schedules?tag=team=b")[-1].body["items"] == []
    assert len(api.pages(f"{NS}/schedules?tag=team=b")) <= 6


@pytest.mark.long
def test_each_of_6500_waiting_jobs_is_listed_once(api: Counting) -> None:
    found = api.pages(f"{NS}/jobs?limit=500")

    listed = [item["job_id"] for page in found for item in page.body["items"]]
    assert len(listed) == len(set(listed)) == LISTED + WAKING + QUEUED
    assert max(page.calls for page in found) <= 60
    assert max(page.units for page in found) <= 1_500
    assert max(page.size for page in found) < MEGABYTE


def test_a_queue_of_5000_is_listed_in_its_order(api: Counting) -> None:
    found = api.ask(f"{NS}/jobs?queued_in={LIMIT}&limit=100")

    assert [item["queue"]["position"] for item in found.body["items"]] == list(range(1, 101))
    assert {item["queue"]["waiting"] for item in found.body["items"]} == {QUEUED}
    assert found.calls <= 6


def test_what_jobs_wait_for_takes_two_rows_of_each_schedule(api: Counting) -> None:
    """Jobs in queues, or that wait for data, say it by their own rows. These 500 are of 500 schedules."""
    cursor = ""
    for _ in range(3):
        found = api.ask(f"{NS}/jobs?limit=500{cursor}")
        cursor = f"&cursor={found.body['next_cursor']}"

    assert {hold["kind"] for job in found.body["items"] for hold in job["waits_for"]} == {"condition"}
    assert len({job["schedule"] for job in found.body["items"]}) == WAKING
    assert found.calls <= 30
    assert found.units <= 1.6 * WAKING


def test_now_counts_all_and_reads_a_bounded_part(api: Counting) -> None:
    found = api.ask(f"{NS}/now")

    groups = {(group["kind"], group["name"]): group for group in found.body["waiting"]["groups"]}
    assert groups["limit", LIMIT]["count"] == QUEUED
    assert [job["queue"]["position"] for job in groups["limit", LIMIT]["jobs"]] == [1, 2, 3, 4, 5]
    assert found.body["waiting"]["count"] == QUEUED + LISTED + WAKING
    assert found.body["running"]["count"] == RUNNING
    assert len(found.body["running"]["runs"]) == 20
    assert found.body["overdue"]["count"] == 3
    assert not found.body["at_least"]
    assert found.calls <= 60
    assert found.units <= 1_800
    assert len(found.body["waiting"]["groups"]) == 100
    assert found.body["waiting"]["groups_left_out"] > LISTED - 100
    assert found.size < MEGABYTE / 5


def test_a_first_now_reads_few_rows_and_says_so(api: Counting) -> None:
    found = api.ask(f"{NS}/now?rows=100")

    assert found.body["at_least"]
    assert found.body["running"]["count"] == 100
    assert found.body["running"]["at_least"]
    assert found.calls <= 30
    assert found.units <= 300


def test_fires_of_a_day_are_bounded_and_say_so(api: Counting) -> None:
    found = api.ask(f"{NS}/fires")

    assert found.body["at_least"]
    due = [item["due_at"] for item in found.body["items"]]
    assert due == sorted(due)
    assert len(due) == 2_000
    complete = [at for at in due if at <= found.body["complete_to"]]
    assert len(complete) >= 1_600, "5,000 in 24 hours"
    assert found.calls <= 70
    assert found.size < MEGABYTE


def test_ten_fires_are_the_first_of_the_day(api: Counting) -> None:
    day, found = api.ask(f"{NS}/fires"), api.ask(f"{NS}/fires?limit=10")

    assert [item["due_at"] for item in found.body["items"]] == [item["due_at"] for item in day.body["items"][:10]]
    assert all(item in day.body["items"] for item in found.body["items"])
    assert found.body["at_least"]
    assert found.body["complete_to"] <= found.body["items"][-1]["due_at"]
    assert found.calls <= 12
    assert found.units <= 250


def test_a_glance_at_fifty_schedules_takes_few_calls(api: Counting) -> None:
    wanted = names()[5_000:5_050]

    found = api.ask(f"{NS}/glance", {"schedules": wanted})

    assert [item["schedule"] for item in found.body["items"]] == wanted
    assert found.calls <= 8 * len(wanted)
    assert api.ask(f"{NS}/glance", {"schedules": wanted}).calls <= 310, "an index has no old part of these"
    assert found.size < MEGABYTE / 10


def test_a_glance_reads_a_limit_once_for_all_who_wait(api: Counting) -> None:
    """Each of these 50 has run, and has a job that needs permits of the same two limits."""
    wanted = names()[:50]
    api.ask(f"{NS}/glance", {"schedules": wanted})

    found = api.ask(f"{NS}/glance", {"schedules": wanted})

    assert all(item["waiting"] and item["last"] for item in found.body["items"])
    assert found.calls <= 8 * len(wanted) + 15


def test_the_limits_of_a_namespace_take_few_calls(api: Counting) -> None:
    every, one = api.ask(f"{NS}/limits"), api.ask(f"{NS}/limits?name={LIMIT}")

    assert [item["name"] for item in every.body["items"]] == ["policy:demo.calm", "pool:demo.big", LIMIT]
    [item] = one.body["items"]
    assert len(item["waiters"]) == 100
    assert item["at_least"]
    assert (every.calls, one.calls) <= (12, 30)


@pytest.mark.parametrize("wanted", REQUESTS, ids=lambda wanted: wanted.name)
def test_each_request_of_the_console_is_bounded(api: Counting, wanted: Bounded) -> None:
    found = api.ask(wanted.path.replace(DAG_RUN, dag_run(api.world)), wanted.body)

    assert found.calls <= wanted.calls
    assert found.units <= wanted.units
    assert found.size <= wanted.kb * 1_000
    assert found.seconds <= CPU_SECONDS
    assert not wanted.cut or found.body[wanted.cut], "the answer is a part, and says so"


def test_every_route_that_the_page_reads_has_a_bound() -> None:
    assert console_routes.of_page() - {wanted.route for wanted in REQUESTS} == {ELEMENTS}
