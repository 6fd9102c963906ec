"""Two installations between which namespaces move, one at a time or together, in the middle of their work (L14).

Schedules of `demo` run a workflow of `lake`, and use its pool, its policy, its datasets and its events, by grants. Both
installations call the same targets and see the same S3. Invocations are killed, and so are the commands of a move,
which are then repeated. While the namespaces are apart, jobs that use the other one wait or end on record.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from chalicelib.core.backfills import request
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, duration
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.deploy import deploy, uploaded
from tests.faults import dying, invariants
from tests.faults.limits import check_limits
from tests.support import backfills
from tests.support.archives import exported, given_up, imported
from tests.support.crash import Crash, lost, redelivered, wrap
from tests.support.fakes import APPLICATION
from tests.support.repairs import mended
from tests.support.world import EMR, SQS, World, full

LAKE, DEMO = "lake", "demo"
TUNED = {**dying.SMALL, "start_burst": 9, "emr_run_limits": ((APPLICATION, 6),)}
GRANTS = {"grants": [{"to": DEMO, "run": ["*"], "follow": ["*"], "datasets": ["*"], "events": ["*"],
                      "pools": ["*"], "policies": ["*"]}]}  # fmt: skip
RETRIED = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
KEYS = ["month", "day"]
FLAG = {"ready": {"done_flag": "_SUCCESS"}, "rewritten": "again"}
OWNED = {
    "workflows": {"count": RETRIED},
    "pools": {"p": {"size": 4, "shares": {"core.count": {"reserved": 1}}}},
    "policies": {"calm": {"max_events": 3, "interval": "1m"}},
    "datasets": {"rain": {"bucket": "lake-bucket", "prefix": "raw/rain/", "keys": KEYS}},
    "schedules": {
        "own": {"workflow": "count", "trigger": {"type": "event", "event": "go"}, "coalesce": False, "pool": "p",
                "enabled": True},
        "daily": {"workflow": "count", "trigger": {"type": "partition", "dataset": "rain"}, "by": KEYS,
                  "enabled": True},
    },
}  # fmt: skip
DATASETS = {"sales": {"bucket": "lake-bucket", "prefix": "raw/sales/", "keys": KEYS, **FLAG}}
# Timers that nobody changes: each of their fires runs or is on record.
FIRES = {"tick": 8, "burst": 12}
TICK = {"trigger": {"type": "time", "expression": f"R{FIRES['tick']}/PT6M"}, "coalesce": False}
BURST = {"trigger": {"type": "time", "expression": "R4/PT12M"}, "spread": {"count": 3, "over": "4m"}}
MAX_LEFT = 40


class Installation(World):
    """``beside`` is another installation: both have one clock, and the same targets, files and alarms."""

    def __init__(self, beside: Installation | None = None) -> None:
        super().__init__(**TUNED)
        if beside is not None:
            vars(self.clock).update(vars(beside.clock))
            self.clock.__dict__ = vars(beside.clock)
            self.targets, self.payloads, self.lake = beside.targets, beside.payloads, beside.lake
            self.alarms = beside.alarms
        settings = replace(self.ports.settings, authorization="enforce")
        shared = {"targets": self.targets, "payloads": self.payloads, "lake": self.lake, "settings": settings}
        self.ports = self.with_ports(**shared)
        self.points = wrap(self)
        self.points.armed = True


class Pair:
    """``schedules`` are those of `demo`. ``home`` has the installation of each namespace."""

    def __init__(self, schedules: dict[str, Any], seed: int) -> None:
        self.chance = random.Random(seed)
        first = Installation()
        self.worlds = (first, Installation(first))
        self.home = dict.fromkeys((LAKE, DEMO), first)
        self.schedules, self.numbers, self.moves = schedules, 0, 0
        self.uploaded: Counter[str] = Counter()
        self.messages: list[str] = []  # that were acknowledged
        first.deploy(OWNED, LAKE, "core")
        first.grant(LAKE, GRANTS)
        first.deploy(self._app(schedules))
        self.began = first.clock.now()

    def _app(self, schedules: dict[str, Any]) -> dict[str, Any]:
        return {"datasets": DATASETS, "workflows": {"clean": RETRIED, "join": {"target": EMR}}, "schedules": schedules}

    # -- what happens --------------------------------------------------------------------------------------------

    def upload(self, dataset: str, number: int, name: str) -> None:
        """S3 notifies the installation of the dataset. The same object again is a new version of it."""
        key = f"raw/{dataset}/month=03/day={number:02}/{name}"
        world = self.home[LAKE if dataset == "rain" else DEMO]
        if dataset == "sales" and name == "_SUCCESS":
            self.uploaded[f"{number:02}"] += 1
        etag = f"{key}-{self.uploaded[f'{number:02}']}"
        redelivered(lambda: world.upload(key, size=10, etag=etag))
        world.settle(lost)

    def post(self, namespace: str, source: int) -> None:
        world = self.home[namespace]
        redelivered(lambda: world.post("go", f"g{source}", namespace=namespace))
        world.settle(lost)

    def alarm(self, state: str) -> None:
        change = self.worlds[0].alarm("disk", state, delivered=False)
        for world in self.worlds:
            redelivered(lambda world=world: world.deliver_alarm(change))
            world.settle(lost)

    def ends(self, outcome: str, reported: int) -> None:
        """A run ends. EMR tells both installations, each a number of times."""
        live = [made for made in self.worlds[0].targets.emr.runs.values() if made.state in ("SUBMITTED", "RUNNING")]
        if live:
            made = self.chance.choice(live)
            made.state = outcome
            for world in self.worlds * reported:
                lost(lambda world=world: world.emr_says(made.id, outcome, "said so"))
                world.settle(lost)

    def pass_by(self, span: str) -> None:
        clock = self.worlds[0].clock
        end = clock.now() + duration(span)
        while clock.now() < end:
            tick = (clock.now() // MINUTE + 1) * MINUTE
            hints = [due for world in self.worlds for due, _ in world.hints.sent if due > clock.now()]
            clock.wait_until(min([end, tick, *hints]))
            for world in self.worlds:
                world.settle(lost)
                if clock.now() >= tick:
                    dying.tick(world)

    def dies_after(self, effects: int) -> None:
        for world in self.worlds:
            world.points.die_after = [world.points.count + effects]

    # -- people --------------------------------------------------------------------------------------------------

    def people(self, world: World, act: Callable[[], Any]) -> None:
        """Make a request, again until it is acknowledged. It may be refused."""
        with suppress(SluiceError):
            redelivered(act)
        world.settle(lost)

    def demo(self, act: Callable[[World], Any]) -> None:
        world = self.home[DEMO]
        self.people(world, lambda: act(world))

    def pause(self, name: str, mode: str) -> None:
        self.demo(lambda world: world.pause(name, mode))

    def resume(self, name: str) -> None:
        self.demo(lambda world: world.resume(name))

    def run_it(self, name: str, number: int) -> None:
        self.demo(lambda world: world.run_now(name, f"r{number}"))

    def update(self, name: str, how: str) -> None:
        self.numbers += 1
        document = {**self.schedules[name], "properties": {"n": self.numbers}, "on_update": how}
        del document["enabled"]
        self.demo(lambda world: world.put(name, document))

    def upload_app(self, number: int, how: str) -> None:
        """Deploy an uploaded document; with the same number again, a repeat of the same request."""
        world, key = self.home[DEMO], ("demo.flights", f"u{number}")
        if key not in world.payloads.uploads:
            self.numbers += 1
            changed = {name: {**each, "properties": {"n": self.numbers}, "on_update": how} if name in CHANGED else each
                       for name, each in self.schedules.items()}  # fmt: skip
            world.payloads.uploads[key] = json.dumps(self._app(changed)).encode()
        sent = world.payloads.uploads[key]

        def send(world: World) -> None:
            plan = deploy.checked(world.ports, DEMO, "flights", App.model_validate_json(sent), None)
            uploaded.begin(world.ports, plan, key[1], sent, "tester")

        self.demo(send)

    def message(self, minutes: int) -> None:
        self.numbers += 1
        name, world = f"m{self.numbers}", self.home[DEMO]

        def put() -> None:
            world.message(name, due_time=f"{minutes}m", target=SQS, data=name)
            self.messages.append(name)

        self.people(world, put)

    def backfill_it(self, most: int, number: int) -> None:
        values = [{"month": "03", "day": f"{day:02}"} for day in (1, 2, 3)]
        fields = {"partitions": {"values": values, "dataset": "sales"}}
        self.demo(lambda world: backfills.begin(world, "days", f"b{number}", concurrency=most, **fields))

    def reprocess_it(self, dataset: str, number: int) -> None:
        """Partitions of `rain` have steps in both namespaces."""
        namespace = LAKE if dataset == "rain" else DEMO
        world = self.home[namespace]
        asked = request.Reprocess.model_validate({"dataset": dataset, "from": {"month": "03"}, "concurrency": 2})
        self.people(world, lambda: reprocess.begin(world.ports, namespace, asked, "tester", f"p{number}"))

    def repair(self, number: int, minutes: int) -> None:
        """Repair an installation that needs no repair, with what has happened within these minutes."""
        world = self.worlds[number]
        since = world.clock.now() - minutes * MINUTE

        def run() -> None:
            mended(world, since)

        redelivered(run)

    # -- moves ---------------------------------------------------------------------------------------------------

    def move(self, which: str, left_at: int, arrived_at: int, minutes: int) -> None:
        """Move namespaces to the other installation. Both commands of the move are killed at a write of the tables, and
        repeated. Nothing of the namespaces runs in between."""
        names = [name for name in (LAKE, DEMO) if which in (name, "both")]
        source = self.home[names[0]]
        names = [name for name in names if self.home[name] is source]
        target = self.worlds[1 - self.worlds.index(source)]
        for world in self.worlds:
            world.points.die_after = None
        archive = exported(source, *names)
        _killed_at(source, left_at, lambda: given_up(source, archive))
        target.clock.wait_until(target.clock.now() + minutes * MINUTE)
        _killed_at(target, arrived_at, lambda: imported(target, archive, into=f"i{self.worlds.index(target)}"))
        self.home |= dict.fromkeys(names, target)
        self.moves += 1

    # -- what must hold ------------------------------------------------------------------------------------------

    def check(self) -> None:
        first, second = self.worlds
        stocks = invariants.check(first, [second]), invariants.check(second, [first])
        invariants.check_apart(*stocks)
        own = stocks[self.worlds.index(self.home[DEMO])]
        check_limits([run for run in own.runs if run.workflow.startswith(f"{DEMO}.")], own.versions)

    def rest(self) -> None:
        """All faults end, all runs end, the namespaces are together again, and endless schedules are closed."""
        for world in self.worlds:
            world.points.die_after = None
        if self.home[LAKE] is not self.home[DEMO]:
            self.move(DEMO, 0, 0, 0)
        for name in self.schedules:
            self.resume(name)
        for _ in range(10):
            self._runs_end()
        for world in self.worlds:
            invariants.check_awake(world, self.worlds)
        for name in self.schedules:
            self.demo(lambda world, name=name: world.resume(name))
        for _ in range(MAX_LEFT):
            if any(state.active or state.waiters for stock in self._stocks() for state in stock.lines.values()):
                self._runs_end()
        self.demo(lambda world: [world.disable(name) for name in ENDLESS if name in self.schedules])
        for _ in range(4):
            self._runs_end()
        first, second = self.worlds
        invariants.check_rest(first, one_clock=False, beside=[second])
        invariants.check_rest(second, one_clock=False, beside=[first])
        self.check()
        self._fires_are_accounted_for()
        self._days_are_counted()
        self._messages_are_sent()

    def _stocks(self) -> Sequence[invariants.Stock]:
        return [invariants.Stock(world) for world in self.worlds]

    def _runs_end(self) -> None:
        self.pass_by("61s")
        self.worlds[0].clock.pass_by("9m")
        for world in self.worlds:
            dying.tick(world)
        for made in [made for made in self.worlds[0].targets.emr.runs.values()
                     if made.state in ("SUBMITTED", "RUNNING")]:  # fmt: skip
            for world in self.worlds:
                world.emr_says(made.id, "RUNNING")
            for world in self.worlds:
                world.emr_says(made.id, "SUCCESS")
        for world in self.worlds:
            world.settle()

    def _fires_are_accounted_for(self) -> None:
        """Each fire of a timer that nobody has changed became one run, or is on record."""
        stock = invariants.Stock(self.home[DEMO])
        for name, expected in FIRES.items():
            ran = Counter((run.due_at, run.run_id) for run in stock.runs if run.schedule == full(name))
            fired = len({run_id for _, run_id in ran})
            recorded = sum(record.count for record in stock.records if record.schedule == full(name))
            assert fired + recorded == expected, f"{name}: {fired} runs and {recorded} on record of {expected} fires"

    def _days_are_counted(self) -> None:
        """The schedule of days has each day once, and again for each version of its flag."""
        stock = invariants.Stock(self.home[DEMO])
        found: dict[str, set[str]] = {}
        for row in stock.applied:
            if row.schedule == full("days") and row.event.kind == "partition" and row.event.partition is not None:
                found.setdefault(row.event.partition["day"], set()).add(row.event.id)
        for number, versions in self.uploaded.items():
            count = len(found.get(number, ()))
            assert 1 <= count <= versions, f"day {number} counted {count} times, with {versions} versions of its flag"
        assert set(found) <= set(self.uploaded)

    def _messages_are_sent(self) -> None:
        """Each message was sent, under one id. After a death it may be sent again, under the same id."""
        queue, sent = self.worlds[0].targets.queue, dict[str, set[str]]()
        for (run_id, _), data in zip(queue.messages, queue.data, strict=True):
            sent.setdefault(str((data or {}).get("text")), set()).add(run_id)
        ids = {name: len(sent.get(name, ())) for name in set(self.messages)}
        assert ids == dict.fromkeys(ids, 1), f"messages by the number of their ids: {ids}"


CHANGED = ("days", "rainy")  # schedules that people pause, update and deploy
ENDLESS = ("days", "rainy", "dry", "follows", "loud")


class Killed(BaseException):
    """The command ends here."""


def _killed_at(world: Installation, write: int, act: Callable[[], Any]) -> None:
    """Call a command that is killed at this write of the tables (0: it is not), and then repeated."""
    left = [write]

    def kills() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    before, world.tables.after_write = world.tables.after_write, kills
    armed, world.points.armed = world.points.armed, False
    try:
        with suppress(Killed, Crash):
            act()
            return
    finally:
        world.tables.after_write, world.points.armed = before, armed
    act()
