"""Random lives of schedules with a job for each period (T24 to T28).

A life draws a dataset, the zone of its folders, a schedule, and a day near which the clocks of the zone change. Then
its partitions come in any order: twice, in other spellings, in the middle of each other's calls. Lambdas die, clocks
differ by a second, people change the schedule, namespaces move, tables are restored.

The oracle knows nothing of the code under test. `Layout.parts` walks the clocks of the zone in steps of a quarter of an
hour, and says which folders each period has. What has come is read from the registry. What ran is read from the
contexts of runs, as the jobs got them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import pairwise, product
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, duration, parse_instant
from chalicelib.core.jobs import gather
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.triggers.parts import came, values_of
from chalicelib.core.writes import Write
from chalicelib.flow import lookup
from chalicelib.flow.runs import actions as of_runs
from chalicelib.flow.schedules import actions
from tests.faults import dying, invariants
from tests.faults.weather import LambdaClock
from tests.support import idle
from tests.support.archives import emptied, exported, imported
from tests.support.crash import lost, redelivered, wrap
from tests.support.ledgers import LedgerBetween
from tests.support.repairs import mended
from tests.support.world import World, flights, full

NAME, DATASET = "s", "demo.parts"
STEP = 15 * MINUTE
PAGE = 200
DAY = 24 * HOUR
AROUND = 80 * DAY  # how far the oracle looks before and after the days of a life
# The labels of the periods of jobs.
LABELS = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
TABLES = ("CatalogTable", "JobsTable", "RunsTable")
SKEW = 2 * SECOND  # between the clocks of two Lambdas

Values = tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Folders of periods ``each`` in the clocks of ``of_folders``, and jobs ``per`` period in those of ``zone``. Data
    comes for the periods that begin in the ``days`` from ``begins`` on. ``regions`` are listed values of a key besides;
    with ``by``, each has jobs of its own."""

    each: str
    folders: str
    per: str
    begins: str
    days: int
    zone: str = "UTC"
    of_folders: str | None = None
    of: Any = "period"
    regions: tuple[str, ...] = ()
    by: bool = False

    @property
    def dataset(self) -> dict[str, Any]:
        keys = [folder.partition("=")[0] for folder in self.folders.split("/")]
        rule = {"each": self.each, "format": self.folders, "zone": self.of_folders or self.zone}
        beside: dict[str, Any] = {"values": {"region": list(self.regions)}} if self.regions and not self.by else {}
        return {"bucket": "lake", "prefix": "raw/parts/", "keys": [*(["region"] if self.regions else []), *keys],
                "period": rule, **beside}  # fmt: skip

    @cached_property
    def begun(self) -> dict[str, Instant]:
        """The folders of all periods around the days, in the order of the first instants at which clocks show them."""
        return self._shown(self.folders, self.of_folders or self.zone)

    @cached_property
    def labels(self) -> dict[str, Instant]:
        """The periods of jobs, by label, with their first instants."""
        return self._shown(LABELS[self.per], self.zone)

    def _shown(self, form: str, zone: str) -> dict[str, Instant]:
        tz, found = ZoneInfo(zone), dict[str, Instant]()
        first = parse_instant(f"{self.begins}T00:00:00Z") - AROUND
        for at in range(first, first + self.days * DAY + 2 * AROUND, STEP):
            shown = datetime.fromtimestamp(at / 1000, tz)
            if self.each in ("6h", "12h") and "%H" in form:
                shown = shown.replace(hour=shown.hour - shown.hour % int(self.each[:-1]))
            if self.each == "30m" and "%M" in form:
                shown = shown.replace(minute=shown.minute - shown.minute % 30)
            if "week=%Y-%m-%d" in form:
                shown -= timedelta(days=shown.weekday())
            found.setdefault(f"{shown:{form}}", at)
        whole = list(found.items())[1:]  # the first one began before
        return dict(whole)

    @cached_property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The folders that each period of a job has, by its label."""
        folders, starts, found = list(self.begun), list(self.begun.values()), {}
        low, high = starts[0] + AROUND // 2, starts[-1] - AROUND // 2
        for (label, start), (_, end) in pairwise(self.labels.items()):
            if low <= start < high:
                inside = range(bisect_left(starts, start), bisect_left(starts, end))
                if not inside:  # it lies in a longer one
                    inside = range(inside.start - 1, inside.start)
                found[label] = tuple(folders[number] for number in self._window(inside))
        return found

    def _window(self, inside: Sequence[int]) -> Sequence[int]:
        if self.of == "period":
            return inside
        last = {"period": inside[-1], "before": inside[0] - 1, "after": inside[-1] + 1}[self.of["ending"]]
        return range(last - self.of["periods"] + 1, last + 1)

    @cached_property
    def coming(self) -> list[str]:
        """The folders that may come: those that begin in the days."""
        first = parse_instant(f"{self.begins}T00:00:00Z")
        inside = [folder for folder, at in self.begun.items() if first - DAY <= at < first + self.days * DAY]
        beside = [f"region={region}/" for region in self.regions] or [""]
        return [f"{region}{folder}" for folder, region in product(inside, beside)]

    def needs(self, label: str, region: str | None) -> set[Values]:
        """The values of the partitions that a job waits for."""
        regions = [region] if region is not None else [*self.regions] or [None]
        named = product(regions, self.parts.get(label, ()))
        return {(*(() if one is None else (one,)), *values(folder)) for one, folder in named}

    @cached_property
    def _labels_of(self) -> dict[Values, list[str]]:
        found: dict[Values, list[str]] = {}
        for label, folders in self.parts.items():
            for folder in folders:
                found.setdefault(values(folder), []).append(label)
        return found

    def jobs_of(self, part: Values) -> list[dict[str, str]]:
        """The correlations of the jobs to which a partition belongs, in the order of their periods."""
        labels = self._labels_of[part[1:] if self.regions else part]
        return [{self.per: label, **({"region": part[0]} if self.by else {})} for label in labels]


def values(folder: str) -> Values:
    return tuple(part.partition("=")[2] for part in folder.split("/"))


HOURS, DAYS = "dt=%Y-%m-%d/hour=%H", "day=%Y-%m-%d"
LAYOUTS = (
    Layout("hour", HOURS, "day", "2026-03-29", 2, "Europe/Paris"),
    Layout("hour", HOURS, "day", "2026-10-25", 2, "Europe/Paris"),
    Layout("hour", "dt=%Y-%m-%d/hour=%H%z", "day", "2026-10-25", 2, "Europe/Paris"),
    Layout("hour", HOURS, "day", "2026-10-25", 2, "Europe/Paris", "UTC"),
    Layout("hour", HOURS, "day", "2026-04-05", 2, "Australia/Lord_Howe"),
    Layout("30m", "dt=%Y-%m-%d/at=%H:%M", "hour", "2026-04-04", 1, "Australia/Lord_Howe"),
    Layout("30m", "dt=%Y-%m-%d/at=%H:%M", "hour", "2026-10-03", 1, "Australia/Lord_Howe"),
    Layout("6h", HOURS, "day", "2018-11-03", 3, "America/Sao_Paulo"),
    Layout("12h", HOURS, "day", "2019-02-16", 3, "America/Sao_Paulo", of={"periods": 3, "ending": "period"}),
    Layout("day", DAYS, "week", "2011-12-26", 12, "Pacific/Apia"),
    Layout("day", DAYS, "day", "2026-03-28", 6, "Europe/Paris", of={"periods": 3, "ending": "period"}),
    Layout("day", DAYS, "day", "2011-12-28", 6, "Pacific/Apia", of={"periods": 2, "ending": "before"}),
    Layout("week", "week=%G-W%V", "day", "2026-03-23", 12, "Europe/Paris"),
    Layout("week", "week=%Y-%m-%d", "day", "2026-03-23", 12, "Europe/Paris", of={"periods": 1, "ending": "before"}),
    Layout("week", "week=%G-W%V", "day", "2011-12-26", 12, "Pacific/Apia", of={"periods": 1, "ending": "after"}),
    Layout("15m", "dt=%Y-%m-%d/at=%H:%M", "hour", "2026-03-02", 1),
    Layout("12h", HOURS, "day", "2026-03-01", 3, "Europe/Paris", regions=("eu", "us")),
    Layout("12h", HOURS, "day", "2026-03-01", 3, "Europe/Paris", regions=("eu", "us"), by=True),
    Layout("day", "year=%Y/month=%-m/day=%-d", "month", "2026-02-01", 28, "Europe/Paris"),
)  # fmt: skip
RULES: tuple[dict[str, Any], ...] = (
    {}, {}, {"late": "again"}, {"incomplete": {"allow": 1}}, {"incomplete": {"after": "2h"}},
    {"incomplete": {"allow": 2, "after": "5h"}, "late": "again"}, {"incomplete": {"after": "40m"}, "late": "ignore"},
    {"timeout": {"after": "3h"}}, {"timeout": {"after": "3h", "then": "run"}, "late": "again"}, {"timeout": "never"},
)  # fmt: skip
WAITS: tuple[list[dict[str, Any]], ...] = (
    [], [], [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
    [{"type": "delay", "after": "9m", "since": "met"}],
)  # fmt: skip
SPANS = ("1s", "20s", "2m", "47m", "1h", "5h", "26h")
DATA = (*("arrive",) * 12, *("pass",) * 3, *("dies",) * 2, "amid", "amid", "skew", "forget", "finish", "finish", "fail")
PEOPLE = (
    *DATA, *("carry", "put", "late", "trigger", "disable", "enable", "enable", "delete", "hold", "backlog", "drain"),
    *("resume", "resume", "stop", "start", "start", "rerun", "now"),
)  # fmt: skip
KINDS = {"data": DATA, "people": PEOPLE, "moved": (*PEOPLE, "move", "move"), "restored": (*DATA, "restore")}


class Amid(LedgerBetween):
    """Runs an invocation in the middle of another one, before one of its commits."""

    act: tuple[int, Callable[[], object]] | None = None

    def before(self, writes: Sequence[Write]) -> None:
        if self.act is None:
            return
        left, act = self.act
        self.act = (left - 1, act) if left else None
        if not left:
            act()


class MortalWorld(World):
    def settle(self, invoke: Callable[[Any], Any] = lost) -> None:
        super().settle(invoke)

    def tick(self) -> None:
        dying.tick(self)


@dataclass
class Life:
    """The schedule of a seed, and what has happened so far."""

    seed: int
    kind: str | None = None
    world: World = field(default_factory=lambda: MortalWorld(**dying.SMALL))
    said: list[str] = field(default_factory=list)
    began: list[int] = field(default_factory=list)  # the generations in which the trigger began anew
    rules: set[str] = field(default_factory=set)
    again: bool = False
    requests: int = 0
    lives: int = 0  # how often the schedule was created

    def __post_init__(self) -> None:
        self.draws = Random(self.seed)
        self.kind = self.kind or self.draws.choice(list(KINDS))
        self.layout = self.draws.choice(LAYOUTS)
        self.fields, self.waits = dict(self.draws.choice(RULES)), self.draws.choice(WAITS)
        self.priority = 1
        self.points = wrap(self.world)
        self.amid = Amid(self.world.ports.ledger)
        self.clock = LambdaClock(self.world.clock)
        self.world.ports = self.world.with_ports(ledger=self.amid, clock=self.clock)
        self.points.armed = True
        self.sent: list[str] = []
        self.kept: list[tuple[Instant, Any]] = []
        if parse_instant(f"{self.layout.begins}T00:00:00Z") > self.now and self.draws.random() < 0.6:
            self.world.clock.wait_until(parse_instant(f"{self.layout.begins}T06:00:00Z"))
        app = flights({NAME: self.document()}, clean={"target": {"type": "emr_serverless", "entry_point": "s3://c/j"}})
        self.world.deploy({**app, "datasets": {"parts": self.layout.dataset}})
        self.begins()
        # Some parts never come, and some come twice.
        folders = [each for each in self.layout.coming for _ in range(self.draws.choice((1, 1, 1, 1, 1, 2)))]
        self.left = [each for each in folders if self.draws.random() < 0.97]
        self.shuffled = self.draws.random() < 0.4
        if self.shuffled:
            self.draws.shuffle(self.left)
        self.say(f"{self.kind}: {self.layout}, {self.fields}, {self.waits}")

    @property
    def now(self) -> Instant:
        return self.world.clock.now()

    @property
    def state(self) -> ScheduleState | None:
        return self.world.ports.rows.get(ScheduleState, full(NAME))

    def say(self, text: str) -> None:
        self.said.append(f"{self.now / MINUTE:.3f}: {text}")

    def begins(self) -> None:
        state = self.state
        assert state is not None
        self.began.append(state.generation)
        self.again |= self.fields.get("late") == "again"

    def document(self, **more: Any) -> dict[str, Any]:
        leaf = {"type": "partition", "dataset": "parts", "of": self.layout.of}
        by = {"by": ["region"]} if self.layout.by else {}
        return {
            "workflow": "clean", "enabled": True, "trigger": leaf, "per": self.layout.per, "zone": self.layout.zone,
            "constraints": self.waits, "priority": self.priority, **by, **self.fields, **more,
        }  # fmt: skip

    # -- acts ----------------------------------------------------------------------------------------------------

    def act(self, what: str) -> None:
        self.say(what)
        try:
            getattr(self, f"_{what}", partial(self._people, what))()
        except SluiceError as refused:
            self.say(f"  refused: {refused.message}")
        self.world.settle()
        if self.kind == "restored":
            self.kept.append((self.now, self.world.tables.saved()))

    def _arrive(self) -> None:
        for _ in range(self.draws.choice((1, 2, 5, 12))):
            if self.left:
                folder = self.left.pop(0)
                self._upload(folder)
                if self.draws.random() < 0.15:
                    self.world.clock.pass_by(self.draws.choice(("2ms", "700ms", "1s")))
                if self.draws.random() < 0.7:
                    self.world.settle()

    def _upload(self, folder: str) -> None:
        self.sent.append(folder)
        written = self._written(folder)
        self.say(f"  {written}")
        key = f"raw/parts/{written}/part-{self.draws.randrange(3)}.parquet"
        redelivered(lambda: self.world.upload(key, size=5))

    def _written(self, folder: str) -> str:
        """The folder, or the same with other zeros or escapes. A second folder of a partition never counts."""
        style = self.draws.randrange(5)
        if style == 0 and "%-" not in self.layout.folders and "hour=0" in folder and "z" not in self.layout.folders:
            return folder.replace("hour=0", "hour=")
        if style == 1:
            head, _, last = folder.rpartition("=")
            return f"{head}={''.join(f'%{ord(sign):02X}' for sign in last)}"
        return folder

    def _amid(self) -> None:
        """A part comes in the middle of the next invocation that commits."""
        if self.left:
            other = self.left.pop(0)
            self.amid.act = (self.draws.randrange(3), partial(self._upload, other))
            self._arrive()

    def _pass(self) -> None:
        span = self.draws.choice(SPANS)
        self.say(f"  {span}")
        idle.pass_by(self.world, span)

    def _dies(self) -> None:
        self.points.die_after = [self.points.count + self.draws.randint(1, 9)]

    def _skew(self) -> None:
        self.clock.skew = self.draws.choice((-SECOND, -150, 0, 0, 150, SECOND))

    def _forget(self) -> None:
        self.world.hints.sent = []

    def _finish(self) -> None:
        dying.finish(self.world)

    def _fail(self) -> None:
        dying.finish(self.world, lambda run: "FAILED")

    def _people(self, what: str) -> None:
        redelivered(partial(getattr(self, f"_does_{what}"), self.draws.random()))

    def _does_put(self, draw: float) -> None:
        self.priority = 1 + int(9 * draw)
        self.world.put(NAME, self.document())

    def _does_carry(self, draw: float) -> None:
        self.priority = 1 + int(9 * draw)
        self.world.put(NAME, self.document(on_update="carry"))

    def _does_late(self, draw: float) -> None:
        self.fields["late"] = "again" if draw < 0.5 else "ignore"
        self.again |= draw < 0.5
        self.world.put(NAME, self.document(on_update="carry" if draw * 10 % 1 < 0.5 else "drop"))

    def _does_trigger(self, draw: float) -> None:
        """What a job waits for changes, so that each period may run once more."""
        self.fields["incomplete"] = {"after": f"{1 + int(100 * draw)}m"}
        self.world.put(NAME, self.document())
        self.begins()

    def _does_delete(self, draw: float) -> None:
        with suppress(SluiceError):
            self.world.delete(NAME)
        self.world.clock.pass_by("3s")
        self.world.put(NAME, self.document())
        self.begins()

    def _does_disable(self, draw: float) -> None:
        self.world.disable(NAME)

    def _does_enable(self, draw: float) -> None:
        self.world.enable(NAME)

    def _does_resume(self, draw: float) -> None:
        self.world.resume(NAME)

    def _does_hold(self, draw: float) -> None:
        self.world.pause(NAME, "hold")

    def _does_backlog(self, draw: float) -> None:
        self.world.pause(NAME, "backlog")

    def _does_drain(self, draw: float) -> None:
        self.world.pause(NAME, "drain")

    def _does_stop(self, draw: float) -> None:
        self.world.stop()

    def _does_start(self, draw: float) -> None:
        self.world.start()

    def _does_rerun(self, draw: float) -> None:
        ended = [run for run in self.world.runs(NAME) if run.state in ("SUCCEEDED", "FAILED")]
        if ended:
            self.requests += 1
            of_runs.rerun(self.world.ports, ended[int(draw * len(ended))].run_id, f"again{self.requests}")

    def _does_now(self, draw: float) -> None:
        folder = self.layout.coming[int(draw * len(self.layout.coming))]
        part = values(folder)
        for correlation in self.layout.jobs_of(part)[:1]:
            self.requests += 1
            actions.run_now(self.world.ports, full(NAME), {}, f"now{self.requests}", None, correlation)

    def _move(self) -> None:
        """The namespace goes on in another installation. Hints are lost."""
        points, self.points.armed, self.amid.act = self.points.armed, False, None
        archive = exported(self.world, *self.draws.choice((["demo"], [])))
        emptied(self.world.tables)
        self.world.hints.sent = []
        self.world.clock.pass_by(self.draws.choice(("1s", "9m")))
        imported(self.world, archive)
        self.points.armed = points

    def _restore(self) -> None:
        """Each table goes back to an instant of the last ten minutes, and the repair mends the rest."""
        lately = [kept for kept in self.kept if kept[0] >= self.now - 10 * MINUTE] or self.kept[-1:]
        if not lately:
            return
        chosen = [self.draws.choice(lately) for _ in TABLES]
        self.world.tables.restore({name: saved[name] for name, (_, saved) in zip(TABLES, chosen, strict=True)})
        self.world.hints.sent, self.amid.act, self.points.die_after = [], None, None
        for made in self.world.targets.emr.runs.values():
            made.token = f"forgotten {made.token}"
        since = min(at for at, _ in chosen) - MINUTE
        self.world.clock.pass_by(self.draws.choice(("1m", "20m")))
        armed, self.points.armed, self.clock.skew = self.points.armed, False, 0
        mended(self.world, since)
        # A later repair looks at events since its own instant. Those that this one applies again are older.
        self.world.pass_by("3m")
        self.kept = []
        self.points.armed = armed

    def end(self) -> None:
        self.say("the end")
        self.points.armed, self.points.die_after, self.amid.act, self.clock.skew = False, None, None, 0
        self.world.pass_by("2m")
        for act in (self.world.start, partial(self.world.resume, NAME), partial(self.world.enable, NAME)):
            with suppress(SluiceError):
                act()
        for folder in self.left:
            self._upload(folder)
        for _ in range(4):
            self.world.settle()
            self.world.finish()
            idle.pass_by(self.world, "11m")
        for _ in range(80):  # a concurrency of one
            if not self.world.finish():
                break
            self.world.settle()
            idle.pass_by(self.world, "1m")

    # -- the oracle ----------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        self.registry = {row.values: row for row in self._registered()}
        every = lookup.every(partial(self.world.ports.runs.runs, "schedule", full(NAME)), PAGE)
        # A run whose start was aborted, by a disable right after its claim, has not run its period.
        own = [run for run in every if run.attempt == 1 and run.rerun_of is None and run.event is None]
        self.of_data = [run for run in own if run.state != "ABORTED"]
        self.of_data.sort(key=lambda run: (run.claimed_at, run.run_id))
        self.parts_of = {run.run_id: self._parts(run) for run in self.of_data}
        return [*self._unregistered(), *self._started_twice(), *self._wrong_runs(), *self._ran_too_often(),
                *self._lost(), *self._wrong_jobs()]  # fmt: skip

    def _registered(self) -> list[Partition]:
        return list(lookup.every(lambda size, cursor: self.world.ports.catalog.partitions(DATASET, size, cursor), PAGE))

    def _unregistered(self) -> list[str]:
        """Each folder that came is one partition, in the words of the format."""
        sent = {values(folder) for folder in self.sent}
        return [f"came and is not registered: {each}" for each in sorted(sent - self.registry.keys())] + [
            f"registered, but never came: {each}" for each in sorted(self.registry.keys() - sent)
        ]

    def _parts(self, run: Run) -> set[Values]:
        context = self.world.context(run)
        events = self.world.payloads.manifest(run.run_id) if context["manifest"] else context["events"]
        return {tuple(event["partition"].values()) for event in events}

    def _started_twice(self) -> list[str]:
        names = Counter(made.name for made in self.world.targets.emr.runs.values())
        return [f"started {count} times: {name}" for name, count in names.items() if count > 1]

    def _key(self, correlation: Mapping[str, str] | None) -> tuple[str, str | None]:
        found = correlation or {}
        return found.get(self.layout.per, ""), found.get("region")

    def _wrong_runs(self) -> list[str]:
        """A run has only partitions of its period, and says which of them it lacks."""
        found = []
        for run in self.of_data:
            needed, got = self.layout.needs(*self._key(run.correlation)), self.parts_of[run.run_id]
            missing = {tuple(each["partition"].values()) for each in self.world.context(run).get("missing", ())}
            if got - needed:
                found.append(f"{run.correlation} got {sorted(got - needed)[:3]}, which are not of its period")
            if missing != needed - got:
                found.append(f"{run.correlation} says that it lacks {sorted(missing)}, not {sorted(needed - got)}")
            if missing and not (self.fields.get("incomplete") or "then" in str(self.fields.get("timeout"))):
                found.append(f"{run.correlation} ran without {sorted(missing)[:3]}")
        return found

    def _ran_too_often(self) -> list[str]:
        """A period runs again only if its trigger began anew, or for a partition that its last run did not have."""
        found = []
        by_key: dict[Any, list[Run]] = {}
        for run in self.of_data:
            epoch = sum(run.generation >= began for began in self.began)
            by_key.setdefault((epoch, *self._key(run.correlation)), []).append(run)
        for (_, label, _), runs in by_key.items():
            # Clocks differ, so the order of their claims is not known.
            for former, later in pairwise(sorted(runs, key=lambda run: len(self.parts_of[run.run_id]))):
                if not self.again or not self.parts_of[former.run_id] < self.parts_of[later.run_id]:
                    found.append(f"{label} ran as {former.run_id}, and as {later.run_id} with nothing new")
        return found

    def _lost(self) -> list[str]:
        """A partition that came since the schedule began to gather is in a run or in a job that waits, or it is on
        record, for each job to which it belongs."""
        state, found = self.state, []
        assert state is not None and state.mode == "enabled", state
        waiting = {self._key(job.correlation): job for job in self.world.jobs(NAME) if job.traits.gathers}
        ran: dict[Any, set[Values]] = {}
        for run in self.of_data:
            if run.generation >= self.began[-1]:
                ran.setdefault(self._key(run.correlation), set()).update(self.parts_of[run.run_id])
        for part, row in self.registry.items():
            if row.event.accepted_at < state.since + SKEW:
                continue
            for number, correlation in enumerate(self.layout.jobs_of(part)):
                key, job = self._key(correlation), waiting.get(self._key(correlation))
                if part in ran.get(key, ()) or (job is not None and part in self._came(job)):
                    continue
                label = f"@{key[0]}" if number else ""
                record = self._record(ids.job_id(full(NAME), state.generation, f"{row.event.id}{label}"))
                if record is not None and "is late" in record.reason.text and key in ran:
                    continue
                if not self._aborted(correlation, state.generation, row.event.accepted_at):
                    why = record.reason.text if record is not None else "nothing says why"
                    found.append(f"{part} is lost for {key}: {why}")
        return found

    def _record(self, record_id: str) -> Record | None:
        return self.world.ports.rows.get(Record, record_id)

    def _aborted(self, correlation: Mapping[str, str], generation: int, accepted_at: Instant) -> bool:
        """Whether a timeout has ended a job of the period that had time left when a partition came."""
        span = {"never": None}.get(str(self.fields.get("timeout")), self.fields.get("timeout", {"after": "1d"}))
        if span is None:
            return False
        for number in range(9):
            source = f"period:{gather.gathering_key(correlation)}:{number}"
            record = self._record(ids.job_id(full(NAME), generation, source))
            if record is not None and record.created_at is not None:
                end = max(record.created_at, self._end_of(correlation[self.layout.per])) + duration(span["after"])
                if accepted_at < end + SKEW:
                    return True
        return False

    def _end_of(self, label: str) -> Instant:
        return min(at for at in self.layout.labels.values() if at > self.layout.labels[label])

    def _came(self, job: Job) -> set[Values]:
        return {
            tuple(values_of(leaf.parts, part).values())
            for leaf in job.leaves.values()
            if leaf.parts is not None
            for part in came(leaf.parts)
        }

    def _wrong_jobs(self) -> list[str]:
        """A job that waits has all partitions of its period that are registered, and lacks one that it needs."""
        found, state = [], self.state
        assert state is not None
        for job in self.world.jobs(NAME):
            if not job.traits.gathers:
                found.append(f"still waits: {job.sort_key}: {job.reason.text}")
                continue
            got, needed = self._came(job), self.layout.needs(*self._key(job.correlation))
            known = {part for part in needed if part in self.registry}
            # What came while the schedule gathered nothing is found with the next partition of the period.
            after = {part for part in known if self.registry[part].event.accepted_at >= state.since + SKEW}
            if got - known or (after and known - got):
                found.append(f"{job.correlation} waits with {len(got)} of {len(known)}: lacks {sorted(known - got)}")
            if needed <= got:
                found.append(f"{job.correlation} waits, and has all: {job.reason.text}")
        return found


def play(seed: int, acts: int = 22, kind: str | None = None) -> Life:
    life = Life(seed, kind)
    for _ in range(acts):
        life.act(life.draws.choice(KINDS[life.kind or "data"]))
    life.end()
    invariants.check(life.world)
    return life
