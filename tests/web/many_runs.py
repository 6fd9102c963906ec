"""What many schedules leave behind, beside the rows of `many_schedules`: the history of one of them, partitions,
versions, backfills, dead letters, the runs of a DAG, a report and a log. Everywhere there is more than a page holds."""

from __future__ import annotations

import json
from dataclasses import asdict

from chalicelib.core.backfills.reprocess import StoredStep
from chalicelib.core.definitions.message import Message
from chalicelib.core.events.build import status_event
from chalicelib.core.fires import bundles
from chalicelib.core.instants import HOUR, MINUTE, SECOND, iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import AppliedEvent, Event, Partition
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Fire
from chalicelib.core.rows.schedule import Subscription, Version
from chalicelib.core.runs import sends
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.writes import Put
from chalicelib.flow.history.reports import LINES_A_FILE, ROOT
from chalicelib.flow.schedules import messages
from tests.support import dags, rows
from tests.support.clock import NOON
from tests.support.reasons import says
from tests.support.world import World, day
from tests.web.many_schedules import names

ONE = "demo.a1.s0001"  # a schedule that partitions of `raw` start
RUNS, RECORDS, PARTITIONS, FOLLOWERS = 5_100, 2_100, 5_100, 150
DATASETS, VERSIONS, BACKFILLS, REPROCESSES, LETTERS, DAG_RUNS = 600, 1_200, 60, 120, 300, 26
LAST_RUN = f"{ONE}.k.{0:020d}"
LOG_LINES = 20_000
EVENTS, IN_A_BUNDLE, OLD = 100_000, 1_667, NOON - 300 * HOUR
LARGE_FIRE = bundles.fire_id(ONE, 1, OLD)
DAG = "/v1/namespaces/demo/apps/d/dags/daily"


def leave(world: World) -> None:
    """Add the rows, the report and the log to a world that `many_schedules.fill` has filled."""
    _play_dag(world)
    version = world.ports.rows.get(Version, ONE, 1)
    assert version is not None
    puts = [*_runs(), *_records(), *_data(), *_work(), *_large_fire()]
    puts += [Put(Version(ONE, number, version.definition, NOON)) for number in range(2, VERSIONS + 1)]
    world.dynamo.put_all(puts)
    _report(world)
    note = Message.model_validate({"schedule": "0 3 * * *", "workflow": "w"})
    messages.put(world.ports, "demo.a2", "note", note, "ada")
    log = "".join(f"2026-03-02 12:00:00 INFO wrote part {number} of the day\n" for number in range(LOG_LINES))
    world.payloads.logs["logs/applications/00app/jobs/00j/SPARK_DRIVER/stderr"] = log
    world.payloads.logs["logs/applications/00app/jobs/00j/SPARK_DRIVER/stderr.gz"] = log


def dag_run(world: World) -> str:
    """The id of the last run of the DAG."""
    return world.ports.runs.runs("schedule", "demo.d.daily~", 1, None).items[0].run_id


def _large_fire() -> list[Put]:
    """The runs of the bundles of one fire of 100,000 events."""
    starts = range(0, EVENTS, IN_A_BUNDLE)
    fire = Fire(LARGE_FIRE, ONE, 1, OLD, tuple(starts), EVENTS, expires_at=NOON + HOUR)
    made = [Put(fire)]
    for first in starts:
        count = min(IN_A_BUNDLE, EVENTS - first)
        made.append(Put(rows.run(
            bundles.bundle_id(LARGE_FIRE, first, count), schedule=ONE, generation=1, workflow="demo.a0.w",
            state="SUCCEEDED", claimed_at=OLD, created_at=OLD, ended_at=OLD, state_at=OLD, nominal_at=OLD, due_at=OLD,
            wake_at=None, kind="fire", spread=(first, EVENTS), count=count, plan=(OLD, 0, 0, EVENTS, EVENTS, 0),
            sends=sends.of((OLD, OLD + 20) for _ in range(count)),
        )))  # fmt: skip
    return made


