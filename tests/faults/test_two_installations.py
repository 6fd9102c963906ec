"""Random worlds of two namespaces that share a workflow, a pool, a policy and datasets, and move one at a time (L14).

`python -m tests.faults.play_worlds FIRST LAST moves` plays many of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.log import logger
from tests.faults.test_random_worlds import patient
from tests.faults.two_installations import BURST, CHANGED, DEMO, FIRES, LAKE, TICK, Pair

RAIN = {"type": "partition", "dataset": f"{LAKE}.rain"}
names = st.sampled_from(["days", "days", "rainy"])
workflows = st.sampled_from(["clean", "join", f"{LAKE}.core.count", f"{LAKE}.core.count"])
pools = st.sampled_from([{}, {"pool": f"{LAKE}.p"}, {"pool": f"{LAKE}.p", "slots": 2}])
policies = st.sampled_from([{}, {}, {"policy": f"{LAKE}.calm"}])
limits = st.sampled_from(
    [
        [],
        [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
        [{"type": "concurrency", "max": 2, "on_unmet": "wait"}],
        [{"type": "rate", "max": 2, "per": "9m"}],
        [{"type": "since_last_run", "at_least": "5m", "of": "any", "on_unmet": "wait"}],
    ]
)
jitters = st.sampled_from([{}, {}, {"jitter": "2m"}, {"jitter": "5m"}])


@st.composite
def schedules(draw: Any) -> dict[str, Any]:
    def uses(**fields: Any) -> dict[str, Any]:
        return {"workflow": draw(workflows), **draw(pools), **draw(policies), "enabled": True, **fields}

    found = {
        "days": uses(trigger={"type": "partition", "dataset": "sales"}, by=["day"], constraints=draw(limits)),
        "rainy": uses(trigger=draw(st.sampled_from([RAIN, {**RAIN, "count": 2}]))),
        "tick": uses(**{**TICK, "trigger": {**TICK["trigger"], **draw(jitters)}}),
        "burst": uses(**{**BURST, "trigger": {**BURST["trigger"], **draw(jitters)}}),
    }
    if draw(st.booleans()):
        found["dry"] = uses(trigger={"type": "absent", "of": RAIN, "within": "20m"})
    if draw(st.booleans()):
        upstream = {"type": "program_status", "workflow": f"{LAKE}.core.count", "statuses": ["COMPLETED"]}
        found["follows"] = {"workflow": "join", "trigger": upstream, "coalesce": False, "enabled": True}
    if draw(st.booleans()):
        found["loud"] = uses(trigger={"type": "cloudwatch_alarm", "alarm": "disk"})
    return found


move = st.tuples(
    st.just("move"), st.sampled_from([DEMO, DEMO, LAKE, "both"]), st.integers(0, 30), st.integers(0, 60),
    st.sampled_from([0, 0, 3, 20]),
)  # fmt: skip
time = st.tuples(st.just("pass_by"), st.sampled_from(["1s", "40s", "2m", "5m", "12m"]))
ends = st.tuples(st.just("ends"), st.sampled_from(["RUNNING", "SUCCESS", "SUCCESS", "FAILED"]), st.integers(0, 2))
upload = st.tuples(
    st.just("upload"), st.sampled_from(["sales", "sales", "rain"]), st.integers(1, 5), st.just("_SUCCESS")
)  # fmt: skip
step = st.one_of(
    move, move, time, time, time, ends, ends, ends, upload, upload, upload,
    st.tuples(st.just("post"), st.just(LAKE), st.integers(1, 9)),
    st.tuples(st.just("alarm"), st.sampled_from(["ALARM", "OK"])),
    st.tuples(st.just("dies_after"), st.integers(1, 12)),
    st.tuples(st.just("dies_after"), st.integers(1, 12)),
    st.tuples(st.just("pause"), names, st.sampled_from(["hold", "backlog"])),
    st.tuples(st.just("resume"), names),
    st.tuples(st.just("run_it"), names, st.integers(1, 3)),
    st.tuples(st.just("update"), names, st.sampled_from(["carry", "carry", "drop"])),
    st.tuples(st.just("upload_app"), st.integers(1, 3), st.sampled_from(["carry", "drop"])),
    st.tuples(st.just("backfill_it"), st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.just("reprocess_it"), st.sampled_from(["sales", "rain", "rain"]), st.integers(1, 4)),
    st.tuples(st.just("message"), st.integers(1, 25)),
    st.tuples(st.just("message"), st.integers(1, 25)),
    st.tuples(st.just("repair"), st.integers(0, 1), st.sampled_from([0, 1, 10])),
)  # fmt: skip
everything = given(schedules(), st.lists(step, min_size=12, max_size=40), st.integers(0, 1000))


def play(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
    level = logger.log_level
    logger.setLevel("CRITICAL")
    try:
        pair = Pair(documents, seed)
        for kind, *arguments in steps:
            getattr(pair, kind)(*arguments)
            pair.check()
        pair.rest()
    finally:
        logger.setLevel(level)


@settings(max_examples=12, derandomize=True, **patient)
@everything
def test_l14_namespaces_that_share_limits_move_one_by_one(
    documents: dict[str, Any], steps: list[Any], seed: int
) -> None:
    play(documents, steps, seed)


@pytest.mark.long
@settings(max_examples=1000, **patient)
@everything
def test_l14_a_thousand_worlds_move_one_by_one(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
    play(documents, steps, seed)


def test_the_timers_that_are_counted_are_changed_by_nobody() -> None:
    assert not set(FIRES) & set(CHANGED)
