"""The basic flow: a partition starts a run, the run's end starts another, and a timer starts a third."""

from tests.support.world import World, day, flights

CLEAN = {
    "workflow": "clean",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights", "by": ["year", "month", "day"]},
    "constraints": [{"type": "concurrency", "max": 2, "on_unmet": "wait"}],
}
ONCE = {"type": "time", "expression": "1 12 2 3 *"}
JOIN = {
    "workflow": "join",
    "enabled": True,
    "by": ["year", "month", "day"],
    "trigger": {
        "type": "all",
        "triggers": [
            {"type": "program_status", "workflow": "clean"},
            {"type": "partition", "dataset": "weather"},
        ],
    },
}


def test_a_ready_partition_becomes_one_run(world: World) -> None:
    world.deploy(flights({"clean": CLEAN}))

    world.upload(day(1, name="part-0.csv"))
    world.settle()
    assert world.runs("clean") == []

    world.upload(day(1))
    world.settle()

    [run] = world.runs("clean")
    assert run.state == "STARTING"
    assert run.correlation == {"year": "2013", "month": "1", "day": "1"}
    assert len(world.targets.emr.runs) == 1
    context = world.context(run)
    assert context["events"][0]["path"] == "s3://lake-bucket/raw/flights/year=2013/month=1/day=1/"

    world.finish()
    [run] = world.runs("clean")
    assert run.state == "SUCCEEDED"
    assert world.limit_state("workflow:demo.flights.clean").active == 0


def test_the_join_of_a_day_waits_for_the_weather_of_that_day(world: World) -> None:
    world.deploy(flights({"clean": CLEAN, "join": JOIN}))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    assert world.finish() == 2
    world.settle()
    assert len(world.jobs("join")) == 2

    world.upload(day(2, "weather", "part-0.csv"))
    world.settle()

    [run] = world.runs("join")
    assert run.correlation == {"year": "2013", "month": "1", "day": "2"}
    assert world.context(run)["upstream"]["schedule"] == "demo.flights.clean"
    [waiting] = world.jobs("join")
    assert waiting.correlation == {"year": "2013", "month": "1", "day": "1"}
    assert "1 partition of demo.weather" in waiting.reason.text


def test_slots_are_queued_for_and_released(world: World) -> None:
    world.deploy(flights({"clean": CLEAN}))
    for number in range(1, 6):
        world.upload(day(number))
    world.settle()
    assert len(world.runs("clean")) == 2
    limit = world.limit_state("workflow:demo.flights.clean")
    assert (limit.active, limit.waiters) == (2, 3)

    world.finish()
    world.settle()
    assert len(world.runs("clean")) == 4
    world.finish()
    world.settle()
    world.finish()
    world.settle()

    assert [run.state for run in world.runs("clean")] == ["SUCCEEDED"] * 5
    limit = world.limit_state("workflow:demo.flights.clean")
    assert (limit.active, limit.waiters) == (0, 0)


def test_a_cron_trigger_delivers_on_its_seconds(world: World) -> None:
    tick = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": "@every 10s"}}
    world.deploy(flights({"tick": tick}))

    world.pass_by("1m")

    assert len(world.targets.queue.messages) == 6
    runs = world.runs("tick")
    assert [run.state for run in runs] == ["SUCCEEDED"] * 6
    assert all(run.start_requested_at == run.nominal_at for run in runs)


def test_a_cron_trigger_starts_emr_run_and_coalesces_meanwhile(world: World) -> None:
    tick = {
        "workflow": "clean",
        "enabled": True,
        "trigger": {"type": "time", "expression": "@every 10s"},
        "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
    }
    world.deploy(flights({"tick": tick}))

    world.pass_by("40s")

    assert len(world.runs("tick")) == 1
    assert [job.state for job in world.jobs("tick") if job.sort_key == "GATHERING"] == ["PENDING_LAUNCH"]
    assert [record.kind for record in world.records("tick")] == ["COALESCED", "COALESCED"]
    world.finish()
    world.settle()
    assert len(world.runs("tick")) == 2


def test_a_partition_is_delivered_to_a_queue_with_its_events(world: World) -> None:
    world.deploy(flights({"delivered": {**CLEAN, "workflow": "notify", "constraints": []}}))
    world.upload(day(1))
    world.settle()

    [(run_id, message)] = world.targets.queue.messages
    assert message["events"][0]["partition"]["day"] == "1"
    [run] = world.runs("delivered")
    assert (run.run_id, run.state) == (run_id, "SUCCEEDED")


def test_e6_a_refusing_queue_gets_the_fire_later_under_same_id(world: World) -> None:
    world.deploy(flights({"tick": {"workflow": "notify", "enabled": True, "trigger": ONCE}}))
    world.targets.queue.refuse = 2
    world.pass_by("2m")

    [(run_id, _)] = world.targets.queue.messages
    assert [run.run_id for run in world.runs("tick")] == [run_id]
    assert world.jobs("tick") == []
