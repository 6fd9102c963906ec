"""Leaves of every kind, for `test_crash_points.py`: absence, silence, spans, sizes, events, alarms, and a calendar (T9,
T11-T14, T18, T23, C17).
"""

from __future__ import annotations

from typing import Any

from tests.faults.dying import Scenario, finish, passes, people, tick, upload
from tests.faults.scenarios_basic import PARTITION
from tests.support.crash import lost, redelivered
from tests.support.world import World


def on(trigger: dict[str, Any], workflow: str = "clean", **fields: Any) -> dict[str, Any]:
    return {"workflow": workflow, "enabled": True, "trigger": trigger, **fields}


WEATHER = {"type": "partition", "dataset": "weather"}
QUIET = {"type": "quiet", "of": {**PARTITION, "count": 2}, "after": "5m"}
BOTH = {"type": "all", "triggers": [PARTITION, WEATHER], "within": "10m"}


FROM_TEN_PAST = {"type": "calendar", "only": [{"from": "2026-03-02T12:10:00Z", "to": "2026-03-03T00:00:00Z"}]}


def by_ten_past(of: dict[str, Any]) -> dict[str, Any]:
    """An absent leaf with a deadline ten minutes after noon, when the worlds begin."""
    return {"type": "absent", "of": of, "deadline": "12:10"}


DAYS = {"each": "day", "format": "day=%Y-%m-%d"}
OF_DAYS = {
    name: {"bucket": "lake", "prefix": f"{name}/", "keys": ["day"], "period": DAYS} for name in ("sales", "stock")
}


def no_day_of(dataset: str) -> dict[str, Any]:
    """An absent leaf that is due ten minutes after noon, twelve hours and ten minutes after the end of the day."""
    return {"type": "absent", "of": {"type": "partition", "dataset": dataset}, "after": "12h10m"}


def _one_feed_comes(world: World) -> None:
    passes(world, "5m")
    upload(world, 1)
    passes(world, "1m")
    upload(world, 2)
    passes(world, "3m30s", "31s", "1m")


def _one_day_comes(world: World) -> None:
    """The day that is due comes to one dataset, and an old day to the other."""
    for folder in ("sales/day=2026-03-01", "stock/day=2026-02-20"):
        redelivered(lambda folder=folder: world.upload(f"{folder}/part-0.parquet", size=5))
    passes(world, "9m30s", "31s", "1m")


def _day_comes_late(world: World) -> None:
    """The absence of a day is noticed while the schedule is paused; then another day comes, and then this one."""
    people(world, lambda: world.pause("missing"))
    passes(world, "9m30s", "31s", "1m")
    for day in ("2026-02-20", "2026-03-01"):
        redelivered(lambda day=day: world.upload(f"stock/day={day}/part-0.parquet", size=5))
    people(world, lambda: world.resume("missing"))


def _a_feed_comes_late(world: World) -> None:
    """The absence is noticed while the schedule is paused; then the feed comes after all."""
    people(world, lambda: world.pause("missing"))
    passes(world, "9m30s", "31s", "1m")
    upload(world, 1)
    people(world, lambda: world.resume("missing"))


def _chunks(world: World) -> None:
    upload(world, 1)
    upload(world, 2)
    passes(world, "3m")
    upload(world, 3)
    passes(world, "4m30s", "31s")
    finish(world)


def _before_the_window(world: World) -> None:
    upload(world, 1)
    passes(world, "9m30s")
    upload(world, 2)
    passes(world, "31s")
    finish(world)


def _bytes(world: World) -> None:
    upload(world, 1, name="a.csv", size=60)
    upload(world, 1, name="a.csv", size=60)
    upload(world, 1, name="b.csv", size=50)
    finish(world)


def _custom(world: World) -> None:
    for source in ("o1", "o2", "o1"):
        redelivered(lambda source=source: world.post("order", source))
    tick(world)
    finish(world)


def _alarms(world: World) -> None:
    """Each change is delivered twice, the first one once more at the end."""
    changes = []
    for state in ("ALARM", "OK", "ALARM"):
        changes.append(world.alarm("disk full", state, delivered=False))
        for _ in range(2):
            redelivered(lambda: world.deliver_alarm(changes[-1]))
        passes(world, "10s")
    redelivered(lambda: world.deliver_alarm(changes[0]))
    tick(world)
    finish(world)


def _started_meanwhile(world: World) -> None:
    """A run at 90 minutes postpones the fire that was due at two hours."""
    passes(world, "90m")
    people(world, lambda: world.run_now("idle"))
    finish(world)
    passes(world, "29m30s", "31s", "88m30s", "80s")
    finish(world)


