"""How the runs of periods have ended, counted in one row in any parts of the history (L23)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from chalicelib.core.backfills import period_ends, periods
from chalicelib.core.backfills.period_ends import AGAIN, KEPT, SETTLED, Ends, after, counted, is_due, newest_first
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Run
from tests.support import rows
from tests.support.clock import NOON

BY = ("day",)
ENDS = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")


def attempt(name: str, at: int, state: Any = "SUCCEEDED", day: str = "1", number: int = 1, **fields: Any) -> Run:
    made = rows.run(run_id=name, attempt=number, state=state, correlation={"day": day})
    return replace(made, event=None, claimed_at=at, **fields)


def drawn(random: Random) -> list[list[Run]]:
    """The history of some periods at several instants, each with the attempts that are stored then: an attempt that is
    active at one instant may have ended at the next. Runs have one to three attempts, and events of fires."""
    history: list[list[Run]] = [[]]
    for at in range(1, 25):
        now = [_later(random, run, history[-1]) for run in history[-1]]
        retried = [run for run in now if run.state == "RETRYING" and not _followed(run, now)]
        for run in retried if random.random() < 0.5 else ():
            now.append(replace(run, attempt=run.attempt + 1, claimed_at=at, state="STARTING"))
        event = random.choice([(), (), (0, 2), (1, 2)])
        now.append(attempt(f"r{at}", at, "STARTING", str(random.randrange(3)), spread=event))
        history.append(now)
    return history


def _followed(run: Run, now: list[Run]) -> bool:
    return any(each.run_id == run.run_id and each.attempt > run.attempt for each in now)


def _later(random: Random, run: Run, now: list[Run]) -> Run:
    if run.state == "RETRYING" and not _followed(run, now) and random.random() < 0.2:
        return replace(run, state="FAILED")
    if run.state in ("STARTING", "RUNNING") and random.random() < 0.5:
        return replace(run, state=random.choice(("RUNNING", "RETRYING", *ENDS)))
    return run


def seen(row: PeriodEnds | None, stored: list[Run]) -> dict[Any, str]:
    """The states that a view computes from a row and the attempts that it does not count."""
    named = set(row.active) if row is not None else set()
    since = row.complete_to if row is not None else 0
    rest = [run for run in stored if run.claimed_at >= since or (run.run_id, run.attempt) in named]
    ends, active = after(Ends.of_text(row.ends) if row is not None else Ends(), newest_first(rest), BY)
    return dict(period_ends.states(ends, active, ()))


@pytest.mark.parametrize("seed", range(300))
def test_l23_a_row_and_later_attempts_give_the_same_states(seed: int) -> None:
    """Rows are written at some instants, and not always over the newest one: an invocation may have read an older."""
    random = Random(seed)
    kept: list[PeriodEnds | None] = [None]
    for now, stored in enumerate(drawn(random)):
        expected = periods.statuses((), newest_first(stored), {}, BY)
        for row in kept:
            assert seen(row, stored) == {period: status.state for period, status in expected.items()}, (seed, now)
        if random.random() < 0.4:
            row, until = random.choice(kept), now - random.randrange(3)
            since = row.complete_to if row is not None else 0
            if until > since:
                named = set(row.active) if row is not None else set()
                new = [run for run in stored if since <= run.claimed_at < until or (run.run_id, run.attempt) in named]
                kept.append(counted(row, "s", BY, newest_first(new), 0, until))


def test_l23_the_ends_of_a_year_of_days_are_a_short_text() -> None:
    days = frozenset((f"2025-{month:02}-{day:02}",) for month in range(1, 13) for day in range(1, 29))
    ends = Ends(days, {("2026-01-01",): frozenset({0, 7})})
    assert Ends.of_text(ends.text) == ends
    assert len(ends.text) < 1_500


def test_l23_a_row_is_due_after_a_week_or_with_other_keys() -> None:
    row = counted(None, "s", BY, [attempt("a", NOON - 1)], 0, NOON)
    assert (row.complete_from, row.complete_to, row.rev, row.expires_at) == (0, NOON, 1, NOON + KEPT)
    assert is_due(None, BY, NOON)
    assert is_due(row, ("week",), NOON)
    assert not is_due(row, BY, NOON + SETTLED + AGAIN - 1)
    assert is_due(row, BY, NOON + SETTLED + AGAIN)


def test_l23_a_row_that_is_too_large_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = counted(None, "s", BY, [attempt("a", 5)], 0, 10)
    monkeypatch.setattr(period_ends, "MAX_ACTIVE", 1)
    running = [attempt(name, 12, "RUNNING", name) for name in "bc"]
    row = counted(first, "s", BY, running, 0, 20)
    assert (Ends.of_text(row.ends), row.active, row.complete_from, row.rev) == (Ends(), (), 20, 2)
    monkeypatch.setattr(period_ends, "MAX_TEXT", len(first.ends))
    days = [attempt(f"r{day}", 12, day=str(day)) for day in range(100)]
    assert counted(first, "s", BY, days, 0, 20).complete_from == 20
