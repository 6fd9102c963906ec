"""What constraints say about limits: whose slots they need, what their starts are counted by, and who makes room."""

from __future__ import annotations

from typing import Any

from chalicelib.core.constraints.constraint import Situation, externals_of, number_of
from chalicelib.core.constraints.probe import ProbeResult
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.limits import names
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import NOON, met, schedule

WORKFLOW, NAMESPACE = "demo.flights.clean", "demo"
SLOTS: dict[str, Any] = {"type": "concurrency", "max": 2}
GROUPED = SLOTS | {"group": "spark"}
RATE: dict[str, Any] = {"type": "rate", "max": 3, "per": "2h"}
PROBES: list[dict[str, Any]] = [
    {
        "type": "probe",
        "target": {"type": "lambda", "function": f"arn:aws:lambda:us-east-1:123456789012:function:{name}"},
    }
    for name in ("one", "two")
]


def made(document: dict[str, Any]) -> Any:
    [constraint] = schedule(constraints=[document]).constraints
    return constraint


def situation(**fields: Any) -> Situation:
    known: dict[str, Any] = {"limit_states": {}, "successes": {}} | fields
    return Situation(job=met(), workflow=WORKFLOW, namespace=NAMESPACE, now=NOON, **known)


def test_c1_slots_are_those_of_the_workflow_or_of_the_group() -> None:
    [own], [shared] = (made(document).permits(WORKFLOW, NAMESPACE) for document in (SLOTS, GROUPED))
    assert (own.limit_name, own.limit) == (names.workflow_limit(WORKFLOW), 2)
    assert (shared.limit_name, shared.limit) == (names.group_limit(NAMESPACE, "spark"), 2)
    assert (made(SLOTS).groups(), made(GROUPED).groups()) == ((), ("spark",))


def test_c1_only_cancel_other_makes_room() -> None:
    assert made(SLOTS | {"on_unmet": "cancel_other"}).makes_room() is True
    assert made(SLOTS | {"on_unmet": "wait"}).makes_room() is False
    assert made(RATE).makes_room() is False


def test_c2_a_rate_counts_by_its_number_and_its_span() -> None:
    assert made(RATE).rates() == (names.rate_rule(3, 2 * HOUR),)
    assert made(SLOTS).rates() == ()


def test_a_limit_without_a_row_is_an_empty_one_of_that_name() -> None:
    stored = LimitState("workflow:a", active=2)
    known = situation(limit_states={"workflow:a": stored})
    assert known.limit_state("workflow:a") is stored
    assert known.limit_state("workflow:b") == LimitState("workflow:b")


def test_c15_external_constraints_of_a_kind_are_numbered() -> None:
    found = externals_of([*(made(document) for document in PROBES), made(SLOTS)])
    assert list(found) == ["probe:0", "probe:1"]
    assert [number_of(key) for key in found] == ["0", "1"]


def test_c15_only_an_answer_of_the_requested_kind_counts() -> None:
    probe = made(PROBES[0])
    answer = ProbeResult("met", NOON, NOON + MINUTE, "")
    known = situation(externals={"probe:0": probe}, answers={"probe:0": answer})
    assert known.answer_to(probe, ProbeResult) is answer
    assert known.answer_to(probe, LimitState) is None  # type: ignore[type-var]
    assert situation(externals={"probe:0": probe}).answer_to(probe, ProbeResult) is None