def _half_grows_old(world: World) -> None:
    upload(world, 1)
    passes(world, "5m")
    redelivered(lambda: world.post("nothing of interest"))
    world.clock.pass_by("6m")
    upload(world, 1, "weather", "x.csv")
    upload(world, 2)
    finish(world)


HALVES = {
    "halves": {
        "bucket": "lake",
        "prefix": "raw/halves/",
        "keys": ["dt", "hour"],
        "period": {"each": "12h", "format": "dt=%Y-%m-%d/hour=%H"},
    }
}


MODELS = {
    "models": {
        "bucket": "lake",
        "prefix": "raw/models/",
        "keys": ["day"],
        "period": {"each": "day", "format": "day=%Y-%m-%d"},
    }
}


def per_day(of: Any = "period", **fields: Any) -> dict[str, Any]:
    return on({"type": "partition", "dataset": "halves", "of": of}, per="day", **fields)


def half(world: World, name: str) -> None:
    day, hour = name.split("T")
    redelivered(lambda: world.upload(f"raw/halves/dt={day}/hour={hour}/part-0.parquet"))
    world.settle(lost)


def _halves(world: World) -> None:
    for name in ("2026-03-02T12", "2026-03-01T12", "2026-03-02T12", "2026-03-02T00"):
        half(world, name)
    finish(world)


def _whole_day(world: World) -> None:
    """The day comes twice."""
    for _ in range(2):
        redelivered(lambda: world.upload("raw/models/day=2026-03-02/part-0.parquet"))
        world.settle(lost)
    finish(world)


def _model_of_two(world: World) -> None:
    """A model of no region comes twice, and one region of the day."""
    for folder in ("plans/version=1", "plans/version=1", "areas/region=eu/day=2026-03-02"):
        redelivered(lambda folder=folder: world.upload(f"raw/{folder}/part-0.parquet"))
        world.settle(lost)
    finish(world)


PLANS = {
    "plans": {"bucket": "lake", "prefix": "raw/plans/", "keys": ["version"]},
    "areas": {"bucket": "lake", "prefix": "raw/areas/", "keys": ["region", "day"], "period": DAYS},
}


def _regions_come_and_go(world: World) -> None:
    """The first of March has two regions. Of these, one comes on the second, and a new one, which comes twice."""
    days = ((1, "us"), (1, "eu"), (2, "mars"), (2, "us"), (2, "mars"))
    for number, region in days:
        redelivered(lambda key=f"region={region}/day=2026-03-0{number}": world.upload(f"raw/areas/{key}/a.parquet"))
        world.settle(lost)
    redelivered(lambda: world.upload("raw/areas/region=eu/day=2026-03-02/a.parquet"))
    world.settle(lost)
    finish(world)


def _late_half(world: World) -> None:
    """The first of March is over, and its job has five minutes to become complete."""
    half(world, "2026-03-01T00")
    passes(world, "4m30s", "31s")
    finish(world)
    half(world, "2026-03-01T12")
    finish(world)


def parts_of(world: World, name: str) -> list[int]:
    """How many partitions each run got."""
    return sorted(map(len, _events(world, name)))


def _events(world: World, name: str) -> list[list[dict[str, Any]]]:
    """The events that each run got, in its context or in its manifest."""
    return [world.given(run) for run in world.runs(name)]


def _days(world: World, name: str) -> list[list[str]]:
    """The days that each run got."""
    return [sorted(event["partition"]["day"] for event in events) for events in _events(world, name)]


