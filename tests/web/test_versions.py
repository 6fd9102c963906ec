"""Each version of a schedule records its changes, its author and its instant; and what an update keeps (L6, L7)."""

from typing import Any

import pytest

from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.wrong import ONE, refused, schedule

VERSIONS = f"{ONE}/versions"
PARTITIONS = f"{NS}/datasets/flights/partitions"
TWO = {"type": "partition", "dataset": "flights", "count": 2}


def changes(api: Api) -> list[list[str]]:
    """The changes of each version, the oldest first."""
    return [item["changes"] for item in reversed(api.get(VERSIONS)["items"])]


def test_l7_each_version_has_its_changes_newest_first(api: Api) -> None:
    one_at_a_time = {"type": "concurrency", "max": 1}
    api.schedule("nightly", workflow="clean", constraints=[one_at_a_time], tags={"team": "a"})
    api.schedule("nightly", workflow="clean", constraints=[one_at_a_time | {"max": 2}], tags={"team": "b"})
    api.schedule("nightly", trigger=TWO, properties={"deep": {"n": [1, 2]}})
    api.schedule("nightly", trigger=TWO, properties={"deep": {"n": [1, True]}}, timeout="never")

    assert changes(api) == [
        ["created"],
        ["constraints.0.max: 1 -> 2", "tags.team: 'a' -> 'b'"],
        [
            "constraints.0: removed {group: null, max: 2, on_unmet: 'abort', type: 'concurrency'}",
            "properties.deep: added {n: [1, 2]}",
            "tags.team: removed 'b'",
            "trigger.count: added 2",
            "trigger.dataset: added 'demo.flights'",
            "trigger.expression: removed '0 5 * * mon-fri'",
            "trigger.type: 'time' -> 'partition'",
            "trigger.zone: removed 'UTC'",
            "workflow: 'demo.flights.clean' -> 'demo.flights.notify'",
        ],
        ["properties.deep.n.1: 2 -> true", "timeout: {after: '1d', then: 'abort'} -> 'never'"],
    ]


def test_l7_a_version_has_its_definition_its_author_and_its_time(api: Api) -> None:
    api.schedule("nightly", priority=1)
    view = api.schedule("nightly", priority=2, enabled=True)
    newest, oldest = api.get(VERSIONS)["items"]
    assert set(newest) == {"version", "created_at", "created_by", "changes", "definition"}
    assert (newest["version"], oldest["version"]) == (2, 1)
    assert (newest["created_at"], newest["created_by"]) == (view["updated_at"], view["updated_by"])
    assert (newest["definition"]["priority"], oldest["definition"]["priority"]) == (2, 1)
    assert newest["changes"] == ["priority: 1 -> 2"]
    assert {"enabled", "on_update"} & set(newest["definition"]) == set()


def test_l7_action_that_changes_no_definition_makes_no_version(api: Api) -> None:
    api.schedule("nightly", enabled=True)
    first = api.get(VERSIONS)
    for action in ("pause", "resume", "disable", "enable"):
        api.post(f"{ONE}/{action}")
    api.schedule("nightly", on_update="carry")
    assert api.get(VERSIONS) == first


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_l7_the_last_version_of_a_page_is_compared_across_pages(api: Api, limit: int) -> None:
    for priority in range(5):
        api.schedule("nightly", priority=priority)
    pages = [api.get(f"{VERSIONS}?limit={limit}")]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(api.get(f"{VERSIONS}?limit={limit}&cursor={cursor}"))
    answer = [item["changes"] for page in pages for item in page["items"]]
    assert answer == [[f"priority: {old} -> {old + 1}"] for old in (3, 2, 1, 0)] + [["created"]]


def test_l7_versions_survive_schedule_and_go_on_in_its_successor(api: Api) -> None:
    api.schedule("nightly", priority=1)
    api.delete(ONE)
    assert changes(api) == [["created"]]
    api.schedule("nightly", priority=2)
    assert [item["version"] for item in api.get(VERSIONS)["items"]] == [2, 1]
    api.refused(404, "GET", f"{APP}/schedules/never/versions")


