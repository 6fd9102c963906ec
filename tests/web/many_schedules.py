"""Many schedules, jobs and runs on tables in memory, and the API on them with every call to the tables counted."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import Any

import pytest
from chalice.test import Client

from app import app
from benchmarks.cost.meter import MeteredDynamo, table_of
from benchmarks.cost.tally import Tally
from chalicelib.aws.tables import items
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, MINUTE, iso
from chalicelib.core.limits import permits
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.writes import Put
from chalicelib.web import routes
from sluice.testing.engine import make_ports
from tests.support import rows, tables
from tests.support.clock import NOON
from tests.support.world import World
from tests.web import answer_schemas

NS = "/v1/namespaces/demo"
APPS, EACH = 10, 1_000
LISTED, WAKING, QUEUED, RUNNING = 1_000, 500, 5_000, 1_000
LIMIT = "workflow:demo.a0.w"
FED = {"workflow": "w", "trigger": {"type": "partition", "dataset": "raw", "count": 3}}


@dataclass(frozen=True)
class Answered:
    """An answer, the calls to the tables that it took, their read units, its size in bytes, and the CPU time in s that
    it took, the meter's included."""

    body: Any
    calls: int
    units: float
    size: int
    seconds: float


class Counting:
    """The API on the tables of a world. Unless ``large``, answers are compared with the OpenAPI document, which takes
    seconds for thousands of items."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch, large: bool = False) -> None:
        self.world, self._large = world, large
        self.client = Client(app)
        schema = {name: table_of(name, arguments) for name, arguments in tables.definitions().items()}
        self._tally = Tally({})
        metered = MeteredDynamo(world.tables, schema, self._tally)
        dynamo = Dynamo(metered, world.ports.settings)
        self.ports = make_ports(
            dynamo, world.ports.settings, world.clock, world.hints, world.targets, world.payloads, world.lake,
            world.metrics,
        )  # fmt: skip
        modules = (f"chalicelib.web.routes.{module.name}" for module in iter_modules(routes.__path__))
        for module in ("chalicelib.web.access", "chalicelib.web.filters", *modules):
            patch.setattr(f"{module}.ports", lambda: self.ports, raising=False)

    def ask(self, path: str, body: Any = None) -> Answered:
        calls, units = self._tally.calls.total(), self._tally.read_units
        method, content = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            answer = self.client.http.request(method, path, headers={}, body=content)
        seconds = time.process_time() - begun
        assert answer.status_code == 200, answer.body
        if not self._large:
            answer_schemas.check(method, path, 200, json.loads(answer.body))
        calls, units = self._tally.calls.total() - calls, self._tally.read_units - units
        return Answered(json.loads(answer.body), calls, units, len(answer.body), seconds)

    def get(self, path: str) -> Any:
        return self.ask(path).body

    def pages(self, path: str) -> list[Answered]:
        """The pages of a list."""
        mark, found = "&" if "?" in path else "?", [self.ask(path)]
        while (cursor := found[-1].body["next_cursor"]) is not None:
            found.append(self.ask(f"{path}{mark}cursor={cursor}"))
        return found


def names() -> list[str]:
    return [f"demo.a{app}.s{number:04d}" for app in range(APPS) for number in range(EACH)]


def fill(world: World) -> None:
    """10,000 schedules, half of them timed, with 6,500 waiting jobs and 1,000 runs."""
    puts = [Put(Definition("namespace", "demo", {}, 1, NOON))]
    puts += [Put(Definition("app", f"demo.a{number}", {}, 1, NOON)) for number in range(APPS)]
    target = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
    puts += [Put(Definition("workflow", f"demo.a{number}.w", target, 1, NOON)) for number in range(APPS)]
    for number, name in enumerate(names()[: 2 * LISTED : 2]):
        puts.append(Put(_job(name, number, state="PENDING_TRIGGER", reason="waits for 2 partitions of demo.raw")))
    for number, name in enumerate(names()[:WAKING]):
        puts.append(Put(_job(name, 10_000 + number, sort_key=f"RUNNOW#{number}", wake_at=NOON + DAY, reason="x: y")))
    for number in range(QUEUED):
        puts += _queued(number)
    for number, name in enumerate(names()[:RUNNING]):
        late = {"end_by": NOON - 1} if number < 3 else {}
        run_id, claimed = f"{name}.k.{number:020d}", NOON - number * MINUTE
        puts.append(Put(rows.run(run_id, schedule=name, state="RUNNING", claimed_at=claimed, **late)))
    world.dynamo.put_all(puts)
    _put_schedules(world)
    limit = {"pk": f"LIMIT#{LIMIT}", "sk": "STATE", "wake_shard": "0", "wake_at": iso(NOON)}
    item = {name: {"S": text} for name, text in limit.items()}
    world.tables.put_item(
        TableName="JobsTable",
        Item=item | {"waiters": {"N": str(QUEUED)}, "active": {"N": "1"}, "format": {"N": "3"}},
    )


def _put_schedules(world: World) -> None:
    """The rows of all schedules. Each is a copy of the rows of one of 25, with another name: to make each from its
    document would take half a minute."""
    requests: dict[str, list[Any]] = {"CatalogTable": []}
    for number, name in enumerate(names()):
        hour = number // 2 % 24 if number % 2 == 0 else None
        if hour not in _made:
            _made[hour] = _rows_of(world, hour)
        for item in _made[hour]:
            pk = f"APP#{name.rpartition('.')[0]}" if item["sk"]["S"].startswith("SCHEDULE#") else f"SCHEDULE#{name}"
            own = {"pk": {"S": pk}, "schedule": {"S": name}}
            if "wake_shard" in item:
                own["wake_shard"] = {"S": ids.shard(pk, world.ports.settings.wake_shards)}
            if item["sk"]["S"].startswith("SCHEDULE#"):
                own["sk"] = {"S": f"SCHEDULE#{name.rpartition('.')[2]}"}
            requests["CatalogTable"].append({"PutRequest": {"Item": {**item, **own}}})
    world.tables.batch_write_item(RequestItems=requests)


_made: dict[int | None, list[dict[str, Any]]] = {}


def _rows_of(world: World, hour: int | None) -> list[dict[str, Any]]:
    """The items of a schedule that fires at an hour of each day, or (None) when data comes."""
    time = {"type": "time", "expression": f"0 {hour} * * *"}
    fields = FED if hour is None else {"workflow": "w", "trigger": time, "tags": {"team": "a"}}
    schedule = Schedule.model_validate(fields).resolved("demo", "a0", NOON)
    name, shards = "demo.a0.x", world.ports.settings.wake_shards
    made: list[Any] = [
        Listing(name),
        Version(name, 1, schedule.model_dump(mode="json"), NOON),
        ScheduleState(name, NOON, 1, "enabled", NOON, "ada", since=NOON, mode_at=NOON),
    ]
    if hour is not None:
        due = NOON + ((hour - 12) % 24 or 24) * HOUR
        made.append(Timer(name, NOON, 1, NOON, {"0": due}, wake_at=due - 135_000))
    return [items.to_item(row, shards, 1) for row in made]


def _job(schedule: str, number: int, **fields: Any) -> Any:
    job_id = f"{schedule}.{ids.base36(NOON)}.{number:020d}"
    plain = {"schedule": schedule, "generation": NOON, "created_at": NOON - number * 1000, "wake_at": None}
    return rows.job(job_id, **(plain | fields))


def _queued(number: int) -> list[Put]:
    schedule = "demo.a0.s0000"
    created = NOON - HOUR + number
    job_id = f"{schedule}.{ids.base36(NOON)}.{number + 50_000:020d}"
    rank = permits.rank(5, None, created, job_id)
    job = _job(
        schedule, number + 50_000, sort_key=f"JOB#{number:05d}", queued_in=LIMIT, rank=rank, state="PENDING_LAUNCH",
        kind="detached", created_at=created, reason="waits for a slot of workflow demo.a0.w: 1 of 1 in use",
    )  # fmt: skip
    return [Put(job), Put(Waiter(LIMIT, rank, schedule, NOON, job.sort_key, job_id))]
