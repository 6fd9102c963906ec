"""Random lives of a schedule whose fires are bundles, under a policy that another schedule shares.

The acts are those of `fire_world.py`, at instants close to a fire or in the middle of its calls, and more: other
spreads, cancels, refusals, redrives, other rules of the policy, deaths. The oracle reads what the queue got, and the
runs and records: each event was sent once (again only after a death), not before it was due, never more than the policy
allows; each other event has a failed run or a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import MINUTE, Instant, Millis, duration
from chalicelib.core.limits.permits import LEAD
from chalicelib.core.limits.policies import MAX_TOLERANCE, Policy
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.jobs import actions
from chalicelib.flow.runs import dead_letters
from tests.acceptance.words import on, time
from tests.faults import dying, invariants
from tests.faults.fire_world import NAME, PAGE, Life, is_of_fires
from tests.faults.random_world import Rule
from tests.support import events
from tests.support.crash import lost, redelivered, wrap
from tests.support.world import SQS, World, flights, full

POLICIES: dict[str, dict[str, Any]] = {
    "fast": {"max_events": 30, "interval": "3s"},
    "faster": {"max_events": 300, "interval": "1s"},
    "slow": {"max_events": 40, "interval": "1m"},
}
OTHER = "other"  # a schedule that shares the policy, and that nobody changes
OTHERS = 12  # events of each of its fires
ANSWERS: tuple[Answer, ...] = (Never("no such queue"), NotNow("throttled"), NoAnswer("the connection was lost"))
# How long before or after the next fire an act comes.
NEAR: tuple[Millis, ...] = (-100_000, -70_000, -30_000, -1_000, -1, 0, 1, 400, 400, 1_000, 1_000, 3_000, 20_000)


class MortalWorld(World):
    """A world whose Lambdas may be killed: the sweep repairs what is left."""

    def settle(self, invoke: Callable[[Any], Any] = lost) -> None:
        super().settle(invoke)

    def tick(self) -> None:
        dying.tick(self)


class Between:
    """The world's queue: a user acts before one of its calls."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.act: tuple[int, Callable[[], None]] | None = None  # how many calls come before it

    def start(self, *of: Any) -> Any:
        return self.start_many([of])[0]

    def start_many(self, calls: Any) -> Any:
        if self.act is not None:
            left, act = self.act
            self.act = (left - 1, act) if left else None
            if not left:
                act()
        return self._inner.start_many(calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@dataclass
class BundleLife(Life):
    """A life with bundles. ``kept`` has the fires that are prepared and have not come, with another number of events
    than the present spread: how many more. ``spare`` is how many events more or less may be expected in all: a fire in
    progress had a former spread, and got the present one by an update that drops what waits."""

    jitters: ClassVar[tuple[Any, ...]] = (None, None, "40s")
    spreads: ClassVar[tuple[Any, ...]] = (
        *({"count": 7}, {"count": 25}, {"count": 30, "over": "5s"}, {"count": 60, "over": "10s"}),
        {"count": 12, "over": "1s", "overflow": "drop"},
    )
    expressions: ClassVar[tuple[str, ...]] = ("@every 7m", "*/10 * * * *", "0 */20 * * * *")
    spans: ClassVar[tuple[str, ...]] = ("50s", "4m", "13m", "21m")
    acts: ClassVar[tuple[str, ...]] = (
        *("near",) * 6, *("amid",) * 3, *("dies",) * 2, *("spread",) * 3, *("cancel",) * 3, *("enable",) * 2,
        *("carry", "carry", "property", "property", "hold", "backlog", "resume", "resume", "drain", "disable"),
        *("trigger", "skip", "pass", "outage", "refuse", "redrive", "policy", "records"),
    )  # fmt: skip

    world: World = field(default_factory=lambda: MortalWorld(**dying.SMALL))
    kept: dict[Instant, int] = field(default_factory=dict)
    spare: int = 0
    has_died: bool = False
    # The nominal instants of these events, and when they were due.
    cancelled: dict[str, tuple[Instant, Instant]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # of these events in their fires
    again: set[str] = field(default_factory=set)  # cancelled events that an update may prepare again
    generations: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.points = wrap(self.world)
        self.points.armed = True
        self.queue = Between(self.world.targets.queue)
        self.world.targets.queue = self.queue
        super().__post_init__()
        self.until = self.now  # up to here the fires of the other schedule came

    def deploy(self) -> None:
        self.policy, self.records = self.draws.choice((None, "fast", "fast", "faster")), "fire"
        self.rules = [Rule(0, Policy.model_validate(POLICIES[self.policy or "fast"]))]
        if self.draws.random() < 0.5:  # a skip counts fires, so their spread does not change
            self.catch_up, self.acts = "all", tuple(act for act in self.acts if act != "skip")
        else:
            self.acts = tuple(act for act in self.acts if act != "spread")
        other = on(time("0 */10 * * * *"), "notify", spread={"count": OTHERS}, policy="shared")
        app = flights({NAME: self.document(), OTHER: other}, queue=self.workflow())
        self.world.deploy({**app, "policies": {"shared": POLICIES[self.policy or "fast"]}})
        self.begun_at = self.now

    def workflow(self) -> dict[str, Any]:
        return {"target": SQS, "delivery": {"records": self.records}}

    def document(self, **more: Any) -> dict[str, Any]:
        return super().document(**({"policy": "shared"} if self.policy else {}), **more)

    # -- acts ----------------------------------------------------------------------------------------------------

    def act(self, what: str | None = None, span: str | None = None) -> None:
        at, generation, former = self.now, self.state.generation, self._of_former_spreads()
        super().act(what, span)
        if self.state.generation != generation or self.state.mode not in GATHERING_MODES:
            self.kept = {}
            self.spare += sum(abs(count - self.events) for count in former.values())
        invariants._queues_are_what_jobs_say(invariants.Stock(self.world))
        present = {name: when for name, when in self.cancelled.items() if f".{ids.base36(generation)}." in name}
        if self.state.generation != generation:
            # If the trigger goes on, what was due later is prepared again under other ids. A cancelled event may not
            # be: a fire goes on with the first event that was left.
            by_due = bool(self.state.former)
            later = {name for name, instants in present.items() if instants[by_due] > at}
            self.generations += [*self.state.former, self.state.generation]
            self.again |= later if by_due else set()
            self.not_come |= later
            return
        later = {name for name, (nominal, _) in self.cancelled.items() if nominal > at}
        # After a drain, ``@every`` counts from the resume.
        comes = {name for name in later if (self.cancelled[name][0] - self.origin) % self.period == 0}
        own = comes & present.keys()
        self.not_come = self.not_come - own if self.state.mode in GATHERING_MODES else self.not_come | later

    def _do(self, what: str, span: str) -> None:
        match what:
            case "near":
                self._comes_near()
            case "amid":
                self._acts_amid()
            case "dies":
                self.points.die_after = [self.points.count + self.draws.randint(1, 12)]
                self.has_died = True
            case "spread":
                self._spreads()
            case "cancel":
                self._cancels()
            case "refuse":
                self.queue.answers += [self.draws.choice(ANSWERS)] * self.draws.choice((1, 3, 12))
            case "redrive":
                for letter in dead_letters.listed(self.world.ports, "demo", None, 20, None).items:
                    redelivered(partial(dead_letters.redrive, self.world.ports, "demo", letter.run_id))
            case "policy":
                self._rules(self.draws.choice(list(POLICIES)))
            case "records":
                self.records = "each" if self.records == "fire" else "fire"
                redelivered(partial(self._puts, "workflow", "demo.flights.queue", self.workflow()))
            case "pass" | "outage":
                super()._do(what, span)
            case _:
                redelivered(partial(super()._do, what, span))

    def _puts(self, kind: Any, name: str, document: dict[str, Any]) -> None:
        store.put(self.world.ports, kind, name, document, "tester")

    def _comes_near(self) -> None:
        timer = self.world.ports.rows.get(Timer, full(NAME))
        prepared = [fire.nominal_of(job) for job in self.world.jobs(NAME) if sort_keys.is_fire(job.sort_key)]
        ahead = [*prepared, *(timer.next.values() if timer else ())]
        if ahead:
            at = min(ahead) + self.draws.choice(NEAR)
            self.world.pass_by(f"{max(1, at - self.now)}ms")

    def _acts_amid(self) -> None:
        """The next act of a user comes before one of the next calls, and not at once."""
        name = self.draws.choice(("hold", "resume", "carry", "cancel", "spread" if "spread" in self.acts else "carry"))
        self.queue.act = self.draws.randint(0, 4), partial(self._does_amid, name)

    def _does_amid(self, name: str) -> None:
        """An act of a user in the middle of a delivery. It does not change which fires the schedule gathers."""
        if self.state.mode not in GATHERING_MODES:
            return
        points, self.points.armed = self.points.armed, False
        try:
            self._do(name, "")
            self.said.append(f"  amid a delivery at {(self.now) % (60 * MINUTE) / 1000:.3f} s: {name}")
        except SluiceError as error:
            self.said.append(f"  amid a delivery: {name}, refused: {error.message}")
        finally:
            self.points.armed = points

    def _spreads(self) -> None:
        """Another spread, for the fires that the timer has not begun."""
        self.count()
        former, timer = self.events, self.world.ports.rows.get(Timer, full(NAME))
        self.spread = self.draws.choice([one for one in self.spreads if one != self.spread])
        self.properties += 1
        redelivered(lambda: self.world.put(NAME, self.document(on_update="carry")))
        if timer is None or self.since is None:
            return
        following, more = timer.next[bundles.LEAF], self.events - former
        grid = range(self.origin, max(following, self.now) + 1, self.period)
        self.expected += more * sum(following <= nominal <= self.now for nominal in grid)
        for nominal in grid:
            if self.now < nominal < following:
                self.kept[nominal] = self.kept.get(nominal, 0) - more

    def count(self) -> None:
        since = self.since
        super().count()
        if since is not None:
            self.expected += sum(more for nominal, more in self.kept.items() if since < nominal <= self.now)
            self.kept = {nominal: more for nominal, more in self.kept.items() if nominal > self.now}

    def _of_former_spreads(self) -> dict[Instant, int]:
        """The fires that wait with another number of events than the present spread, and this number."""
        waiting = {fire.nominal_of(job): _events_in(job) for job in self.world.jobs(NAME) if job.traits.timed}
        timer = self.world.ports.rows.get(Timer, full(NAME))
        begun = {one.nominal: self.events for one in fire.begun(timer)} if timer is not None else {}
        for until, count, _ in reversed(timer.shapes) if timer is not None else ():
            begun |= {nominal: count for nominal in begun if nominal <= until}
        return {nominal: count for nominal, count in {**begun, **waiting}.items() if count != self.events}

    def _cancels(self) -> None:
        found = [(each, fire.nominal_of(job)) for job in self.world.jobs(NAME) for each in events.of_job(job)]
        for event, nominal in self.draws.sample(found, min(len(found), self.draws.randint(1, 4))):
            job = lookup.find_job(self.world.ports, event)
            due, self.numbers[event] = job.due_at or nominal, job.index
            redelivered(partial(actions.withdraw, self.world.ports, event, "tester"))
            self.cancelled[event] = nominal, due

    def _rules(self, name: str) -> None:
        began = self.now
        redelivered(partial(self._puts, "policy", "demo.shared", POLICIES[name]))
        self.rules[-1] = Rule(self.rules[-1].begin, self.rules[-1].policy, began)
        self.rules.append(Rule(self.now + LEAD + MAX_TOLERANCE, Policy.model_validate(POLICIES[name])))

    def end(self) -> None:
        self.queue.act, self.queue.answers[:], self.points.die_after = None, [], None
        self._rules("faster")
        if self.state.mode not in GATHERING_MODES or self.state.mode in ("hold", "backlog", "held"):
            self.act("resume")
        self.act("pass", "31m")
        self.act("disable")
        self.act("pass", "12m")

    # -- the oracle ----------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        kept = self.world.ports.runs
        runs = lookup.every(partial(kept.runs, "schedule", full(NAME)), PAGE)
        ran = Counter({(run.state, event) for run in runs for event in events.of_run(run)})
        known = {event for _, event in ran}
        every_record = [*lookup.every(partial(kept.records, "schedule", full(NAME)), PAGE)]
        elsewhere = known | {event for record in every_record for event in (record.id, *_events_of(record))}
        back = {name for name in self.cancelled if elsewhere & (self._ids_of(name) - {name})}
        gone = (self.not_come - (self.again - back)) | back
        records = [each for each in every_record if each.id not in gone or each.reason.code == "window_over"]
        found = [f"has a run and a record: {event}" for event in sorted(known & {record.id for record in records})]
        counted = sum(record.count * (self.events if is_of_fires(record) else 1) for record in records)
        if abs(len(known) + counted - self.expected) > self.spare:
            found.append(f"{self.expected} events came (+-{self.spare}); {len(known)} ran, {counted} are on record")
        found += [f"still waits: {job.sort_key}" for job in self.world.jobs(NAME) if not job.closed]
        return found + self._sent({event for state, event in ran if state == "SUCCEEDED"})

    def _ids_of(self, name: str) -> set[str]:
        """The ids of a cancelled event in its generation and in later ones."""
        (nominal, due), number = self.cancelled[name], self.numbers[name]
        found = set()
        own = int(name.removeprefix(f"{full(NAME)}.").partition(".")[0], 36)
        for generation in {each for each in (*self.generations, self.state.generation) if each >= own}:
            alone = fire.fire_of(Timer(full(NAME), generation, 0, 0, {}), bundles.LEAF, nominal, due, number)
            in_bundle = bundles.event_id(bundles.fire_id(full(NAME), generation, nominal), number)
            found |= {alone.job_id, in_bundle}
        return found

    def _sent(self, succeeded: set[str]) -> list[str]:
        """What is wrong with the messages: doubled, without a run, too early, too many, or none of the other
        schedule."""
        mine = [context for _, context in self.queue.messages if context["schedule"] == full(NAME)]
        sent = Counter(context["run_id"] for context in mine)
        found = [f"no message: {event}" for event in sorted(succeeded - set(sent))]
        if not self.has_died:
            found += [f"sent {times} times: {event}" for event, times in sent.items() if times > 1]
            found += [f"no run: {event}" for event in sorted(set(sent) - succeeded)]
        for (_, context), at in zip(self.queue.messages, self.queue.sent_at, strict=True):
            own = context["schedule"] == full(NAME) and "spread" not in self.acts
            if at < _earliest(context, self.spread if own else None):
                found.append(f"too early, at {at}: {context['run_id']}")
        starts = self.queue.sent_at if self.policy else [
            at for (_, each), at in zip(self.queue.messages, self.queue.sent_at, strict=True)
            if each["schedule"] == full(OTHER)
        ]  # fmt: skip
        for rule in self.rules:
            try:
                rule.check(sorted(starts), 0)
            except AssertionError as error:
                found.append(str(error))
        expected = OTHERS * (self.now // (10 * MINUTE) - self.begun_at // (10 * MINUTE))
        others = {each["run_id"] for _, each in self.queue.messages if each["schedule"] == full(OTHER)}
        ended = set(events.sent(self.world, OTHER))
        if len(others | ended) != expected or len(ended) != expected:
            found.append(f"{expected} events of the other schedule came; {len(others)} were sent, {len(ended)} ran")
        left = self.world.limit_state("policy:demo.shared")
        return found + ([f"the queue counts {left.waiters} waiters"] if left.waiters else [])


def _events_in(job: Job) -> int:
    """How many events the fire of a job has."""
    return Plan(*job.plan).events if job.is_bundle else job.shape[0] if job.shape else 1


def _events_of(record: Record) -> set[str]:
    """The ids of the events of a bundle that a record may count."""
    place = bundles.place_of(record.id)
    fire_id, first, count = place if place is not None else ("", 0, 0)
    return {bundles.event_id(fire_id, number) for number in range(first, first + count)}


def _earliest(context: Any, spread: dict[str, Any] | None) -> Instant:
    """The instant before which an event must not be sent: that of its fire, or of its number in a spread."""
    nominal: Instant = context["events"][0]["instant"]
    if spread is None or "over" not in spread:
        return nominal
    return nominal + context["spread"]["index"] * duration(spread["over"]) // spread["count"] - 1


def play(seed: int, acts: int = 12) -> BundleLife:
    life = BundleLife(seed)
    for _ in range(acts):
        life.act()
    life.end()
    return life