def test_l7_a_long_value_is_truncated_in_a_change_only(api: Api) -> None:
    api.schedule("nightly", description="x" * 1_000)
    api.schedule("nightly", description="y" * 1_000)
    newest = api.get(VERSIONS)["items"][0]
    [change] = newest["changes"]
    assert change.startswith("description: 'xxx")
    assert len(change) < 200
    assert newest["definition"]["description"] == "y" * 1_000


# -- what an update keeps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("on_update", "kept"), [("carry", [{"0": 1}]), ("drop", []), (None, [{"0": 1}])])
def test_l6_progress_is_carried_unless_the_update_drops_it(api: Api, on_update: str | None, kept: list[Any]) -> None:
    first = api.schedule("nightly", trigger=TWO, enabled=True)
    api.post(PARTITIONS, {"partition": {"year": 2013, "month": 1, "day": 1}})

    update = {"on_update": on_update} if on_update else {}
    second = api.schedule("nightly", trigger=TWO, properties={"new": True}, **update)

    assert [job["progress"] for job in api.get(f"{ONE}/jobs")["items"]] == kept
    assert (second["generation"] == first["generation"]) == bool(kept)
    assert len(api.get(f"{ONE}/records")["items"]) == (0 if kept else 1)
    api.post(PARTITIONS, {"partition": {"year": 2013, "month": 1, "day": 2}})
    api.work()
    assert [run["properties"] for run in api.get(f"{ONE}/runs")["items"]] == ([{"new": True}] if kept else [])


def test_l6_progress_for_another_trigger_is_dropped_on_record(api: Api) -> None:
    api.schedule("nightly", trigger=TWO, enabled=True)
    api.post(PARTITIONS, {"partition": {"year": 2013, "month": 1, "day": 1}})
    api.schedule("nightly", trigger=TWO | {"count": 3}, on_update="carry")
    assert api.get(f"{ONE}/jobs")["items"] == []
    assert [record["kind"] for record in api.get(f"{ONE}/records")["items"]] == ["DROPPED"]


@pytest.mark.parametrize("update", ["keep", "", None, True, ["carry"]])
def test_l6_on_update_accepts_carry_and_drop_only(standing: Api, update: Any) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(trigger=WEEKDAYS, on_update=update))
    assert (error["code"], error["field"]) == ("invalid", "on_update")
    assert error["message"] == f"expected 'drop' or 'carry', got {update!r}"


def test_l25_a_put_says_what_it_does_to_what_waits(api: Api) -> None:
    api.schedule("nightly", trigger=TWO, enabled=True)
    api.post(PARTITIONS, {"partition": {"year": 2013, "month": 1, "day": 1}})
    [job] = api.get(f"{ONE}/jobs")["items"]
    before = api.get(ONE)
    kept = schedule(trigger=TWO, properties={"new": True})
    assert api.put(f"{ONE}?dry_run=true", kept)["effect"]["text"] == "goes on; drops nothing"

    other = schedule(trigger=TWO | {"count": 3}, properties={"new": True})
    would = api.put(f"{ONE}?dry_run=true", other)
    assert (would["effect"]["code"], would["effect"]["dropped"]) == ("begins_again", 1)
    assert [each["job_id"] for each in would["effect"]["jobs"]] == [job["job_id"]]
    assert (would["version"], would["properties"]) == (before["version"] + 1, {"new": True})
    assert api.get(ONE) == before and len(api.get(f"{ONE}/jobs")["items"]) == 1, "a dry run stores nothing"

    did = api.put(ONE, other)
    changing = {"generation", "updated_at"}
    assert {field: did[field] for field in did if field not in changing} == {
        field: would[field] for field in would if field not in changing
    }
    assert "effect" not in api.put(ONE, other), "the same again"


def test_l25_a_dry_run_of_a_put_refuses_what_the_put_refuses(standing: Api) -> None:
    for wrong in (
        schedule(trigger=WEEKDAYS, workflow="nothing"),
        schedule(trigger={"type": "time", "expression": "x"}),
    ):
        dry = refused(standing, 400, "PUT", f"{ONE}?dry_run=true", wrong)
        assert dry == refused(standing, 400, "PUT", ONE, wrong)
