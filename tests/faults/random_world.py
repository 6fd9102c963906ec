"""A world in which any step can come at any time: users, data, EMR, queues, stale indexes and kills act on it.

Every step is one or a few invocations; the invariants are checked after each step. `rest` lets all work end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core import states
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.values import folders
from chalicelib.core.instants import MINUTE, Instant, duration
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import LEAD
from chalicelib.core.limits.policies import MAX_TOLERANCE, Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription, Timer
from chalicelib.core.targets.answers import Answer, Never, NotNow
from chalicelib.core.writes import Put
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.flow.ingest import apply
from chalicelib.flow.jobs import actions
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.runs import dead_letters
from chalicelib.flow.schedules import pauses
from chalicelib.flow.system import dispatch
from chalicelib.ports import Page
from sluice.operations.repair.repair import Finding
from tests.faults import dying, invariants
from tests.faults.scenarios_paced import beyond_pace
from tests.faults.weather import MAX_SKEW, Weather
from tests.support import backfills
from tests.support.crash import lost, redelivered, wrap
from tests.support.fakes import APPLICATION
from tests.support.repairs import mended
from tests.support.world import EMR, World, flights, full

NAMES = ("a", "b", "c")
LIVE = ("SUBMITTED", "RUNNING")
RETRIED = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
# What a policy may become: too slow for all, as it was, and fast enough for blocks of permits, also in parts.
RULES = {
    "slow": {"max_events": 1, "interval": "1h"},
    "calm": dying.POLICIES["calm"],
    "fast": dying.POLICIES["fast"],
    "faster": dying.POLICIES["faster"],
}
MAX_LEFT = 40  # rounds after the last; each of them ends the active runs and lets the next ones start


@dataclass(frozen=True)
class Rule:
    """What a policy allowed, from the instant at which no permit of the rule before it was left, to the request that
    replaced it (None: it holds)."""

    begin: Instant
    policy: Policy
    end: Instant | None = None

    def check(self, starts: list[Instant], skew: int) -> None:
        held = [at for at in starts if self.begin <= at and (self.end is None or at < self.end)]
        late = beyond_pace(held, self.policy.max_events, self.policy.span - skew)
        assert late == [], f"more than {self.policy.max_events} starts in {self.policy.interval}: {held}"


@dataclass(frozen=True)
class Layout:
    """The keys of a world's datasets, and the texts of their folders. ``{}`` stands for the number of a day."""

    keys: tuple[str, str, str]
    texts: tuple[str, str, str]

    def folders(self, number: int) -> tuple[str, ...]:
        return tuple(text.format(number) for text in self.texts)

    def numbers(self, number: int) -> dict[str, str]:
        """The values of a day as a person writes them, without leading zeros."""
        return dict(zip(self.keys, (text.lstrip("0") for text in self.folders(number)), strict=True))


# Two of three worlds have folders as other tools write them: padded, with hyphens, underscores and escapes.
LAYOUTS = (
    Layout(("year", "month", "day"), ("2013", "1", "{}")),
    Layout(("fiscal-year", "month", "day"), ("2013", "01", "{:02}")),
    Layout(("_region", "starts_at", "day"), ("eu", "07%3A00", "{:03}")),
)


class StaleWakes:
    """The wake index as DynamoDB behaves: it may miss recent writes and still return deleted rows."""

    def __init__(self, inner: Any, chance: random.Random) -> None:
        self._inner, self._chance = inner, chance
        self._hinted: list[Ref] = []
        self.honest = False

    def overdue(self, table: str, until: int, limit: int) -> tuple[Ref, ...]:
        found: tuple[Ref, ...] = self._inner.overdue(table, until, limit)
        if self.honest:
            return found
        stale = [ref for ref in self._hinted[-20:] if self._chance.random() < 0.2]
        self._hinted += found
        return tuple(dict.fromkeys([*(ref for ref in found if self._chance.random() < 0.8), *stale]))

    def due(self, table: str, shard: int, until: int, limit: int, cursor: str | None) -> Page[tuple[Ref, int]]:
        page: Page[tuple[Ref, int]] = self._inner.due(table, shard, until, limit, cursor)
        if self.honest:
            return page
        stale = [(ref, until) for ref in self._hinted[-20:] if self._chance.random() < 0.2]
        self._hinted += [ref for ref, _ in page.items]
        found = [row for row in page.items if self._chance.random() < 0.8]
        return replace(page, items=tuple(dict([*found, *stale]).items()))

    def upcoming(self, since: int, until: int) -> Any:
        return self._inner.upcoming(since, until)