def _runs() -> list[Put]:
    """The runs of one schedule, one each ten seconds; followers have counted the end of the last one."""
    made = []
    for number in range(RUNS):
        at = NOON - HOUR - number * 10 * SECOND
        made.append(
            rows.run(
                f"{ONE}.k.{number:020d}",
                schedule=ONE,
                workflow="demo.a0.w",
                state="SUCCEEDED",
                claimed_at=at,
                created_at=at,
                started_at=at,
                ended_at=at + 5 * SECOND,
                state_at=at + 5 * SECOND,
                wake_at=None,
                target_id="00app/00j",
                number=RUNS - number,
            )
        )
    event = status_event(made[0], "COMPLETED")
    followers = names()[3_001 : 3_001 + 2 * FOLLOWERS : 2]
    key = status_key("demo.a0.w", "COMPLETED")
    index = [Subscription(key, name, NOON - HOUR, 1, "0", NOON - HOUR) for name in followers]
    counted = [AppliedEvent(name, NOON - HOUR, event, f"{name}.k.{0:020d}") for name in followers]
    then = [
        rows.run(f"{name}.k.{0:020d}", schedule=name, state="SUCCEEDED", workflow="demo.a3.w", wake_at=None,
                 claimed_at=NOON - HOUR, ended_at=NOON - HOUR + MINUTE, event=event)
        for name in followers
    ]  # fmt: skip
    return [Put(row) for row in (*made, *index, *counted, *then)]


def _records() -> list[Put]:
    return [
        Put(new_record(f"{ONE}.k.{n:019d}r", "SKIPPED", ONE, NOON, says("skipped by ada"), NOON - n * MINUTE))
        for n in range(RECORDS)
    ]


def _data() -> list[Put]:
    """The dataset that half of the schedules count, with its partitions, and many others; a pool, and a policy."""
    document = {"bucket": "lake-bucket", "prefix": "raw/", "keys": ["n"]}
    found = [Definition("pool", "demo.big", {"size": 100}, 1, NOON)]
    found += [Definition("policy", "demo.calm", {"max_events": 60}, 1, NOON)]
    found += [Definition("dataset", "demo.raw", document, 1, NOON)]
    found += [Definition("dataset", f"demo.other{number:03d}", document, 1, NOON) for number in range(DATASETS)]
    parts = []
    for number in range(PARTITIONS):
        event = Event(
            f"partition-{number:020d}", "partition", partition_key("demo.raw"), NOON, NOON, {"n": str(number)},
            "demo.raw", f"s3://lake-bucket/raw/n={number}/",
        )  # fmt: skip
        parts.append(Partition("demo.raw", (str(number),), event, f"raw/n={number}/part-0"))
    fed = names()[1 : 2 * FOLLOWERS : 2]
    index = [Subscription(partition_key("demo.raw"), name, NOON, 1, "0", NOON) for name in fed]
    return [Put(row) for row in (*found, *parts, *index)]


def _work() -> list[Put]:
    """Backfills and re-processings, each second one of which runs, and dead letters."""
    made = []
    for number in range(BACKFILLS):
        state = ("RUNNING", "DONE")[number % 2]
        made.append(
            rows.backfill(f"b{number:04d}", schedule=ONE, state=state, since=None, until=None, dataset="demo.raw",
                          keys=("n",), first="1", last="5", next=5, wake_at=None, version=1)
        )  # fmt: skip
    step = StoredStep(ONE, "demo.a0.w", NOON, 1, ("n",), "p1", 5, "1", "5", (), "", "counts demo.raw", "running")
    for number in range(REPROCESSES):
        steps = [{**asdict(step), "state": ("running", "succeeded")[number % 2]}, {**asdict(step), "state": "waiting"}]
        made.append(
            Reprocess("demo", f"r{number:04d}", "RUNNING", "demo.raw", ("n",), "raw/", "1", "5", tuple(steps), 1, NOON)
        )
    made += [
        rows.dead_letter(f"{ONE}.k.{n:019d}d", schedule=ONE, workflow="demo.a0.w", failed_at=NOON - n * MINUTE)
        for n in range(LETTERS)
    ]
    return [Put(row) for row in made]


def _play_dag(world: World) -> None:
    """Runs of a DAG of three nodes, by the product."""
    world.deploy(dags.app(dags.dag("a -> b", "b -> c")), app="d")
    for number in range(DAG_RUNS):
        world.upload(day(number + 1))
    for _ in range(3):
        world.settle()
        world.finish()
    world.settle()


def _report(world: World) -> None:
    """A report of two files, as Spark writes it."""
    line = {"runs": 120, "succeeded": 118, "failed": 2, "p50_ms": 61_000, "p99_ms": 90_000, "cost_usd": 1.25}
    root = f"{ROOT}day={iso(NOON)[:10]}/as_of=20260303T011500.000Z/"
    for file in range(2):
        begin = file * LINES_A_FILE
        lines = [json.dumps({"workflow": f"demo.a1.w{begin + n:04d}", **line}) for n in range(LINES_A_FILE)]
        world.lake.objects["lake-bucket", f"{root}namespace=demo/part-0.c00{file}.json"] = "\n".join(lines)
    world.lake.objects["lake-bucket", f"{root}_SUCCESS"] = ""
