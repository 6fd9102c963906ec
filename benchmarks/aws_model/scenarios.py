"""What is predicted: bursts, steady load, event to start, the paces of policies, registration.

Each function plays one scenario and returns its figures. All raise `checks.Broken` if a promise does not hold.
"""

from __future__ import annotations

from typing import Any

from benchmarks import registration as measured
from benchmarks.aws_model import api, checks
from benchmarks.aws_model.invocation import Cpu
from benchmarks.aws_model.region import Region, Setup, opened
from benchmarks.cost.paths import APP, CLEAN, KEYS, SQS
from benchmarks.cost.plant import BEGIN
from benchmarks.durations import percentile
from benchmarks.target_queue import figures
from benchmarks.tick import made_rows
from chalicelib.core.definitions.app import App
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy

AHEAD_S = 150  # from the load to the instant: two ticks lie between
AFTERWARDS = 2 * MINUTE  # played after the last arrival, in which repeats would come
PATIENCE = 20 * MINUTE
DAILY = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": "0 5 * * *"}}
RAMP = 10 * SECOND  # from the first start of a pace, while Lambda still starts environments
NOTIFY = {"workflows": {"notify": {"target": SQS}}}
Figures = dict[str, Any]


def burst(setup: Setup, cpu: Cpu, jobs: int) -> Figures:
    """So many schedules that are due once, all at one instant, to a queue."""
    with opened(setup, cpu) as region:
        region.deploy(NOTIFY)
        load(region, "shot", jobs, AHEAD_S)
        return delivered(region, jobs)


def burst_one_schedule(setup: Setup, cpu: Cpu, jobs: int) -> Figures:
    """One schedule whose fire has so many events."""
    with opened(setup, cpu) as region:
        once = {"type": "time", "expression": f"R1/PT{AHEAD_S}S"}
        many = {"workflow": "notify", "enabled": True, "trigger": once, "spread": {"count": jobs}}
        region.deploy({**NOTIFY, "schedules": {"many": many}})
        return delivered(region, jobs)