GATHERED = {
    "a feed that comes, and one that does not": Scenario(
        {"arrived": on(by_ten_past(PARTITION)), "missing": on(by_ten_past(WEATHER), "join")},
        _one_feed_comes,
        [({"arrived": [], "missing": ["SUCCEEDED"]}, 1)],
    ),
    "a feed that comes after its absence was noticed": Scenario(
        {"missing": on(by_ten_past(PARTITION))}, _a_feed_comes_late, [({"missing": []}, 0)]
    ),
    "a day that comes, and one that does not": Scenario(
        {"arrived": on(no_day_of("sales")), "missing": on(no_day_of("stock"), "join")},
        _one_day_comes,
        [({"arrived": [], "missing": ["SUCCEEDED"]}, 1)],
        datasets=OF_DAYS,
    ),
    "a day that comes after its absence was noticed": Scenario(
        {"missing": on(no_day_of("stock"))}, _day_comes_late, [({"missing": []}, 0)], datasets=OF_DAYS
    ),
    "chunks, and the silence after them": Scenario(
        {"chunks": on(QUIET)},
        _chunks,
        [({"chunks": ["SUCCEEDED"]}, 1)],
        holds=lambda world: _days(world, "chunks") == [["1", "2", "3"]],
    ),
    "data that waits for a window of its calendar": Scenario(
        {"daily": on(PARTITION, constraints=[FROM_TEN_PAST])},
        _before_the_window,
        [({"daily": ["SUCCEEDED"]}, 1)],
        holds=lambda world: _days(world, "daily") == [["1", "2"]],
    ),
    "objects that are enough together": Scenario(
        {"bulk": on({"type": "size", "dataset": "flights", "bytes": 110})}, _bytes, [({"bulk": ["SUCCEEDED"]}, 1)]
    ),
    "custom events for two schedules": Scenario(
        {
            "pairs": on({"type": "event", "event": "order", "count": 2}),
            "each": on({"type": "event", "event": "order"}, "join", coalesce=False),
        },
        _custom,
        [({"pairs": ["SUCCEEDED"], "each": ["SUCCEEDED", "SUCCEEDED"]}, 3)],
    ),
    "changes of an alarm for two schedules": Scenario(
        {
            "pairs": on({"type": "cloudwatch_alarm", "alarm": "disk full", "count": 2}),
            "each": on({"type": "cloudwatch_alarm", "alarm": "disk full", "state": "OK"}, "join"),
        },
        _alarms,
        [({"pairs": ["SUCCEEDED"], "each": ["SUCCEEDED"]}, 2)],
    ),
    "a span since the last start": Scenario(
        {"idle": on({"type": "elapsed", "after": "2h"})}, _started_meanwhile, [({"idle": ["SUCCEEDED"] * 2}, 2)]
    ),
    "halves of days, and of windows": Scenario(
        {"days": per_day(), "pairs": per_day({"periods": 3, "ending": "period"})},
        _halves,
        [({"days": ["SUCCEEDED"], "pairs": ["SUCCEEDED"]}, 2)],
        holds=lambda world: (parts_of(world, "days"), parts_of(world, "pairs")) == ([2], [3]),
        datasets=HALVES,
    ),
    "a day that starts the jobs of its thirds": Scenario(
        {"thirds": on({"type": "partition", "dataset": "models", "of": "period"}, per="8h")},
        _whole_day,
        [({"thirds": ["SUCCEEDED"] * 3}, 3)],
        holds=lambda world: (
            {world.context(run)["period"]["label"] for run in world.runs("thirds")}
            == {f"2026-03-02T{hour}" for hour in ("00", "08", "16")}
        ),
        datasets=MODELS,
    ),
    "a partition of no region that starts the job of each": Scenario(
        {
            "each": on({"type": "partition", "dataset": "plans"}, by=["region"], values={"region": ["us", "eu"]}),
            "both": on(
                {"type": "all", "triggers": [{"type": "partition", "dataset": name} for name in PLANS]},
                by=["region"],
                values={"region": ["us", "eu"]},
            ),
        },
        _model_of_two,
        [({"each": ["SUCCEEDED"] * 2, "both": ["SUCCEEDED"]}, 3)],
        holds=lambda world: [job.correlation for job in world.jobs("both")] == [{"region": "us"}],
        datasets=PLANS,
    ),
    "a day of the regions that the day before had": Scenario(
        {"days": on({"type": "partition", "dataset": "areas", "of": "period"}, per="day", incomplete={"after": "20h"})},
        _regions_come_and_go,
        [({"days": ["SUCCEEDED"]}, 1)],
        holds=lambda world: (parts_of(world, "days"), len(world.jobs("days"))) == ([3], 1),
        datasets={"areas": PLANS["areas"] | {"values": {"region": "seen_last"}}},
    ),
    "a half of a day that comes late": Scenario(
        {"days": per_day(incomplete={"after": "5m"}, late="again")},
        _late_half,
        # The late half joins a job that has not started, because a Lambda died.
        [({"days": ["SUCCEEDED"] * 2}, 2), ({"days": ["SUCCEEDED"]}, 1)],
        holds=lambda world: parts_of(world, "days")[-1] == 2,
        datasets=HALVES,
    ),
    "a half match that grows old": Scenario(
        {"both": on(BOTH)},
        _half_grows_old,
        [({"both": ["SUCCEEDED"]}, 1)],
        holds=lambda world: [record.kind for record in world.records("both")] == ["EXPIRED"],
    ),
}
