"""A namespace at size: 10,000 schedules, 100,000 runs, 5,000 waiting jobs and more, as items of the three tables.

The product plays a small app (`SEED`) on tables in memory. Its items are stored as they are, and again and again as
copies (`copies.py`) under other names and at other instants. The pointers from a target's id to its run are left out:
no view reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from benchmarks.console.copies import Change, Item, Shards, copies
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, iso
from chalicelib.core.targets.answers import Never
from tests.support import backfills
from tests.support.clock import HandClock
from tests.support.world import EMR, SQS, World

NAMESPACE = "demo"
SEED_APP = f"{NAMESPACE}.seed"
DAY_OF_SEED = "2013-01-01"  # the partition that each dataset of the seed gets
AGE = 200 * DAY  # of the copied schedules: their runs are younger
Stored = tuple[str, Item]  # the logical id of a table, and an item


@dataclass(frozen=True)
class Size:
    """How much there is. ``days`` of the past have runs: a timed schedule one a day, one that partitions start
    ``a_day`` a day. Each dataset feeds ten schedules."""

    apps: int = 10
    schedules: int = 10_000
    days: int = 10
    a_day: int = 4
    gathering: int = 1_200
    windows: int = 500
    approvals: int = 300
    queued: int = 3_000
    running: int = 1_000
    letters: int = 300
    partitions: int = 5_000
    versions: int = 100
    dag_runs: int = 30

    @property
    def waiting(self) -> int:
        return self.gathering + self.windows + self.approvals + self.queued

    @property
    def timed(self) -> int:
        return self.schedules // 2

    @property
    def fed(self) -> int:
        return self.schedules // 8

    @property
    def runs(self) -> int:
        return self.timed * self.days + self.fed * self.days * self.a_day + self.running


# The kinds of schedules whose jobs and runs are copied, each with the dataset `of-<kind>` that starts it.
_FED = ("fed", "failing", "running", "pair", "window", "approval", "queued", "undelivered")
BACKFILLED, VERSIONED, DAG, BIG = "past", "edited", "daily", "of-many"
LIMIT = f"workflow:{NAMESPACE}.a0.narrow"


def _name(kind: str) -> str:
    return f"seed-{kind}"


def _timed(hour: int) -> str:
    return _name(f"timed-{hour:02d}")


def seed() -> dict[str, Any]:
    """The document of the app that the product plays."""

    def fed(kind: str, **fields: Any) -> dict[str, Any]:
        trigger = {"type": "partition", "dataset": f"of-{kind}", **({"count": 3} if kind == "pair" else {})}
        return {"workflow": "w", "enabled": True, "trigger": trigger, "tags": {"team": "b"}, **fields}

    window = {"type": "time_window", "start": "22:00", "end": "22:30"}
    special: dict[str, dict[str, Any]] = {
        "queued": {
            "workflow": "narrow",
            "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
            "coalesce": False,
        },
        "window": {"constraints": [window]},
        "approval": {"constraints": [{"type": "approval", "role": "DataOwner"}]},
        "undelivered": {"workflow": "notify"},
    }
    time = {"workflow": "w", "enabled": True, "tags": {"team": "a"}}
    schedules = {_name(kind): fed(kind, **special.get(kind, {})) for kind in _FED}
    schedules |= {_timed(hour): {**time, "trigger": _at(hour)} for hour in range(24)}
    schedules |= {BACKFILLED: fed(BACKFILLED), VERSIONED: fed(VERSIONED)}
    names = [*(f"of-{kind}" for kind in (*_FED, BACKFILLED, VERSIONED)), BIG, "of-dag"]
    return {
        "datasets": {name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": ["day"]} for name in names},
        "workflows": {"w": {"target": EMR}, "narrow": {"target": EMR}, "notify": {"target": SQS}},
        "schedules": schedules,
        "dags": {DAG: _dag()},
    }


def _at(hour: int) -> dict[str, Any]:
    return {"type": "time", "expression": f"0 {hour} * * *"}


def _dag() -> dict[str, Any]:
    nodes = ("extract", "clean", "join", "report")
    return {
        "trigger": {"type": "partition", "dataset": "of-dag"},
        "by": ["day"],
        "enabled": True,
        "nodes": {node: {"workflow": "w"} for node in nodes},
        "edges": [{"from": start, "to": end} for start, end in pairwise(nodes)],
    }


class Played:
    """The seed, played by the product from shortly before ``now`` on."""

    def __init__(self, now: Instant, size: Size, shards: Shards) -> None:
        self.size, self.shards = size, shards
        tuned: dict[str, Any] = {"wake_shards": shards.wake, "history_shards": shards.history, "start_burst": 10_000}
        self.world = world = World(**tuned)
        self.hour = now // HOUR % 24
        # The timer of this hour fires in the first minutes of the hour.
        world.clock = HandClock(now // HOUR * HOUR - 5 * MINUTE)
        world.targets.emr._clock = world.clock
        world.ports = replace(world.ports, clock=world.clock)
        self.begun = world.clock.now()
        world.deploy(seed(), NAMESPACE, "seed")
        world.targets.queue.down = Never("no such queue")
        self._edit()
        world.clock.pass_by("1s")  # no other instant is that of a generation
        for kind in _FED:
            self._upload(f"of-{kind}")
        world.settle()
        self._end("failing", "FAILED", "exit code 1: the file is empty")
        self._end("fed", "SUCCESS")
        for kind in ("running", "queued"):
            self._end(kind, "RUNNING")
        self._upload("of-queued", "2013-01-02")
        self._upload(BIG)
        world.settle()
        self._fire()
        self._dags()
        self._backfill()

    def rows(self, *, table: str, of: str) -> list[Item]:
        """The items of a table that belong to the schedule of a kind."""
        name, short = f"{SEED_APP}.{_name(of)}", _name(of)
        found = [item for where, item in self.world.tables.rows() if where == table and _belongs(item, name, short)]
        return [dict(item) for item in found if not item["pk"]["S"].startswith("TARGET#")]

    def partition(self, dataset: str) -> list[Item]:
        return self.of_keys("CatalogTable", f"DATASET#{NAMESPACE}.{dataset}", f"PARTITION#{DAY_OF_SEED}")

    def of_keys(self, table: str, pk: str, sk: str = "") -> list[Item]:
        """The items with a partition key, and the beginning of their sort keys."""
        rows = (item for where, item in self.world.tables.rows() if where == table)
        return [dict(item) for item in rows if item["pk"]["S"] == pk and item["sk"]["S"].startswith(sk)]

    def _upload(self, dataset: str, day: str = DAY_OF_SEED) -> None:
        self.world.upload(f"raw/{dataset}/day={day}/part-0")

    def _end(self, kind: str, state: str, details: str = "") -> None:
        """The run of a kind reaches a state."""
        for run in list(self.world.targets.emr.runs.values()):
            if run.request["schedule"] == f"{SEED_APP}.{_name(kind)}":
                self.world.emr_says(run.id, "RUNNING")
                if state != "RUNNING":
                    self.world.clock.pass_by("4m")
                    self.world.emr_says(run.id, state, details)

    def _fire(self) -> None:
        """The timer of the hour fires, and its run succeeds."""
        self.world.clock.wait_until(max(self.world.clock.now(), self.begun + 3 * MINUTE))
        self.world.tick()
        self.world.pass_by("7m")
        self._end(f"timed-{self.hour:02d}", "SUCCESS")

    def _dags(self) -> None:
        for number in range(self.size.dag_runs):
            self._upload("of-dag", iso(self.begun - number * DAY)[:10])
            for _ in range(4):
                self.world.settle()
                for run in list(self.world.targets.emr.runs.values()):
                    if "~" in run.request["schedule"] and run.state == "SUBMITTED":
                        self.world.emr_says(run.id, "RUNNING")
                        self.world.emr_says(run.id, "SUCCESS")

    def _edit(self) -> None:
        """Versions of one schedule."""
        document = seed()["schedules"][VERSIONED]
        for number in range(self.size.versions):
            self.world.put(f"{SEED_APP}.{VERSIONED}", {**document, "tags": {"edition": str(number)}})

    def _backfill(self) -> None:
        """Ten backfills of 30 partitions each. No two have a partition in common: what waits in one is left alone."""
        days = [iso(number * DAY)[:10] for number in range(300)]
        for day in days:
            self._upload(f"of-{BACKFILLED}", day)
        self.world.settle()
        for start in range(0, len(days), 30):
            span = {"from": {"day": days[start]}, "to": {"day": days[start + 29]}}
            name, request = f"{SEED_APP}.{BACKFILLED}", f"b{start}"
            backfills.begin(self.world, name, request=request, partitions=span, concurrency=2)
        self.world.settle()


def _belongs(item: Item, name: str, short: str) -> bool:
    pk, sk = str(item["pk"]["S"]), str(item["sk"]["S"])
    whole = (f"{pk} ", f"{sk} ")
    ends = (f"{name} ", f"{name}.", f"{name}@", f"{name}#")
    return any(end in text for text in whole for end in ends) or (pk == f"APP#{SEED_APP}" and sk == f"SCHEDULE#{short}")


def everything(now: Instant, size: Size, shards: Shards) -> Iterator[Stored]:
    """All items of the namespace."""
    played = Played(now, size, shards)
    yield from ((table, dict(item)) for table, item in played.world.tables.rows())
    maker = Maker(played)
    yield from maker.apps()
    yield from maker.schedules()
    yield from maker.data()
    yield from maker.runs()
    yield from maker.jobs()


class Maker:
    """Copies what the product has played."""

    def __init__(self, played: Played) -> None:
        self._played, self.size = played, played.size
        states = [item for _, item in played.world.tables.rows() if item["sk"]["S"] == "STATE" and "generation" in item]
        generations = {int(item["generation"]["N"]) for item in states}
        self.began = {generation: generation - AGE for generation in generations}

    def change(self, kind: str, app: int, short: str, dataset: str = "", **fields: Any) -> Change:
        """The change of a copy that belongs to the schedule ``short`` of an app."""
        texts = {_name(kind): short, SEED_APP: f"{NAMESPACE}.a{app}"}
        if dataset:
            texts[f"of-{kind}"] = dataset
        return Change(self._played.shards, texts, began=self.began, **fields)

    def apps(self) -> Iterator[Stored]:
        """Apps with the workflows of the seed."""
        own = self._played.of_keys("CatalogTable", f"NS#{NAMESPACE}", "APP#seed")
        own += self._played.of_keys("CatalogTable", f"APP#{SEED_APP}", "WORKFLOW#")
        for app in range(self.size.apps):
            texts = {SEED_APP: f"{NAMESPACE}.a{app}", "APP#seed": f"APP#a{app}"}
            yield from _in("CatalogTable", copies(own, Change(self._played.shards, texts)))

    def names(self, kind: str, count: int) -> Iterator[tuple[int, str, str]]:
        """The app, name and dataset of each schedule of a kind. Those that queue lie in one app, so in one queue."""
        for number in range(count):
            app = 0 if kind == "queued" else number % self.size.apps
            yield app, f"{kind}-{number:05d}", f"of-{kind}-{number // 10:04d}"

    def counts(self) -> dict[str, int]:
        """How many schedules there are of each kind; the others are timed."""
        size = self.size
        counts = {"pair": size.gathering, "window": size.windows, "approval": size.approvals, "undelivered": 1}
        counts |= {"queued": max(1, size.queued // 6), "fed": size.fed}
        counts["failing"] = max(0, size.schedules - size.timed - sum(counts.values()))
        return counts

    def schedules(self) -> Iterator[Stored]:
        timed = [self._played.rows(table="CatalogTable", of=f"timed-{hour:02d}") for hour in range(24)]
        for number, (app, short, _) in enumerate(self.names("timed", self.size.timed)):
            change = self.change(f"timed-{number % 24:02d}", app, short)
            yield from _in("CatalogTable", copies(timed[number % 24], change))
        for kind, count in self.counts().items():
            rows = self._played.rows(table="CatalogTable", of=kind)
            for app, short, dataset in self.names(kind, count):
                yield from _in("CatalogTable", copies(rows, self.change(kind, app, short, dataset)))

    def data(self) -> Iterator[Stored]:
        """The datasets, and their partitions: one for each run that they have started."""
        for kind, count in self.counts().items():
            definition = self._played.of_keys("CatalogTable", f"NS#{NAMESPACE}", f"DATASET#of-{kind}")
            partition = self._played.partition(f"of-{kind}")
            for dataset in sorted({dataset for _, _, dataset in self.names(kind, count)}):
                change = Change(self._played.shards, {f"of-{kind}": dataset})
                yield from _in("CatalogTable", copies(definition, change))
                for at, day in self._days() if kind in ("fed", "failing") else [(0, DAY_OF_SEED)]:
                    texts = {f"of-{kind}": dataset, DAY_OF_SEED: day}
                    event = f"{dataset}/{day}"
                    one = Change(self._played.shards, texts, shift=-at, salt=event, event_salt=event)
                    yield from _in("CatalogTable", copies(partition, one))
        many = self._played.partition(BIG)
        for number in range(1, self.size.partitions):
            day = iso(number * DAY)[:10]
            change = Change(self._played.shards, {DAY_OF_SEED: day}, salt=day, event_salt=day)
            yield from _in("CatalogTable", copies(many, change))

    def _days(self) -> list[tuple[int, str]]:
        """How long ago (ms) the runs of partitions were, and the day of the partition of each."""
        step = DAY // self.size.a_day
        return [(number * step, iso(number * DAY)[:10]) for number in range(self.size.days * self.size.a_day)]

    def runs(self) -> Iterator[Stored]:
        """The history: of timed schedules a run a day at their hour, of fed ones some a day; each fiftieth failed."""
        hour = self._played.hour
        timed = self._played.rows(table="RunsTable", of=f"timed-{hour:02d}")
        for number, (app, short, _) in enumerate(self.names("timed", self.size.timed)):
            own = number % 24
            for days in range(self.size.days):
                shift = (own - hour) * HOUR - (days + (1 if own > hour else 0)) * DAY
                change = self.change(f"timed-{hour:02d}", app, short, shift=shift, salt=f"{short}/{days}")
                yield from _in("RunsTable", copies(timed, change))
        kinds = {kind: self._both(kind) for kind in ("fed", "failing")}
        running = self._played.rows(table="RunsTable", of="running")
        running_too = self._applied("running")
        for number, (app, short, dataset) in enumerate(self.names("fed", self.size.fed)):
            for at, (shift, day) in enumerate(self._days()):
                kind = "failing" if (number + at) % 50 == 0 else "fed"
                yield from self._run(kinds[kind], kind, app, short, dataset, day, shift + number % 3_600 * SECOND)
        for number, (app, short, dataset) in enumerate(self.names("fed", self.size.running)):
            both = (running, running_too)
            yield from self._run(
                both, "running", app, short, dataset, f"2012-{number % 12 + 1:02d}-01", number * SECOND
            )
        letters = self._played.rows(table="RunsTable", of="undelivered")
        for number in range(self.size.letters):
            salt = f"letter/{number}"
            change = self.change("undelivered", 0, "undelivered-00000", shift=-number * MINUTE, salt=salt)
            yield from _in("RunsTable", copies(letters, change))

    def _both(self, kind: str) -> tuple[list[Item], list[Item]]:
        return self._played.rows(table="RunsTable", of=kind), self._applied(kind)

    def _applied(self, kind: str) -> list[Item]:
        rows = self._played.rows(table="JobsTable", of=kind)
        return [item for item in rows if item["sk"]["S"].startswith("APPLIED#")]

    def _run(
        self, rows: tuple[list[Item], list[Item]], kind: str, app: int, short: str, dataset: str, day: str, ago: int
    ) -> Iterator[Stored]:
        salt = f"{short}/{day}"
        change = self.change(kind, app, short, dataset, shift=-ago, salt=salt, event_salt=f"{dataset}/{day}")
        change = replace(change, texts={**change.texts, DAY_OF_SEED: day})
        yield from _in("RunsTable", copies(rows[0], change))
        yield from _in("JobsTable", copies(rows[1], change))

    def jobs(self) -> Iterator[Stored]:
        """What waits: for partitions, a window, an approval; and the queue of a limit."""
        for kind in ("pair", "window", "approval"):
            count = self.counts()[kind]
            rows = self._played.rows(table="JobsTable", of=kind)
            for number, (app, short, dataset) in enumerate(self.names(kind, count)):
                event = f"{dataset}/{DAY_OF_SEED}"
                change = self.change(kind, app, short, dataset, shift=-number * SECOND, salt=short, event_salt=event)
                yield from _in("JobsTable", copies(rows, change))
        yield from self._queue()

    def _queue(self) -> Iterator[Stored]:
        """The queue of one limit, whose row counts who waits there."""
        own = self._played.rows(table="JobsTable", of="queued")
        waiter = [item for item in own if item["sk"]["S"].startswith("WAIT#")]
        job_ids = {item["job_id"]["S"] for item in waiter}
        jobs = [item for item in own if item.get("job_id", {}).get("S") in job_ids]
        jobs += [item for item in own if item.get("event_job", {}).get("S") in job_ids]
        running = self._played.rows(table="RunsTable", of="queued")
        [limit] = self._played.of_keys("JobsTable", f"LIMIT#workflow:{SEED_APP}.narrow", "STATE")
        holder = self.change("queued", 0, "queued-00000", "of-queued-0000", salt="holder")
        yield from _in("RunsTable", copies(running, holder))
        for counted in copies([limit], holder):
            yield "JobsTable", {**counted, "waiters": {"N": str(self.size.queued)}}
        names = list(self.names("queued", self.counts()["queued"]))
        for number in range(self.size.queued):
            app, short, dataset = names[number % len(names)]
            salt = f"{short}/{number}"
            change = self.change("queued", app, short, dataset, shift=-number * SECOND, salt=salt, event_salt=salt)
            yield from _in("JobsTable", copies(jobs, change))


def _in(table: str, items: Iterable[Item]) -> Iterator[Stored]:
    return ((table, item) for item in items)
