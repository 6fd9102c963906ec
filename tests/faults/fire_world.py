"""Random lives of one schedule with times: every event of every fire runs once, or is on record, never both.

A life draws an expression, jitter, a spread, a catch-up rule and the schedule's coalescing. Then acts follow each
other: time with and without ticks, updates that keep or change the trigger, holds, backlogs, drains, disables and
skips. The expected fires are counted without the code of the timers: the expressions are regular, so arithmetic does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar

from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis, duration
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.states import GATHERING_MODES, PAUSED_MODES
from chalicelib.flow import lookup
from chalicelib.flow.schedules import pauses
from tests.acceptance.words import on, time
from tests.support import events
from tests.support.clock import NOON
from tests.support.world import SQS, World, flights, full

# Each expression with its period, and whether it counts from the instant at which the schedule begins.
EXPRESSIONS: dict[str, tuple[Millis, bool]] = {
    "@every 7m": (7 * MINUTE, True),
    "@every 90s": (MINUTE + MINUTE // 2, True),
    "*/10 * * * *": (10 * MINUTE, False),
    "0 * * * *": (HOUR, False),
    "0 */20 * * * *": (20 * MINUTE, False),
}
JITTERS = (None, None, "40s", "6m", "50m")
SPREADS: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"count": 3},
    {"count": 5, "over": "4m"},
    {"count": 4, "over": "45m"},
    {"count": 6, "over": "3h", "overflow": "drop"},
    {"count": 7},
    {"count": 30, "over": "5s"},
    {"count": 12, "over": "1s", "overflow": "drop"},
)
CATCH_UPS: tuple[Any, ...] = (
    *("all", "all", "latest", "none"),
    *({"mode": "all", "within": "30m"}, {"mode": "latest", "within": "2h"}),
)
ACTS = (
    *("pass", "pass", "outage", "outage", "property", "carry", "trigger", "hold", "backlog", "resume", "resume"),
    *("drain", "disable", "enable", "enable", "skip"),
)
NAME = "tick"
PAGE = 200


@dataclass
class Life:
    """The schedule of a seed, the acts so far, and how many events are expected by now."""

    jitters: ClassVar[tuple[Any, ...]] = JITTERS
    spreads: ClassVar[tuple[Any, ...]] = SPREADS
    acts: ClassVar[tuple[str, ...]] = ACTS
    expressions: ClassVar[tuple[str, ...]] = tuple(EXPRESSIONS)
    spans: ClassVar[tuple[str, ...]] = ("50s", "4m", "13m", "47m", "1h", "3h")

    seed: int
    world: World = field(default_factory=World)
    said: list[str] = field(default_factory=list)
    expected: int = 0
    properties: int = 0
    # The jobs that were prepared for nominal instants which came after their generation had ended: no fires of it.
    not_come: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.draws = Random(self.seed)
        self.expression = self.draws.choice(self.expressions)
        self.jitter, self.spread = self.draws.choice(self.jitters), self.draws.choice(self.spreads)
        self.catch_up = self.draws.choice(CATCH_UPS)
        self.coalesce = self.spread is None and self.draws.random() < 0.3
        self.deploy()
        self.said.append(f"{self.expression}, jitter {self.jitter}, {self.spread}, catch_up {self.catch_up}")
        self.begin()

    def deploy(self) -> None:
        self.world.deploy(flights({NAME: self.document()}, queue={"target": SQS}))

    @property
    def now(self) -> Instant:
        return self.world.clock.now()

    @property
    def events(self) -> int:
        return self.spread["count"] if self.spread else 1

    @property
    def state(self) -> ScheduleState:
        found = self.world.ports.rows.get(ScheduleState, full(NAME))
        assert found is not None
        return found

    def document(self, **more: Any) -> dict[str, Any]:
        trigger = time(self.expression, **({"jitter": self.jitter} if self.jitter else {}))
        events = {"spread": self.spread} if self.spread else {"coalesce": self.coalesce}
        properties = {"number": self.properties}
        return on(trigger, "queue", catch_up=self.catch_up, properties=properties, **events, **more)

    def begin(self) -> None:
        """From now on the schedule gathers, by its present expression, or does not."""
        timer = self.world.ports.rows.get(Timer, full(NAME))
        self.since = self.now if self.state.mode in GATHERING_MODES and timer is not None else None
        self.period, from_anchor = EXPRESSIONS[self.expression]
        self.origin = timer.anchor if from_anchor and timer is not None else NOON

    def count(self) -> None:
        """Expect the fires whose nominal instants came since the last call, while the schedule gathered."""
        if self.since is not None:
            came = (self.now - self.origin) // self.period - (self.since - self.origin) // self.period
            self.expected += self.events * came
            self.since = self.now

    def act(self, what: str | None = None, span: str | None = None) -> None:
        what = what or self.draws.choice(self.acts)
        span = span or self.draws.choice(self.spans)
        at, generation = self.now, self.state.generation
        prepared = [job for job in self.world.jobs(NAME) if sort_keys.is_fire(job.sort_key)]
        try:
            self._do(what, span)
        except SluiceError as error:
            what = f"{what}, refused: {error.message}"
        self.said.append(f"{(at - NOON) / 60_000:.2f} min: {what} {span if what in ('pass', 'outage') else ''}".strip())
        self.world.settle()
        self.count()
        if what in ("pass", "outage"):
            return
        if self.state.generation != generation or self.state.mode in ("drain", "disabled"):
            self.not_come |= {job.job_id for job in prepared if (job.nominal_at or job.due_at or 0) > at}
        if self.state.mode in GATHERING_MODES:  # a resume right after a drain: these fires come after all
            self.not_come -= {job.job_id for job in self.world.jobs(NAME) if (job.nominal_at or job.due_at or 0) > at}
        self.begin()

    def _do(self, what: str, span: str) -> None:
        world = self.world
        match what:
            case "pass":
                world.pass_by(span)
            case "outage":
                world.clock.wait_until(self.now + duration(span))
                world.tick()
            case "property" | "carry":
                self.properties += 1
                world.put(NAME, self.document(on_update="carry" if what == "carry" else "drop"))
            case "trigger":
                self.count()
                self.expression = self.draws.choice([one for one in self.expressions if one != self.expression])
                world.put(NAME, self.document())
            case "hold" | "backlog" | "drain":
                world.pause(NAME, what)
            case "resume":
                world.resume(NAME)
            case "disable":
                world.disable(NAME)
            case "enable":
                world.enable(NAME)
            case _:
                _, schedule = lookup.existing(world.ports, full(NAME))
                timer = world.ports.rows.get(Timer, full(NAME))
                ahead = upcoming.preview(schedule, self.now, 2, timer)
                pauses.skip(world.ports, full(NAME), self.draws.choice(ahead), "tester")

    def end(self) -> None:
        """Let all that waits run, and end the schedule."""
        if self.state.mode in PAUSED_MODES:
            self.act("resume")
        self.act("pass", "9h")
        self.act("disable")
        self.act("pass", "5m")

    def problems(self) -> list[str]:
        """What is wrong with the runs and records."""
        kept = self.world.ports.runs
        found_runs = lookup.every(partial(kept.runs, "schedule", full(NAME)), PAGE)
        runs = {event for run in found_runs for event in events.of_run(run)}
        found_records = lookup.every(partial(kept.records, "schedule", full(NAME)), PAGE)
        # The window of a fire that did not come never ends: it came again, after a resume.
        records = [each for each in found_records if each.id not in self.not_come or each.reason.code == "window_over"]
        both = sorted(runs & {record.id for record in records})
        found = [f"has a run and a record: {each}" for each in both]
        on_record = sum(record.count * (self.events if is_of_fires(record) else 1) for record in records)
        if len(runs) + on_record != self.expected:
            found.append(f"{self.expected} events came; {len(runs)} ran, {on_record} are on record")
        waiting = [job.sort_key for job in self.world.jobs(NAME) if not job.closed]
        return found + [f"still waits: {place}" for place in waiting]


def is_of_fires(record: Record) -> bool:
    """Whether the count of a record is one of fires; else it is one of events."""
    return record.kind == "SKIPPED" and record.reason.code == "fires_skipped"


def play(seed: int, acts: int = 8) -> Life:
    life = Life(seed)
    for _ in range(acts):
        life.act()
    life.end()
    return life
