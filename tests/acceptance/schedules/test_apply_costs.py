"""A deployment lists what it would drop, end or begin again, and then does exactly that (L25)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.instants import DAY, MINUTE
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.dags import runs
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.flow.schedules.costs import Costs
from tests.acceptance.words import Document, concurrency, day, kinds, on, partition, time, to_queue
from tests.support.backfills import begin, seen
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

PAIR = on(partition(count=2), by=["day"])
DROP = {"on_update": "drop"}


def would(world: World, document: Document, **how: Any) -> dict[str, Any]:
    """The effects of a dry run, by the short names of the parts."""
    _, _, effects = deploy.dry_run(world.ports, "demo", "flights", App.model_validate(document), **how)
    return {name.partition(" demo.flights.")[2]: effect for name, effect in effects.items()}


def apply(world: World, document: Document, **how: Any) -> dict[str, Any]:
    """The same effects of the deployment itself, which must be those of a dry run before it."""
    expected = would(world, document, **how)
    world.clock.pass_by("1s")
    _, effects = deploy.deploy_and_say(world.ports, "demo", "flights", App.model_validate(document), "ann", **how)
    done = {name.partition(" demo.flights.")[2]: effect for name, effect in effects.items()}
    assert done == expected
    return done


def gathered(world: World, document: Document, *numbers: int) -> World:
    world.deploy(flights({"pair": document}))
    for number in numbers:
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1s")
    return world


def test_l25_a_changed_limit_drops_no_half_of_a_day(world: World) -> None:
    gathered(world, PAIR, 1, 2, 3)
    told = apply(world, flights({"pair": PAIR | {"constraints": [concurrency(4)]}}))
    assert told["pair"]["text"] == "goes on; drops nothing"
    assert len(world.jobs("pair")) == 3
    assert world.records("pair") == []


THE_FIRE = "(the fire of 2026-03-02T12:02:00.000Z)"
LATER = ", the new spread begins with the next fire"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spread": {"count": 4}}, f"goes on; drops nothing{LATER}"),
        ({"spread": {"count": 4}, "ttl": "1m"}, f"goes on; drops 3 jobs {THE_FIRE}{LATER}"),
        ({"spread": {"count": 4}, **DROP}, "times and spans go on; prepares 3 fires again"),
        ({"spread": {"count": 2}, **DROP}, "times and spans go on; prepares 2 fires again"),
        ({"spread": {"count": 3}, "priority": 3}, "goes on; drops nothing"),
    ],
)
def test_l25_an_update_of_the_spread_says_when_it_begins(world: World, change: Document, said: str) -> None:
    tick = to_queue(time("2/2 12 2 3 *"), spread={"count": 3})
    world.deploy(flights({"tick": tick}))
    world.pass_by("30s")
    told = apply(world, flights({"tick": {**tick, **change}}))
    assert told["tick"]["text"] == said


def test_l25_a_changed_trigger_lists_each_day_that_it_drops(world: World) -> None:
    gathered(world, PAIR, 1, 2)
    told = apply(world, flights({"pair": on(partition(count=3), by=["day"])}))["pair"]
    assert (told["code"], told["dropped"], told["more"]) == ("begins_again", 2, False)
    assert [job["name"] for job in told["jobs"]] == ["day=1", "day=2"]
    assert told["text"] == "begins again, because what starts it changes; drops 2 jobs (day=1, day=2)"
    assert kinds(world, "pair") == ["DROPPED"] * told["dropped"]


def test_l25_a_restart_drops_what_waits_where_the_trigger_stays(world: World) -> None:
    gathered(world, PAIR, 1, 2)
    document = flights({"pair": PAIR | {"priority": 9}, "other": PAIR})
    assert would(world, document)["pair"]["dropped"] == 0
    told = apply(world, document, restart=True)
    assert (told["pair"]["code"], told["pair"]["dropped"]) == ("goes_on", 2)
    assert kinds(world, "pair") == ["DROPPED", "DROPPED"]
    assert would(world, document, restart=True) == {}, "what does not change is not restarted"


def test_l25_a_deleted_schedule_lists_what_waits(world: World) -> None:
    gathered(world, PAIR, 1)
    told = apply(world, flights({"other": PAIR}))["pair"]
    assert (told["code"], told["dropped"]) == ("deleted", 1)
    assert told["text"] == "is deleted; drops 1 job (day=1)"
    assert kinds(world, "pair") == ["DROPPED"]


@pytest.mark.parametrize(("change", "ends"), [({"priority": 9}, False), ({"trigger": partition(count=2)}, True)])
def test_l25_a_backfill_goes_on_or_its_end_is_listed(world: World, change: Document, ends: bool) -> None:
    daily = on(partition(), by=["day"])
    gathered(world, daily, 1, 2, 3)
    world.finish()
    world.settle()
    again = begin(world, "pair", partitions={"from": {"year": "2013", "month": "01", "day": "1"}}, concurrency=1)
    world.settle()
    told = apply(world, flights({"pair": daily | change}))["pair"]
    assert told["backfills"] == ([again] if ends else [])
    assert told["dropped"] == 0, "the jobs of a backfill count with it"
    assert seen(world, "pair", again)["state"] == ("ENDED" if ends else "RUNNING")


def test_l25_a_backfill_goes_on_when_enabled_after_an_update(world: World) -> None:
    daily = on(partition(), by=["day"])
    gathered(world, daily, 1, 2, 3)
    world.finish()
    world.settle()
    again = begin(world, "pair", partitions={"from": {"year": "2013", "month": "01", "day": "1"}}, concurrency=1)
    world.settle()
    updated = flights({"pair": daily | {"priority": 9}})
    apply(world, updated)
    world.disable("pair")
    told = apply(world, updated)["pair"]
    assert (told["code"], told["backfills"]) == ("begins", [])
    for _ in range(3):
        world.settle()
        world.finish()
    world.settle()
    assert (seen(world, "pair", again)["state"], seen(world, "pair", again)["succeeded"]) == ("DONE", 3)


def test_l25_an_update_that_is_taken_back_ends_a_backfill(world: World) -> None:
    """The definition is that with which the backfill began, but it has gone on by another one since."""
    daily = on(partition(), by=["day"])
    gathered(world, daily, 1, 2, 3)
    world.finish()
    world.settle()
    again = begin(world, "pair", partitions={"from": {"year": "2013", "month": "01", "day": "1"}}, concurrency=1)
    apply(world, flights({"pair": daily | {"priority": 9}}))
    told = apply(world, flights({"pair": daily}), restart=True)["pair"]
    assert (told["backfills"], seen(world, "pair", again)["state"]) == ([again], "ENDED")


def test_l25_spans_that_begin_again_are_listed(world: World) -> None:
    both = {"type": "any", "triggers": [time("@every 24h"), partition(count=2)]}
    other = {"type": "any", "triggers": [time("@every 24h"), partition(count=3)]}
    gathered(world, to_queue(both), 1)
    told = apply(world, flights({"pair": to_queue(other)}))["pair"]
    assert told["spans"] == ["every 24 hours"]
    assert told["text"].endswith(
        "drops 1 job (what has gathered since 2026-03-02T12:00:00.000Z), begins again: every 24 hours"
    )


def test_l25_a_due_time_that_moves_is_listed_with_both_instants(world: World) -> None:
    def once(count: int) -> Document:
        late = {"type": "time", "due_time": "2h"}
        return to_queue({"type": "any", "triggers": [late, partition(count=count)]}, ttl="3h")

    gathered(world, once(2))
    world.clock.pass_by("30m")
    told = would(world, flights({"pair": once(3)}))["pair"]
    assert told["spans"] == [
        "at 2026-03-02T14:30:00.000Z, so far at 2026-03-02T14:00:00.000Z",
        "the ttl, which ended at 2026-03-02T15:00:00.000Z and ends at 2026-03-02T15:30:00.000Z now",
    ]


def test_l25_fires_that_are_prepared_again_are_counted(world: World) -> None:
    world.deploy(flights({"pair": to_queue(time("* * * * *"))}))
    world.tick()
    ahead = len(world.jobs("pair"))
    assert ahead >= 2
    document = flights({"pair": to_queue(time("* * * * *"), priority=9)})
    assert would(world, document)["pair"]["prepared"] == 0
    told = apply(world, document, restart=True)["pair"]
    assert (told["prepared"], told["dropped"]) == (ahead, 0)
    world.pass_by("3m")
    assert kinds(world, "pair") == []


@pytest.mark.parametrize("size", [40, 4_000])
def test_l25_events_of_a_large_fire_are_counted(world: World, size: int) -> None:
    """Also those that share rows, and those that are not written yet."""
    batch = to_queue(time("1 12 * * *"), spread={"count": size, "over": "1h"})
    world.deploy(flights({"pair": batch}))
    world.pass_by("2m")
    later = to_queue(time("1 13 * * *"), spread={"count": size, "over": "1h"})
    told = apply(world, flights({"pair": later}))["pair"]
    world.settle()
    lost = sum(record.count for record in world.records("pair"))
    assert told["dropped"] == lost
    assert lost + sum(run.count for run in world.runs("pair")) == size


def test_l25_a_shorter_ttl_lists_the_fires_after_it(world: World) -> None:
    def minutely(ttl: str) -> Document:
        return to_queue(time("* * * * *"), ttl=ttl)

    world.deploy(flights({"pair": minutely("1d")}))
    world.tick()
    told = apply(world, flights({"pair": minutely("90s")}))["pair"]
    world.pass_by("5m")
    assert (told["code"], told["dropped"]) == ("carried", len(kinds(world, "pair")))
    assert told["dropped"] == 1


def test_l25_a_disabled_schedule_keeps_the_run_that_waits(world: World) -> None:
    document = partitions(enabled=False, constraints=[{"type": "delay", "after": "1h", "since": "created"}])
    world.deploy(flights({"pair": document}))
    job = world.run_now("pair")
    told = apply(world, flights({"pair": document | {"properties": {"new": True}}}))["pair"]
    assert (told["code"], told["dropped"]) == ("idle", 0)
    assert [each.job_id for each in world.jobs("pair")] == [job]
    world.pass_by("61m")
    assert [run.run_id for run in world.runs("pair")] == [job]


def test_l25_a_drain_launches_what_waits_after_an_update(world: World) -> None:
    late = {"constraints": [{"type": "delay", "after": "1h", "since": "created"}]}
    gathered(world, partitions(**late), 1)
    world.pause("pair", "drain")
    without = {key: value for key, value in partitions(**late).items() if key != "enabled"}
    told = apply(world, flights({"pair": without | {"ttl": "2d", "properties": {"new": True}}}))["pair"]
    assert (told["code"], told["dropped"]) == ("idle", 0)
    world.pass_by("61m")
    [run] = world.runs("pair")
    assert run.request.properties == {"new": True}
    world.upload(day(2))
    world.settle()
    assert len(world.runs("pair")) == 1, "it still gathers nothing"
    world.finish()
    world.clock.wait_until(NOON + 2 * DAY + MINUTE)
    world.pass_by("2m")
    state = world.ports.rows.get(ScheduleState, "demo.flights.pair")
    assert state is not None and state.mode == "deleted"


def test_l25_a_deleted_dag_lists_its_runs_and_their_waiting_jobs(world: World) -> None:
    nodes = {name: {"workflow": "clean"} for name in ("first", "second")}
    late = {"workflow": "clean", "constraints": [{"type": "delay", "after": "1h", "since": "created"}]}
    dag = {"enabled": True, "trigger": partition(), "nodes": {**nodes, "late": late}}
    dag["edges"] = [{"from": "first", "to": "second"}]
    world.deploy(flights({}) | {"dags": {"daily": dag}})
    world.upload(day(1))
    world.settle()
    told = apply(world, flights({}))["daily"]
    assert (told["code"], told["dropped"], len(told["dag_runs"])) == ("deleted", 1, 1)
    assert told["text"].startswith("is deleted; drops 1 job")


def test_l25_what_a_stop_covers_begins_stopped(world: World) -> None:
    tagged = PAIR | {"tags": {"team": "data"}}
    world.deploy(flights({"pair": tagged}))
    world.stop("demo", "team=data")
    dag = {"enabled": True, "trigger": partition(), "nodes": {"a": {"workflow": "clean"}}, "tags": {"team": "data"}}
    told = apply(world, flights({"pair": tagged, "new": tagged, "free": PAIR}) | {"dags": {"daily": dag}})
    assert set(told) == {"new", "daily"}
    expected = "begins now; starts nothing, because what has the tag team=data in demo is stopped"
    assert {effect["text"] for effect in told.values()} == {expected}
    assert told["new"]["stops"][0]["reason"] == "repair"
    world.upload(day(1))
    world.upload(day(1, name="more"))
    world.settle()
    assert world.runs("new") == []


def test_l25_a_disabled_fire_leaves_a_record_of_its_rest(world: World) -> None:
    """What of a spread is not written yet goes on record, also if the put changes nothing else."""
    batch = to_queue(time("1 12 * * *"), spread={"count": 60, "over": "1h"})
    world.deploy(flights({"pair": batch}))
    world.pass_by("11m")
    told = apply(world, flights({"pair": batch | {"enabled": False}}))["pair"]
    world.settle()
    assert told["dropped"] == sum(record.count for record in world.records("pair"))
    assert told["dropped"] + len(world.runs("pair")) == 60


def test_l25_only_so_many_jobs_and_schedules_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gathered(world, PAIR, 1, 2, 3)
    uncounted = Costs(world.ports, left=0).of_deletion(world.ports, ["demo.flights.pair"])
    assert (uncounted["text"], uncounted["more"]) == ("is deleted; may drop what waits: it was not counted", True)
    monkeypatch.setattr("chalicelib.flow.schedules.costs.MAX_JOBS", 2)
    told = would(world, flights({"pair": on(partition(count=3), by=["day"])}))["pair"]
    assert (told["dropped"], told["more"]) == (2, True)
    assert "drops at least 2 jobs" in told["text"]


@pytest.mark.parametrize("restart", [False, True])
def test_l25_an_upload_drops_what_waits_only_if_asked(world: World, restart: bool) -> None:
    gathered(world, PAIR, 1)
    document = flights({"pair": PAIR | {"priority": 9}})
    content = json.dumps(document).encode()
    world.payloads.uploads["demo.flights", "u1"] = content
    plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(document), None, restart=restart)
    uploaded.begin(world.ports, plan, "u1", content, "ann")
    uploaded.advance(world.ports, "demo.flights", "u1")
    world.settle()
    assert uploaded.existing(world.ports, "demo.flights", "u1").state == "DONE"
    assert kinds(world, "pair") == (["DROPPED"] if restart else [])


def test_l25_what_waits_in_another_namespace_goes_on(world: World) -> None:
    """It uses the dataset and the workflow that change, and its own deployment drops nothing of the first."""
    gathered(world, PAIR, 1)
    theirs = PAIR | {"workflow": "demo.flights.clean", "trigger": partition("demo.flights", 2)}
    other = {"schedules": {"theirs": theirs}}
    world.deploy(other, namespace="other", app="orders")
    world.upload(day(2))
    world.settle()
    changed = flights({"pair": on(partition(count=3), by=["day"])}, clean={"target": EMR, "priority": 9})
    assert list(apply(world, changed)) == ["pair"]
    theirs["trigger"] = partition("demo.flights", 3)
    _, _, effects = deploy.dry_run(world.ports, "other", "orders", App.model_validate(other))
    [effect] = effects.values()
    assert [job["name"] for job in effect["jobs"]] == ["day=2"]
    assert [job.correlation for job in world.jobs("other.orders.theirs")] == [{"day": "2"}]


def test_l25_a_run_of_a_dag_goes_on_through_an_update(world: World) -> None:
    dag: dict[str, Any] = {"enabled": True, "trigger": partition(), "nodes": {"first": {"workflow": "clean"}}}
    dag["nodes"]["second"] = {"workflow": "join"}
    dag["edges"] = [{"from": "first", "to": "second"}]
    world.deploy(flights({}) | {"dags": {"daily": dag}})
    world.upload(day(1))
    world.settle()
    fewer = dag | {"trigger": partition(count=3), "nodes": {"first": {"workflow": "clean"}}, "edges": []}
    told = apply(world, flights({}) | {"dags": {"daily": fewer}})
    assert [effect["dropped"] for effect in told.values()] == [0]
    for _ in range(2):
        world.finish()
        world.settle()
    [run] = runs.page(world.ports, "demo.flights.daily", 5, None).items
    assert (run["state"], set(run["nodes"])) == ("SUCCEEDED", {"first", "second"})