class RandomWorld(World):
    """The world of all tests, with steps that a test draws at random. It is a subclass because it replaces `pass_by`: a
    tick may be killed, whether a step or a helper of the world lets the time pass.
    """

    def __init__(self, schedules: dict[str, Any], seed: int) -> None:
        self.most_runs = seed % 4  # of the EMR application at a time; 0: no limit
        limits = ((APPLICATION, self.most_runs),) if self.most_runs else ()
        super().__init__(wake_shards=1, history_shards=1, start_burst=3, emr_run_limits=limits)
        self.chance = random.Random(seed)
        self.layout = LAYOUTS[seed % len(LAYOUTS)]
        self.deploy({**self.app(schedules), "policies": dying.POLICIES, "pools": dying.POOLS})
        self.policies = ["demo.calm"]
        self.rules = [Rule(self.clock.now(), Policy.model_validate(RULES["calm"]))]
        self.pool_size = self.in_pool = 4
        self.documents = dict(schedules)
        self.wakes = StaleWakes(self.ports.wakes, self.chance)
        self.weather = Weather(self.tables, self.clock)
        self.ports = replace(self.ports, wakes=self.wakes, clock=self.weather.lambda_clock)
        self.points = wrap(self)
        self.points.armed = True
        self.keep_refs()
        self.truthful_emr()
        self.targets.emr.reckons_after = (0, 3, 30)[seed % 3] * MINUTE  # the bill is available at once, later, never
        self.slow: list[tuple[Event, list[Subscription]]] = []
        self.stalled: list[Any] = []
        self.numbers = 0
        self.has_stepped = self.was_slow = False  # all instants come from one clock, and each call takes no time

    def app(self, schedules: dict[str, Any]) -> dict[str, Any]:
        """The app with these schedules, over datasets of this world's layout."""
        made = flights(schedules, clean=RETRIED)
        datasets = {name: {**dataset, "keys": list(self.layout.keys)} for name, dataset in made["datasets"].items()}
        return {**made, "datasets": datasets}

    # -- what the fakes guarantee --------------------------------------------------------------------------------

    def keep_refs(self) -> None:
        """Keep all hints: any hint may be delivered again, much later."""
        self.old_refs: list[Ref] = []
        send = self.hints.send

        def sending(refs: Any, due: int, now: int) -> None:
            self.old_refs += refs
            send(refs, due, now)

        self.hints.send = sending

    def truthful_emr(self) -> None:
        """Check EMR's calls. An ended run is not cancelled. No run of a closed schedule is started, nor with the
        properties of a version that was updated since (C13).
        """
        emr = self.targets.emr
        start, cancel = emr.start, emr.cancel

        def starting(run: Run, context: Any) -> Answer:
            schedule_state = self.weather.undisturbed(lambda: self.ports.rows.get(ScheduleState, run.schedule))
            assert schedule_state is not None
            assert schedule_state.generation == run.generation, f"{run} is started behind {schedule_state}"
            assert states.may_start(run.kind, schedule_state.mode, run.backfill), (
                f"{run} is started behind {schedule_state}"
            )
            if run.backfill is not None:
                named = run.backfill
                row = self.weather.undisturbed(lambda: self.ports.rows.get(Backfill, run.schedule, named))
                assert row is not None
                assert row.state == "RUNNING", f"{run} is started of {row}"
            kept = run.kind in ("run_now", "retry", "backfill") or run.unknown_answer
            assert kept or run.version == schedule_state.version, (
                f"{run} is started with the properties before {schedule_state}"
            )
            return start(run, context)

        def cancelling(run: Run) -> None:
            if emr.runs[(run.target_id or "").partition("/")[2]].state in LIVE:
                cancel(run)

        emr.start, emr.cancel = starting, cancelling

    # -- steps ---------------------------------------------------------------------------------------------------

    def upload_object(self, dataset: str, number: int, name: str, size: int) -> None:
        texts = self.layout.folders(number)
        folder = f"raw/{dataset}/{folders(self.layout.keys, texts)}"

        def stored() -> Partition | None:
            return self.ports.rows.get(Partition, f"demo.{dataset}", tuple(map(decoded, texts)))

        known = self.weather.undisturbed(stored)
        self.weather.undisturbed(lambda: self.remember_readers(dataset))
        redelivered(lambda: self.upload(f"{folder}{name}", size=size))
        if self.layout is not LAYOUTS[0]:  # markers, which count nowhere
            for marker in (f"{folder[:-1]}_$folder$", f"{folder}{name}._COPYING_", f"raw/{dataset}/_SUCCESS"):
                redelivered(lambda marker=marker: self.upload(marker, size=size))
        now_known = self.weather.undisturbed(stored)
        if known is None and now_known is not None:
            self.weather.undisturbed(lambda: self.all_have(now_known.event))
        self.settle(lost)

    def post_event(self, source: int) -> None:
        redelivered(lambda: self.post("order", f"o{source}"))
        self.settle(lost)

    def all_have(self, event: Event) -> None:
        """Every schedule that waits for an event has it, once the outbox of the event is cleared."""
        marked = {(marker.schedule, marker.generation) for marker in invariants.Stock(self).applied
                  if marker.event.id == event.id}  # fmt: skip
        for row in self.ports.catalog.subscriptions(event.key, 100, None).items:
            reached = (row.schedule, row.generation) in marked
            assert reached or event.accepted_at < row.since or row.leaf == WAKE, f"{event} never reached {row}"

    def remember_readers(self, dataset: str) -> None:
        """Keep the subscriptions that a slow reader sees now, and acts on later."""
        rows = self.ports.catalog.subscriptions(f"partition:demo.{dataset}", 100, None).items
        stored = [row for row in invariants.Stock(self).applied if row.event.dataset == f"demo.{dataset}"]
        for name in {row.schedule for row in rows}:
            mine = [row for row in rows if row.schedule == name]
            self.slow += [(marker.event, mine) for marker in stored[-2:]]
        self.stalled = [job for job in invariants.Stock(self).jobs if job.sort_key.startswith("FIRE#")] or self.stalled

    def slow_reader(self) -> None:
        """Apply an event with the subscriptions that were read before the latest changes."""
        if self.slow:
            event, rows = self.slow.pop(self.chance.randrange(len(self.slow)))
            lost(lambda: apply.apply_event(self.ports, event, rows, self.clock.now()))
            self.settle(lost)

    def stalled_emitter(self) -> None:
        """An emitter resumes that read its timer long ago, and writes its fires again."""
        fires, self.stalled = self.stalled, []
        if fires:
            lost(lambda: self.ports.ledger.put_all([Put(fire) for fire in fires]))

    def old_hints(self) -> None:
        for ref in self.chance.sample(self.old_refs, min(3, len(self.old_refs))):
            lost(lambda ref=ref: dispatch.dispatch(self.ports, ref))
        self.settle(lost)

    def pass_by(self, span: str) -> None:
        end = self.clock.now() + duration(span)
        while self.clock.now() < end:
            now = self.clock.now()
            next_tick = (now // MINUTE + 1) * MINUTE
            self.clock.wait_until(min(next_tick, self.next_step(end)))
            self.settle(lost)
            if self.clock.now() >= next_tick:  # a block of permits waits for its appointments
                dying.tick(self)

    def emr_ends(self, outcome: str, reported: int) -> None:
        """One of the active runs reaches a state. Its event comes ``reported`` times: never, once or twice."""
        live = [made for made in self.targets.emr.runs.values() if made.state in LIVE]
        if live:
            made = self.chance.choice(live)
            made.state = outcome
            for _ in range(reported):
                lost(lambda: self.emr_says(made.id, outcome, "said so"))
            self.settle(lost)

    def emr_answers(self, kind: str) -> None:
        if kind == "silence":
            self.targets.emr.lose_answers = 1
        else:
            self.targets.emr.answers = [NotNow("throttled") if kind == "not now" else Never("no such role")]

    def people(self, act: Callable[[], Any]) -> None:
        """Make a user's request. Accept a refusal; repeat the request if its invocation is killed."""
        with suppress(SluiceError):
            redelivered(act)
        self.settle(lost)

    # -- weather -------------------------------------------------------------------------------------------------

    def busy_tables(self, after: int, calls: int) -> None:
        self.weather.busy(after, calls)

    def lost_answers(self, after: int, writes: int) -> None:
        self.weather.deaf(after, writes)

    def slow_tables(self, calls: int, millis: int) -> None:
        self.was_slow = True  # a decision uses an instant that has passed by the time of its write
        self.weather.slow(calls, millis)

    def clock_steps(self, skew: int) -> None:
        """The next Lambda has another clock."""
        self.has_stepped = True
        self.weather.lambda_clock.skew = max(-MAX_SKEW, min(skew, MAX_SKEW))

    def redeployed(self, burst: int, horizon: int, more_shards: bool) -> None:
        """The settings of the stack change between two invocations. The number of shards only grows."""
        made = self.ports.settings
        shards = 2 if more_shards else made.wake_shards
        changed = replace(made, start_burst=burst, horizon_seconds=horizon, wake_shards=max(shards, made.wake_shards))
        self.dynamo.shards = replace(self.dynamo.shards, wake=changed.wake_shards)
        self.ports = replace(self.ports, settings=changed)

    def cancel_job(self, number: int) -> None:
        jobs = [job for job in invariants.Stock(self).jobs if not job.closed and job.job_id]
        if jobs:
            self.people(lambda: actions.withdraw(self.ports, jobs[number % len(jobs)].job_id, "tester"))

    def cancel_run(self, number: int) -> None:
        living = [run for run in invariants.Stock(self).runs if not states.is_terminal(run.state)]
        if living:
            self.people(lambda: run_actions.cancel(self.ports, living[number % len(living)].run_id, "tester"))

    def redrive(self) -> None:
        found = self.weather.undisturbed(lambda: dead_letters.listed(self.ports, "demo", None, 1, None))
        for letter in found.items:
            self.people(lambda letter=letter: dead_letters.redrive(self.ports, "demo", letter.run_id))

    def queue_refuses(self) -> None:
        self.targets.queue.answers = [Never("no such queue")]

    def update(self, name: str, how: str, change: str = "") -> None:
        self.numbers += 1
        changes: dict[str, dict[str, Any]] = {
            "": {},
            "priority": {"priority": 1 + self.numbers % 9},
            "timeout": {"timeout": {"after": f"{5 + self.numbers % 20}m"}},
            "ttl": {"ttl": f"{30 + self.numbers % 60}m"},
        }
        self.documents[name] = {**self.documents[name], **changes[change]}
        document = {**self.documents[name], "properties": {"n": self.numbers}, "on_update": how}
        del document["enabled"]
        self.people(lambda: self.put(name, document))

    def skip_next(self, name: str) -> None:
        timer = self.weather.undisturbed(lambda: self.ports.rows.get(Timer, full(name)))
        if timer is not None and timer.next:
            at = min(timer.next.values())
            self.people(lambda: pauses.skip(self.ports, full(name), at, "tester"))

    def run_it(self, name: str, request: int) -> None:
        self.people(lambda: self.run_now(name, f"r{request}"))

    def backfill_it(self, name: str, most: int, request: int) -> None:
        """Backfill three days of the past, or three partitions, by the kind of trigger. A trigger with neither is
        refused.
        """
        days = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:21:00Z"}
        named = [self.layout.numbers(number) for number in (1, 2, 3)]
        for fields in (days, {"partitions": {"values": named, "dataset": "flights"}}):
            self.people(lambda fields=fields: backfills.begin(self, name, f"r{request}", concurrency=most, **fields))

    def stop_backfill(self, name: str, runs: bool) -> None:
        for row in self.weather.undisturbed(lambda: self.ports.jobs.backfills(full(name)))[:1]:
            self.people(lambda row=row: backfills.stop(self, name, row.id, runs))

    def dies_after(self, effects: int) -> None:
        self.points.die_after = [self.points.count + effects]

    def repair(self, minutes: int) -> None:
        """Repair tables that need none, with what has happened within these minutes."""
        self.repaired(self.clock.now() - minutes * MINUTE)

    def repaired(self, since: Instant) -> list[Finding]:
        """Repair the tables, which nobody else uses meanwhile. A repair that dies is run again."""
        found = list[Finding]()

        def run() -> None:
            found[:] = mended(self, since)

        self.weather.undisturbed(lambda: redelivered(run))
        self.stops_readers()
        return found

    def stops_readers(self) -> None:
        """No invocation goes on that has read the tables before."""
        self.slow, self.stalled = [], []

    def forget_hints(self) -> None:
        self.hints.sent = []

    def policy_becomes(self, rule: str) -> None:
        """Replace the rule of the policy. Permits of the rule before it are used for a few seconds more."""
        began = self.clock.now()
        for name in self.policies:
            self.people(lambda name=name: store.put(self.ports, "policy", name, RULES[rule], "tester"))
        self.rules[-1] = replace(self.rules[-1], end=began)
        begin = self.clock.now() + LEAD + MAX_TOLERANCE + 2 * MAX_SKEW
        self.rules.append(Rule(begin, Policy.model_validate(RULES[rule])))

    def keeps_pace(self) -> None:
        """If all schedules share a policy, no interval holds more starts than it allows, repeats included (E3)."""
        if all("policy" in document for document in self.documents.values()):
            starts = sorted([*self.targets.emr.called_at, *self.targets.queue.sent_at])
            for rule in self.rules:
                rule.check(starts, 2 * MAX_SKEW * self.has_stepped)

    def run_many(self, name: str, count: int, request: int) -> None:
        """Several jobs of a schedule, which its limits let wait together."""
        for number in range(count):
            with suppress(SluiceError):
                redelivered(lambda number=number: self.run_now(name, f"m{request}-{number}"))
        self.settle(lost)

    def burst(self, name: str, count: int, request: int, rule: str) -> None:
        """Let several jobs of a schedule wait for its policy, then make the policy fast: it sends them in blocks."""
        self.policy_becomes("slow")
        self.run_many(name, count, request)
        self.policy_becomes(rule)

    def upload_app(self, number: int, how: str, left_out: str) -> None:
        """Deploy an uploaded document of the whole app, which answers 202; with the same number again, a repeat of
        the same request. Schedules that the document leaves out are deleted."""
        key = ("demo.flights", f"u{number}")
        if key not in self.payloads.uploads:
            self.numbers += 1
            schedules = {
                name: {**document, "properties": {"n": self.numbers}, "on_update": how}
                for name, document in self.documents.items()
                if name != left_out
            }
            self.payloads.uploads[key] = json.dumps(self.app(schedules)).encode()
        sent = self.payloads.uploads[key]

        def send() -> None:
            plan = deploy.checked(self.ports, "demo", "flights", App.model_validate_json(sent), None)
            uploaded.begin(self.ports, plan, key[1], sent, "tester")

        self.people(send)

    def resize(self, size: int, reserved: int = 1) -> None:
        self.in_pool, self.pool_size = self._in_pool(), size
        shares = {"flights.join": {"reserved": reserved}} if reserved else {}
        document = Pool.model_validate({"size": size, "shares": shares}).model_dump(mode="json")
        self.people(lambda: store.put(self.ports, "pool", "demo.p", document, "tester"))

    def takes(self, workflow: str, slots: int) -> None:
        """From now on runs of a workflow take this many units of a pool, even if a job already holds fewer."""

        def change() -> None:
            document = store.get(self.ports, "workflow", full(workflow)).document
            store.put(self.ports, "workflow", full(workflow), {**document, "slots": slots}, "tester")

        self.people(change)

    def keeps_pool(self) -> None:
        """No more units are in use than the pool has. Runs that started before the pool shrank continue (W3)."""
        in_use = self._in_pool()
        assert in_use <= max(self.pool_size, self.in_pool), f"{in_use} of {self.pool_size} units are in use"
        self.in_pool = min(self.in_pool, in_use)

    def keeps_application(self, found: list[Run]) -> None:
        """No more runs of the EMR application are active than its limit allows."""
        living = [run for run in found if not states.is_terminal(run.state)]
        there = [run.run_id for run in living if run.request.target.get("application_id") == APPLICATION]
        assert not self.most_runs or len(there) <= self.most_runs, f"{len(there)} of {self.most_runs} runs: {there}"

    def _in_pool(self) -> int:
        return sum(state.active for name, state in invariants.Stock(self).lines.items() if names.is_pool(name))

    # -- the end -------------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """End all faults: no more kills and stale reads. Paused schedules resume, time passes, and endless schedules
        are closed.
        """
        self.points.die_after, self.wakes.honest = None, True
        self.weather.clears_up()
        self.targets.emr.answers, self.targets.emr.lose_answers = [], 0
        for name in NAMES:
            with suppress(SluiceError):
                self.resume(name)
        self.resize(6)  # a job that requests more than the pool has waits for this
        self.policy_becomes("calm")
        self._ends_of_runs(8)
        invariants.check_awake(self)
        for name in NAMES:
            with suppress(SluiceError):
                self.resume(name)  # Sluice may have paused it after its failures
        self._ends_of_runs(4)
        for name in NAMES:
            with suppress(SluiceError):
                self.disable(name)  # it may have been deleted at the end of its ttl
        self._ends_of_runs(8)
        for _ in range(MAX_LEFT):  # backfills of many days, one at a time; many jobs under a rate
            if any(state.active or state.waiters for state in invariants.Stock(self).lines.values()):
                self._ends_of_runs(1)
        invariants.check_rest(self, one_clock=not (self.has_stepped or self.was_slow))
        self._contexts_tell_all()

    def _ends_of_runs(self, rounds: int) -> None:
        for _ in range(rounds):
            self.pass_by("61s")
            self.clock.pass_by("11m")
            dying.tick(self)
            self.finish()
            self.settle()

    def _contexts_tell_all(self) -> None:
        stock = invariants.Stock(self)
        for run in stock.runs:
            answer = self.payloads.context(run.run_id)
            if answer is not None and run.event is None:
                marked = sorted(marker.event.id for marker in stock.applied if marker.event_job == run.run_id)
                assert sorted(event["id"] for event in answer["events"]) == marked, f"the events of {run}"