def beside(setup: Setup, cpu: Cpu, noisy: int, every_s: int = 5) -> Figures:
    """A quiet namespace with one schedule, beside a noisy one with so many schedules that are due at one instant. The
    result is the lateness of the quiet one before that instant, and while the noisy one is served."""
    with opened(setup, cpu) as region:
        region.deploy(NOTIFY)
        load(region, "shot", noisy, AHEAD_S)
        beat = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": f"@every {every_s}s"}}
        store.put(region.free, "namespace", "quiet", {}, "bench")
        shop = App.model_validate({**NOTIFY, "schedules": {"beat": beat}})
        deploy.deploy(region.free, "quiet", "shop", shop, "bench")
        region.tick_every_minute()
        target, instant = region.target, BEGIN + AHEAD_S * SECOND
        region.timeline.run(BEGIN + PATIENCE, lambda: len(target.arrivals) >= noisy + AHEAD_S // every_s)
        region.timeline.run(region.timeline.now + AFTERWARDS)
        served = [one.sent_at for one in target.arrivals if one.nominal_at == instant]
        if len({one.event_id for one in target.arrivals if one.nominal_at == instant}) < noisy:
            raise checks.Broken(f"expected {noisy} arrivals of the noisy namespace, got {len(served)}")
        end = max(served)
        quiet = [one for one in target.arrivals if one.nominal_at != instant]
        before = [one.lateness for one in quiet if one.nominal_at < instant]
        during = [one.lateness for one in quiet if instant <= one.nominal_at <= max(end, instant + 5 * SECOND)]
        return {
            "noisy": noisy,
            "noisy_seconds": round((end - instant) / SECOND, 1),
            "quiet_before_ms": shares(before),
            "quiet_during_ms": shares(during) if during else None,
            "quiet_fires_during": len(during),
        }


def steady(setup: Setup, cpu: Cpu, per_second: int, seconds: int = 60) -> Figures:
    """So many schedules due in every second."""
    with opened(setup, cpu) as region:
        region.deploy(NOTIFY)
        for second in range(seconds):
            load(region, f"s{second:03d}x", per_second, AHEAD_S + second)
        return {"per_second_offered": per_second, **delivered(region, per_second * seconds)}


def lone(setup: Setup, cpu: Cpu, fires: int = 20) -> Figures:
    """One schedule that fires every minute, and nothing else: its lateness, and what Lambda costs for a fire."""
    with opened(setup, cpu) as region:
        every = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": "* * * * *"}}
        region.deploy({**NOTIFY, "schedules": {"lone": every}})
        region.tick_every_minute()
        # The first fires start environments; they are not counted.
        warm = 3
        region.timeline.run(BEGIN + warm * MINUTE)
        known = {one.event_id for one in region.target.arrivals}
        before = region.usd_of_lambda(), region.lambdas["check"].usage.billed_ms
        region.timeline.run(region.timeline.now + fires * MINUTE)
        late = [one.lateness for one in region.target.arrivals if one.event_id not in known]
        checks.check_arrivals(region, len(known) + len(late))
        if abs(len(late) - fires) > 1:
            raise checks.Broken(f"expected {fires} fires, got {len(late)}")
        return {
            "fires": len(late),
            "lateness_ms": shares(late),
            "check_ms": round((region.lambdas["check"].usage.billed_ms - before[1]) / len(late), 1),
            "lambda_usd_per_million": round(1e6 * (region.usd_of_lambda() - before[0]) / len(late), 2),
        }


def idle_fire(setup: Setup, cpu: Cpu, fires: int = 20) -> Figures:
    """A fire after an idle hour: its lateness. Every environment but those of ticks and of their hints is new."""
    with opened(setup, cpu) as region:
        hourly = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": "0 * * * *"}}
        region.deploy({**NOTIFY, "schedules": {"hourly": hourly}})
        region.tick_every_minute()
        region.timeline.run(BEGIN + fires * 60 * MINUTE, lambda: len(region.target.arrivals) >= fires)
        checks.check_arrivals(region, fires)
        return {"fires": fires, "lateness_ms": shares([one.lateness for one in region.target.arrivals])}


def event(setup: Setup, cpu: Cpu, repetitions: int = 50) -> Figures:
    """From the put of an object that makes a partition to EMR's receipt of StartJobRun, one at a time."""
    apart = 10 * SECOND
    with opened(setup, cpu) as region:
        # A partition is ready at its first object.
        dataset = {"bucket": "lake", "prefix": "raw/flights/", "keys": KEYS}
        workflows = {"clean_flights": APP["workflows"]["clean_flights"]}
        region.deploy({"datasets": {"flights": dataset}, "workflows": workflows, "schedules": {"clean": CLEAN}})
        region.tick_every_minute()
        puts: list[float] = []
        warm = 3
        spent = 0.0
        for number in range(warm + repetitions):
            if number == warm:
                spent = region.usd_of_lambda()
            puts.append(region.timeline.now)
            region.upload(f"raw/flights/year=2013/month={number // 28 + 1}/day={number % 28 + 1}/part-0.csv")
            region.timeline.run(puts[-1] + apart)
        region.timeline.run(region.timeline.now + 3 * MINUTE)
        checks.check_starts(region, len(puts))
        rows = [row for name, row in region.tables.rows() if name == "RunsTable" and row["sk"]["S"].startswith("A#")]
        taken = len(rows)
        if taken != len(puts):
            raise checks.Broken(f"expected {len(puts)} runs, got {taken}")
        starts = sorted(at for at, _ in region.target.started)
        late = [start - put for put, start in zip(puts, starts, strict=True)][warm:]
        queued = sorted(region.noticed)[warm:]
        inside = [start - came for start, came in zip(starts[warm:], queued, strict=True)]
        return {
            "repetitions": repetitions,
            "put_to_start_ms": shares(late),
            "notified_to_start_ms": shares(inside),
            "lambda_usd_per_million": round(1e6 * (region.usd_of_lambda() - spent) / repetitions, 2),
        }


def pace(setup: Setup, cpu: Cpu, most: int, interval_s: int, jobs: int, schedules: int = 1) -> Figures:
    """So many events of one fire of each of some schedules, all under one policy. It measures the pace that the policy
    reaches, in all and from `RAMP` on, and checks that no sliding interval exceeds it. No figures of a policy that this
    version refuses."""
    with opened(setup, cpu) as region:
        once = {"type": "time", "expression": "R1/PT150S"}
        many = {
            "workflow": "notify",
            "enabled": True,
            "trigger": once,
            "spread": {"count": jobs // schedules},
            "policy": "calm",
        }
        each = {f"many{number:02d}": many for number in range(schedules)}
        policies = {"calm": {"max_events": most, "interval": f"{interval_s}s"}}
        try:
            region.deploy({**NOTIFY, "policies": policies, "schedules": each})
        except ValueError:
            return {}
        region.tick_every_minute()
        ends = BEGIN + AHEAD_S * SECOND + PATIENCE + 4 * jobs * interval_s * SECOND // most
        region.timeline.run(ends, lambda: len(region.target.arrivals) >= jobs)
        checks.check_arrivals(region, jobs)
        checks.check_pace(region.target.sends, most, interval_s * SECOND)
        at = sorted(region.target.sends)
        reached, allowed = _per_second(at), most / interval_s
        warm = [start for start in at if start >= at[0] + RAMP] or at
        # The last starts are those of jobs that have missed a permit, when no others wait.
        backlog = warm[: -int(allowed)] if len(warm) > 2 * allowed and allowed >= 1 else warm
        return {
            "policy": f"{most} in {interval_s} s",
            "jobs": jobs,
            "schedules": schedules,
            "allowed_per_second": round(allowed, 3),
            "reached_per_second": round(reached, 3),
            "share": round(reached / allowed, 3),
            "share_when_warm": round(_per_second(warm) / allowed, 3),
            "share_in_backlog": round(_per_second(backlog) / allowed, 3),
        }


def _per_second(at: list[float]) -> float:
    """The rate of these instants, which are in ms and sorted."""
    return 1000 * (len(at) - 1) / max(1.0, at[-1] - at[0])


def registration(setup: Setup, cpu: Cpu, schedules: int) -> Figures:
    """One app with so many schedules in a PUT through the API, repeated while the API's time is not enough, and once
    more unchanged."""
    app = {**NOTIFY, "schedules": {f"daily-{number:04d}": DAILY for number in range(schedules)}}
    with opened(setup, cpu) as region, api.served(region):
        region.deploy({})
        seconds, requests = api.put_app(region, app)
        again, _ = api.put_app(region, app)
        states = sum(1 for name, row in region.tables.rows() if name == "CatalogTable" and row["sk"]["S"] == "STATE")
    if states != schedules:
        raise checks.Broken(f"expected {schedules} schedules, got {states}")
    return measured.figures(schedules, seconds, requests, again)


def puts(setup: Setup, cpu: Cpu, clients: int, each: int) -> Figures:
    """So many clients, each of which puts so many schedules, one after the other. The result is how many are put a
    second, and how long a put takes."""
    with opened(setup, cpu) as region, api.served(region):
        region.deploy(NOTIFY)
        took: list[tuple[float, float]] = []
        begun = region.timeline.now
        for client in range(clients):
            api.put_each(region, DAILY, [f"c{client:02d}-{number:04d}" for number in range(each + 1)], took)
        region.timeline.run(begun + PATIENCE, lambda: len(took) >= clients * (each + 1))
        warm = sorted(took, key=lambda one: one[0])[clients:]
        stored = sum(1 for name, row in region.tables.rows() if name == "CatalogTable" and row["sk"]["S"] == "STATE")
    if stored != clients * (each + 1):
        raise checks.Broken(f"expected {clients * (each + 1)} schedules, got {stored}")
    seconds = (max(end for _, end in warm) - min(start for start, _ in warm)) / SECOND
    return {
        "clients": clients,
        "puts": len(warm),
        "per_second": round(len(warm) / seconds, 1),
        "put_ms": shares([end - start for start, end in warm]),
        "throttled": dict(sorted(region.dynamo.throughput.refused.items())),
    }


def delivered(region: Region, jobs: int) -> Figures:
    region.tick_every_minute()
    target = region.target
    region.timeline.run(BEGIN + PATIENCE, lambda: len(target.arrivals) >= jobs)
    region.timeline.run(region.timeline.now + AFTERWARDS)
    checks.check_arrivals(region, jobs)
    found = figures(target.arrivals, jobs)
    check, burst = region.lambdas["check"].usage, region.lambdas["burst"].usage
    return {
        **found,
        "check_invocations": check.invocations,
        "check_at_once": check.most_at_once,
        "burst_invocations": burst.invocations,
        "burst_at_once": burst.most_at_once,
        "lambda_usd_per_million": round(1e6 * region.usd_of_lambda() / jobs, 2),
        "tick_seconds": round(region.lambdas["tick"].usage.billed_ms / 1000, 2),
        "throttled": dict(sorted(region.dynamo.throughput.refused.items())),
        "conflicts": region.dynamo.conflicts,
        "died": checks.deaths(region),
    }


def load(region: Region, prefix: str, count: int, seconds: int) -> None:
    """Store schedules that fire once, with the rows that a PUT writes."""
    for row in made_rows(prefix, count, {"type": "time", "expression": f"R1/PT{seconds}S"}, region.wake_shards):
        region.tables.put_item(TableName="CatalogTable", Item=row)


def shares(values: list[float] | list[int]) -> dict[str, float]:
    return {
        "p50": round(percentile(values, 0.5)),
        "p99": round(percentile(values, 0.99)),
        "max": round(max(values)),
    }
