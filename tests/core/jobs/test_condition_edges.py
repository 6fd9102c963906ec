"""Every constraint as a whole `Condition`, at the instants at which it changes (C1-C8, C15, C16)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.constraints.constraint import Condition
from chalicelib.core.constraints.load import LoadReading
from chalicelib.core.constraints.probe import ProbeResult
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, iso
from chalicelib.core.jobs import check
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import LIMIT, NAME, NOON, concurrency, facts, job, met, schedule, workflow

CPU: dict[str, Any] = {"cloudwatch": {"namespace": "AWS/RDS", "metric": "CPUUtilization"}}
LOAD: dict[str, Any] = {"type": "load", "of": CPU, "below": 0.7}
LOAD_RULE = "CPUUtilization of AWS/RDS is below 0.7, else wait"
APPROVAL: dict[str, Any] = {"type": "approval", "role": "owner"}
ARN = "arn:aws:lambda:us-east-1:123456789012:function:ready"
PROBE: dict[str, Any] = {"type": "probe", "target": {"type": "lambda", "function": ARN}}
PROBE_RULE = f"the probe {ARN} allows the launch, else"
FRESH: dict[str, Any] = {"type": "fresh", "workflows": ["demo.flights.raw"], "within": "1d", "on_unmet": "wait"}
RATE: dict[str, Any] = {"type": "rate", "max": 1, "per": "hour"}


def evaluate(*documents: dict[str, Any], what: Job | None = None, now: Instant = NOON, **known: Any) -> list[Condition]:
    made = schedule(constraints=list(documents))
    return list(check.conditions_of(what or met(), facts(schedule=made, **known), made, now))


def constraint(document: dict[str, Any]) -> Any:
    return schedule(constraints=[document]).constraints[0]


def expected(of: Any, met: bool, why: str, *rest: Any, **fields: Any) -> Condition:
    return Condition(of, met, why.partition(", else ")[2].partition(": ")[2], *rest, **fields)


def patient(document: dict[str, Any]) -> Any:
    return constraint(document | {"on_unmet": "wait"})


# -- time, slots and upstreams -------------------------------------------------------------------------------------


def test_c2_a_delay_is_met_exactly_at_its_instant() -> None:
    delay = {"type": "delay", "after": "15m"}
    opens = NOON + 15 * MINUTE
    rule = "15m after the job was created, else wait"
    [before] = evaluate(delay, now=opens - 1)
    assert before == expected(constraint(delay), False, f"{rule}: not before {iso(opens)}", opens)
    [then] = evaluate(delay, now=opens)
    assert then == expected(constraint(delay), True, f"{rule}: met")


@pytest.mark.parametrize(
    ("what", "began"),
    [
        (job("gathering", met_at=NOON + HOUR), NOON + HOUR),
        (job("detached", met_at=NOON + HOUR), NOON + HOUR),
        (job("gathering"), NOON + 2 * HOUR),
        (job("detached"), NOON + 2 * HOUR),
        (job("fire", met_at=NOON + HOUR), NOON),
        (job("run_now"), NOON),
    ],
)
def test_c2_a_delay_counts_from_the_match_or_the_creation(what: Job, began: Instant) -> None:
    delay = {"type": "delay", "after": "15m", "since": "met"}
    [condition] = evaluate(delay, what=what, now=NOON + 2 * HOUR)
    opens = began + 15 * MINUTE
    assert condition.met is (opens <= NOON + 2 * HOUR)
    assert condition.until == (None if condition.met else opens)


def test_c1_a_held_slot_is_shown_as_held() -> None:
    limit = concurrency(2, "wait")
    full = {LIMIT: LimitState(LIMIT, active=2)}
    rule = "at most 2 runs of the workflow at a time, else wait"
    assert evaluate(limit, limit_states=full) == [expected(constraint(limit), False, f"{rule}: 2 of 2 in use")]
    [held] = evaluate(limit, what=met(held=(LIMIT,)), limit_states=full)
    assert held == expected(constraint(limit), True, f"{rule}: this job holds a slot")


def test_c5_a_rate_whose_entry_is_held_is_met_at_once() -> None:
    limit_name = f"rate:{NAME}:1/{HOUR}"
    used = {limit_name: LimitState(limit_name, starts={"other": NOON})}
    [unmet] = evaluate(RATE, limit_states=used, now=NOON + MINUTE)
    assert (unmet.met, unmet.until) == (False, NOON + HOUR)
    [held] = evaluate(RATE, what=met(held=(limit_name,)), limit_states=used, now=NOON + MINUTE)
    assert held == expected(constraint(RATE), True, "at most 1 run per hour, else wait: met")


def test_c7_an_upstream_is_fresh_for_its_whole_span() -> None:
    rule = "demo.flights.raw succeeded within 1d, else wait"
    succeeded = {"demo.flights.raw": NOON}
    [last] = evaluate(FRESH, successes=succeeded, now=NOON + DAY)
    assert last == expected(constraint(FRESH), True, f"{rule}: met")
    [stale] = evaluate(FRESH, successes=succeeded, now=NOON + DAY + 1)
    answer = f"{rule}: demo.flights.raw last succeeded at {iso(NOON)}"
    assert stale == expected(constraint(FRESH), False, answer)
    [never] = evaluate(FRESH)
    assert never.why.text == f"{rule}: demo.flights.raw has not succeeded yet"


# -- load (C6) -----------------------------------------------------------------------------------------------------


def reading(value: str | None, until: Instant = NOON + MINUTE, why: str = "") -> LoadReading:
    return LoadReading(value, NOON, until, why)


def test_c6_a_load_is_open_until_it_is_measured() -> None:
    asked = expected(constraint(LOAD), False, f"{LOAD_RULE}: measured once all other constraints are met", open=True)
    assert evaluate(LOAD) == [asked]
    assert (asked.waits, asked.aborts) == (False, False)


@pytest.mark.parametrize("kept", [True, False])
def test_c6_a_load_is_judged_by_its_reading_fresh_or_kept(kept: bool) -> None:
    def judged(value: str) -> Condition:
        said = reading(value)
        [condition] = (
            evaluate(LOAD, what=met(measured={"0": said.kept()})) if kept else evaluate(LOAD, loads={"0": said})
        )
        return condition

    assert judged("0.69") == expected(constraint(LOAD), True, f"{LOAD_RULE}: met, the value is 0.69")
    until = NOON + MINUTE
    answer = f"{LOAD_RULE}: the value is 0.7 at {iso(NOON)}; measured again at {iso(until)}"
    assert judged("0.7") == expected(constraint(LOAD), False, answer, until)


def test_c6_a_kept_reading_holds_until_its_instant_fresh_always() -> None:
    good = reading("0.1", until=NOON + MINUTE)
    kept = met(measured={"0": good.kept()})
    assert evaluate(LOAD, what=kept, now=NOON + MINUTE - 1)[0].met
    [again] = evaluate(LOAD, what=kept, now=NOON + MINUTE)
    answer = f"{LOAD_RULE}: measured once all other constraints are met; the last value is 0.1"
    assert again == expected(constraint(LOAD), False, answer, open=True)
    assert evaluate(LOAD, loads={"0": good}, now=NOON + HOUR)[0].met
    unknown = met(measured={"0": reading(None).kept()})
    assert (
        evaluate(LOAD, what=unknown, now=NOON + HOUR)[0].why.text
        == f"{LOAD_RULE}: measured once all other constraints are met"
    )


@pytest.mark.parametrize("on_unmet", ["wait", "abort"])
def test_c6_an_unmeasured_load_waits_even_where_unmet_aborts(on_unmet: str) -> None:
    asked = LOAD | {"on_unmet": on_unmet}
    [condition] = evaluate(asked, loads={"0": reading(None, why="throttled")})
    rule = LOAD_RULE.replace("else wait", f"else {on_unmet}")
    answer = f"{rule}: the measurement failed: throttled; measured again at {iso(NOON + MINUTE)}"
    assert condition == expected(patient(LOAD), False, answer, NOON + MINUTE)
    assert (condition.waits, condition.aborts) == (True, False)
    [unmet] = evaluate(asked, loads={"0": reading("0.9")})
    assert (unmet.waits, unmet.aborts) == (on_unmet == "wait", on_unmet == "abort")


def test_c6_each_load_is_judged_by_its_own_reading() -> None:
    free = {"type": "load", "of": {"subnet": "subnet-0a1b2c3d"}, "at_least": 50}
    both = evaluate(LOAD, free, loads={"0": reading("0.1"), "1": reading("49")})
    assert [each.met for each in both] == [True, False]
    assert [each.met for each in evaluate(LOAD, free, loads={"0": reading("0.9"), "1": reading("50")})] == [False, True]


def test_c6_a_load_written_twice_is_measured_once() -> None:
    assert [each.met for each in evaluate(LOAD, LOAD, loads={"0": reading("0.1")})] == [True, True]


# -- approval (C16) ------------------------------------------------------------------------------------------------


def test_c16_an_approval_waits_for_a_person_and_retry_reuses_it() -> None:
    rule = "approved by a owner, else wait"
    assert evaluate(APPROVAL) == [expected(constraint(APPROVAL), False, f"{rule}: waits for approval")]
    said = {"by": "arn:aws:iam::123456789012:user/ann", "at": NOON}
    [given] = evaluate(APPROVAL, what=met(approvals={"owner": said}))
    assert given == expected(constraint(APPROVAL), True, f"{rule}: by {said['by']} at {iso(NOON)}")
    assert not evaluate(APPROVAL, what=met(approvals={"other": said}))[0].met
    [again] = evaluate(APPROVAL, what=job("retry"))
    assert again == expected(constraint(APPROVAL), True, f"{rule}: approved for an earlier attempt")


def test_c16_an_approval_that_is_late_aborts() -> None:
    limited = APPROVAL | {"timeout": "1h"}
    ends, rule = NOON + HOUR, "approved by a owner within 1h, else wait"
    [waits] = evaluate(limited, now=ends - 1)
    assert waits == expected(constraint(limited), False, f"{rule}: waits for approval", ends)
    assert (waits.waits, waits.aborts) == (True, False)
    [late] = evaluate(limited, now=ends)
    assert late == expected(constraint(limited), False, f"{rule}: not approved by {iso(ends)}", ends, abort=True)
    assert (late.waits, late.aborts) == (False, True)


def test_c16_the_time_for_an_approval_counts_from_the_match() -> None:
    limited = APPROVAL | {"timeout": "1h"}
    [later] = evaluate(limited, what=met(met_at=NOON + MINUTE), now=NOON + HOUR)
    assert later.until == NOON + HOUR + MINUTE
    [unmet] = evaluate(limited, what=job("gathering"), now=NOON + DAY)
    assert (unmet.until, unmet.abort) == (NOON + DAY + HOUR, False)


def test_c16_the_approval_of_its_workflow_follows_all_others() -> None:
    asks = workflow(approval={"type": "approval", "role": "owner"})
    delay, own = evaluate({"type": "delay", "after": "1m"}, workflow=asks)
    assert own.why.text == f"approved by a owner for workflow {NAME}, else wait: waits for approval"
    assert [each.met for each in (delay, own)] == [False, False]


# -- probe (C15) ---------------------------------------------------------------------------------------------------


def test_c15_a_probe_is_open_before_a_call_and_after_expiry() -> None:
    is_open = expected(
        constraint(PROBE), False, f"{PROBE_RULE} wait: called once all other constraints are met", open=True
    )
    assert evaluate(PROBE) == [is_open]
    kept = met(probed=ProbeResult("unmet", NOON, NOON + MINUTE, "no stock").kept())
    [unmet] = evaluate(PROBE, what=kept, now=NOON + MINUTE - 1)
    answer = f"{PROBE_RULE} wait: no stock; called again at {iso(NOON + MINUTE)}"
    assert unmet == expected(constraint(PROBE), False, answer, NOON + MINUTE)
    assert evaluate(PROBE, what=kept, now=NOON + MINUTE) == [is_open]


@pytest.mark.parametrize("on_unmet", ["wait", "abort"])
def test_c15_each_probe_answer_decides_the_condition(on_unmet: str) -> None:
    asked, rule, until = PROBE | {"on_unmet": on_unmet}, f"{PROBE_RULE} {on_unmet}", NOON + MINUTE

    def said(verdict: Any, why: str = "") -> Condition:
        [condition] = evaluate(asked, probe=ProbeResult(verdict, NOON, until, why))
        return condition

    assert said("met") == expected(constraint(asked), True, f"{rule}: met")
    aborted = expected(constraint(asked), False, f"{rule}: the probe aborts the job: holiday", until, abort=True)
    assert said("abort", "holiday") == aborted
    answer = f"{rule}: no stock; called again at {iso(until)}"
    assert said("unmet", "no stock") == expected(constraint(asked), False, answer, until)
    assert said("failed", "no stock") == expected(patient(asked), False, answer, until)


# -- which external constraints are queried ------------------------------------------------------------------------


def test_l12_backfill_waits_for_slots_approvals_and_probes_only() -> None:
    window = {"type": "time_window", "start": "22:00", "end": "06:00"}
    gap = {"type": "since_last_run", "at_least": "1h"}
    delay = {"type": "delay", "after": "15m"}
    every = (concurrency(1), delay, window, gap, RATE, FRESH, LOAD, APPROVAL, PROBE)
    kinds = [type(each.constraint).__name__ for each in evaluate(*every)]
    assert kinds == [type(constraint(each)).__name__ for each in every]
    filled = evaluate(*every, what=job("backfill", backfill="b1"))
    assert [type(each.constraint).__name__ for each in filled] == ["Concurrency", "Approval", "Probe"]


def test_c8_limits_and_rates_have_queues_and_no_clock() -> None:
    full = {LIMIT: LimitState(LIMIT, active=1)}
    for limit in (concurrency(1, "wait"), RATE | {"on_unmet": "wait"}):
        assert not evaluate(limit, limit_states=full)[0].waits
    assert evaluate(FRESH)[0].waits
