"""The results meet the aims of scale, and are not older than what they were predicted from."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import aims, aws_model, results
from benchmarks.aims import AIMS, MISSED, NOT_PLAYED, Aim
from benchmarks.aws_model import cpu
from benchmarks.aws_model.region import Setup
from benchmarks.page import LAB_BOOK, PAGE


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results.read()


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.what)
def test_e9_a_figure_meets_its_aim_or_the_page_says_why_not(found: dict[str, Any], aim: Aim) -> None:
    value = aim.value(found)
    if aim.what in MISSED:
        assert value is None or not aim.meets(value), f"remove the reason: {value} is met"
    else:
        assert value is not None
        assert aim.meets(value), f"expected {'at least' if aim.at_least else 'below'} {aim.limit}, got {value}"


def test_each_reason_is_that_of_an_aim() -> None:
    assert MISSED.keys() <= {aim.what for aim in AIMS}
    text = PAGE.read_text() + LAB_BOOK.read_text()
    assert [why for why in (*MISSED.values(), *NOT_PLAYED.values()) if why not in text] == []


@pytest.mark.parametrize("assumed", results.PREDICTIONS)
def test_e9_all_scenarios_were_played_with_present_assumptions(found: dict[str, Any], assumed: str) -> None:
    """Each prediction has a pessimistic one beside it: growth of pollers, warm environments and lent throughput are no
    promises of AWS."""
    model = found[results.PREDICTIONS[assumed]]
    setup = Setup(aws_model.assumed_as(assumed))
    assert model["assumed"] == setup.assumed.as_json(), "run: make bench ONLY=aws_model"
    played = aws_model.plays(setup, cpu.load(), aws_model.SIZES)
    for group in dict.fromkeys(group for group, _, _ in played):
        wanted = {about for one, about, _ in played if one == group and (assumed, group, about) not in NOT_PLAYED}
        if not wanted:
            continue
        assert model["played"][group]["cpu"] == cpu.recorded_at(), f"SLUICE_MODEL_GROUPS={group} make bench ..."
        assert {one["about"] for one in model[group]} <= wanted, f"remove what is played from NOT_PLAYED: {group}"
        # A policy that this version refuses has no figures.
        assert group == "policies" or {one["about"] for one in model[group]} == wanted, group


def test_a_missed_aim_is_shown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    aim = Aim("answers", lambda found: float(found["n"]), 2, "s")
    monkeypatch.setattr(aims, "AIMS", (aim,))
    assert list(aims.rows({})) == [("answers", "below 2 s", "", "", "predicted", "not known yet")]
    assert list(aims.rows({"n": 1})) == [("answers", "below 2 s", "1 s", "", "predicted", "met")]
    assert next(aims.rows({"n": 2}))[-1] == "missed"
    monkeypatch.setattr(aims, "MISSED", {"answers": "a reason"})
    assert next(aims.rows({"n": 2}))[-1] == "a reason"


def test_an_aim_is_shown_with_the_pessimistic_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    aim = Aim("answers", lambda found: float(found["aws_model"]["n"]), 2, "s")
    monkeypatch.setattr(aims, "AIMS", (aim,))
    found = {"aws_model": {"n": 1}, "aws_model_pessimistic": {"n": 9}}
    assert list(aims.rows(found)) == [("answers", "below 2 s", "1 s", "9 s", "predicted", "met")]
