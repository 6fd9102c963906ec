"""What is predicted of thousands of rows at once: emission, overdue rows, a full tick, waking, an upload.

As in `scenarios`, each function plays one scenario, returns its figures, and raises `checks.Broken` if a promise does
not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.aws_model import api, checks
from benchmarks.aws_model.invocation import Cpu
from benchmarks.aws_model.region import Region, Setup, opened
from benchmarks.aws_model.scenarios import AFTERWARDS, AHEAD_S, DAILY, NOTIFY, PATIENCE, Figures, load
from benchmarks.aws_model.services import Message
from benchmarks.cost.paths import APP
from benchmarks.cost.plant import BEGIN
from chalicelib import handlers
from chalicelib.core.instants import MINUTE, SECOND, Instant, parse_instant
from chalicelib.core.rows.deployment import Deployment
from chalicelib.flow.schedules import actions, pauses

RESUME, SUCCESS = 0, 1  # what wakes the jobs
CAUSES = ("resume", "success")
UPLOAD = "0" * 32
ONCE = parse_instant("2026-03-02T12:03:00Z")  # between two and three minutes after the begin


def emission(setup: Setup, cpu: Cpu, timers: int, emitters: int) -> Figures:
    """How long it takes, from a tick on, to prepare the fires of so many schedules that fire once within a minute. At
    most so many invocations of ``burst`` do it at once, beside the tick. The ramp of pollers is left out."""
    bounded = {name: replace(source, most_pollers=emitters) for name, source in setup.sources.items()}
    assumed = setup.assumed.with_changes({"pollers_at_first": emitters, "tick_twice_share": 0.0})
    with opened(replace(setup, sources={**setup.sources, **bounded}, assumed=assumed), cpu) as region:
        region.deploy(NOTIFY)
        for second in range(60):
            load(region, f"s{second:02d}x", timers // 60 + (second < timers % 60), 60 + second)
        moved: dict[str, float] = {}
        written: set[str] = set()

        def note(row: tuple[str, str, str], at: float) -> None:
            _, pk, sk = row
            if sk == "TIMER":
                moved[pk] = at
            elif sk.startswith("FIRE#"):
                written.add(pk)

        region.dynamo.on_write = note
        begun = region.timeline.now
        for minute in range(20):
            region.timeline.at(begun + minute * MINUTE, lambda: region.invoke("tick", lambda: handlers.tick()))
        region.timeline.run(begun + PATIENCE, lambda: len(moved) >= timers)
        if len(moved) < timers or len(written) < timers:
            raise checks.Broken(f"expected {timers} timers to move, got {len(moved)} and fires of {len(written)}")
        seconds = (max(moved.values()) - begun) / SECOND
        return {
            "timers": timers,
            "emitters": emitters,
            "seconds": round(seconds, 2),
            "per_second": round(timers / seconds, 1),
            "tick_at_once": region.lambdas["tick"].usage.most_at_once,
            "burst_at_once": region.lambdas["burst"].usage.most_at_once,
            "throttled": dict(sorted(region.dynamo.throughput.refused.items())),
            "conflicts": region.dynamo.conflicts,
        }


def overdue(setup: Setup, cpu: Cpu, jobs: int, timers: int = 0) -> Figures:
    """So many jobs that are due at one instant, whose hints were all lost: how many ticks the sweep needs. The first of
    these ticks also prepares the fires of so many timers."""
    with opened(setup, cpu) as region:
        region.deploy(NOTIFY)
        load(region, "shot", jobs, AHEAD_S)
        comes, lost = dict(region.sqs.comes), [0]

        def loses(queue: str, message: Message) -> None:
            if any(ref[0] == "job" for ref in json.loads(message.body)["refs"]):
                lost[0] += 1
            else:
                comes[queue](message)

        region.sqs.comes = {queue: partial(loses, queue) for queue in comes}
        region.tick_every_minute()
        region.timeline.run(BEGIN + (AHEAD_S + 10) * SECOND)
        tick, target = region.lambdas["tick"].usage, region.target
        before, billed, begun = tick.invocations, tick.billed_ms, region.timeline.now
        tick.longest_ms = 0.0
        region.sqs.comes = comes
        load(region, "more", timers, AHEAD_S + 100)
        found = Found(begun)
        region.timeline.run(begun + PATIENCE, lambda: found.all_of(region, "shot", jobs))
        ticks = tick.invocations - before
        region.timeline.run(begun + PATIENCE, lambda: len(target.arrivals) >= jobs + timers)
        region.timeline.run(region.timeline.now + AFTERWARDS)
        checks.check_arrivals(region, jobs + timers)
        return {
            "overdue": jobs,
            "timers": timers,
            "lost_messages": lost[0],
            "ticks": ticks,
            "seconds": round((found.at - begun) / SECOND, 1),
            "tick_seconds": round((tick.billed_ms - billed) / SECOND, 1),
            "longest_tick_s": round(tick.longest_ms / SECOND, 1),
            "died": checks.deaths(region),
        }


class Found:
    """When so many messages had arrived."""

    def __init__(self, at: float) -> None:
        self.at = at

    def all_of(self, region: Region, what: str, count: int) -> bool:
        self.at = region.timeline.now
        return len(region.target.arrivals) >= count


def waking(setup: Setup, cpu: Cpu, jobs: int, cause: int = RESUME) -> Figures:
    """So many jobs of one schedule that wait: for its resume (0), or for the success of another workflow (1). How long
    it takes until all of them are delivered, from the request on, or from the success on."""
    # Not the last fire of the schedule: then a pause would be too late.
    yearly = {"type": "time", "expression": f"{ONCE // MINUTE % 60} 12 2 3 *"}
    many = {"workflow": "notify", "enabled": True, "trigger": yearly, "spread": {"count": jobs}}
    other = {"workflow": "other", "enabled": True, "trigger": {"type": "time", "expression": "0 0 1 1 *"}}
    if cause == SUCCESS:
        many["constraints"] = [{"type": "fresh", "workflows": ["other"], "within": "1h", "on_unmet": "wait"}]
    workflows = {**NOTIFY["workflows"], "other": APP["workflows"]["clean_flights"]}
    with opened(setup, cpu) as region:
        region.deploy({"workflows": workflows, "schedules": {"many": many, "other": other}})
        region.tick_every_minute()
        region.timeline.run(ONCE - 10 * SECOND)
        if cause == RESUME:
            pauses.pause(region.free, "demo.flights.many", "hold", "bench")
        # All jobs have been checked, and wait.
        region.timeline.run(ONCE + 5 * MINUTE)
        if region.target.arrivals:
            raise checks.Broken(f"expected jobs that wait, got {len(region.target.arrivals)} messages")
        begun = _woken_at(region, cause)
        check = region.lambdas["check"].usage
        before, check.longest_ms = check.invocations, 0.0
        region.timeline.run(begun + 3 * PATIENCE, lambda: len(region.target.arrivals) >= jobs)
        ended = region.timeline.now
        region.timeline.run(ended + AFTERWARDS)
        checks.check_arrivals(region, jobs)
        return {
            "jobs": jobs,
            "cause": CAUSES[cause],
            "seconds": round((ended - begun) / SECOND, 1),
            "per_second": round(jobs * SECOND / (ended - begun), 1),
            "check_invocations": check.invocations - before,
            "longest_check_s": round(check.longest_ms / SECOND, 1),
            "throttled": dict(sorted(region.dynamo.throughput.refused.items())),
            "conflicts": region.dynamo.conflicts,
            "died": checks.deaths(region),
        }


def _woken_at(region: Region, cause: int) -> Instant:
    """Cause what wakes the jobs. Returns its instant."""
    if cause == RESUME:
        region.invoke("api", lambda: pauses.resume(region.present, "demo.flights.many", "bench"))
        return int(region.timeline.now)
    actions.run_now(region.free, "demo.flights.other", {}, "one")
    told: list[float] = []
    reports: Callable[[str, str, str], None] = region.emr.reports

    def note(application: str, run_id: str, state: str) -> None:
        if state == "SUCCESS":
            told.append(region.timeline.now)
        reports(application, run_id, state)

    region.emr.reports = note
    region.timeline.run(region.timeline.now + PATIENCE, lambda: bool(told))
    return int(told[0])


def upload(setup: Setup, cpu: Cpu, schedules: int) -> Figures:
    """One app with so many schedules, uploaded to S3 and worked off by `check`. The result says when the request is
    answered, and when the last schedule is put."""
    app = {**NOTIFY, "schedules": {f"daily-{number:05d}": DAILY for number in range(schedules)}}
    with opened(setup, cpu) as region, api.served(region):
        region.deploy({})
        region.tick_every_minute()
        begun = region.timeline.now
        answered = api.put_upload(region, app, UPLOAD)

        def ended() -> bool:
            row = region.free.rows.get(Deployment, "demo.flights", UPLOAD)
            return row is not None and row.state != "RUNNING"

        for _ in range(60 * 60):
            region.timeline.run(region.timeline.now + SECOND)
            if ended():
                break
        row = region.free.rows.get(Deployment, "demo.flights", UPLOAD)
        if row is None or row.state != "DONE" or row.ended_at is None:
            raise checks.Broken(f"expected a deployment that is done, got {row}")
        stored = sum(1 for name, one in region.tables.rows() if name == "CatalogTable" and one["sk"]["S"] == "STATE")
        if stored != schedules:
            raise checks.Broken(f"expected {schedules} schedules, got {stored}")
        seconds = (row.ended_at - begun) / SECOND
        return {
            "schedules": schedules,
            "answered_s": round(answered, 2),
            "seconds": round(seconds, 1),
            "per_second": round(schedules / seconds, 1),
            "slices": row.slices,
            "throttled": dict(sorted(region.dynamo.throughput.refused.items())),
            "died": checks.deaths(region),
        }
