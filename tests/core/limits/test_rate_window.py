"""Rate windows and gaps: how many starts a span may hold, and how long after the last one the next may
come (C4, C5).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.instants import HOUR, MINUTE, Instant
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import LIMIT, NAME, NOON, thorough

RATE_LIMIT = f"rate:{NAME}:2/{HOUR}"
TWO = RateWindow(RATE_LIMIT, 2, HOUR)
NOT_BINDING = replace(TWO, binding=False)


def started(*starts: int, **fields: int) -> LimitState:
    """A rate window with starts at these minutes after noon."""
    return LimitState(RATE_LIMIT, starts={f"r{minute}": NOON + minute * MINUTE for minute in starts}, **fields)


# -- rate windows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts", "frees"),
    [((), 0), ((0,), 0), ((0, 10), NOON + HOUR), ((0, 10, 20), NOON + HOUR + 10 * MINUTE)],
)
def test_c5_the_next_start_is_free_when_the_nth_last_is_span_ago(starts: tuple[int, ...], frees: Instant) -> None:
    state = started(*starts)
    assert permits.frees_at(TWO, state) == frees
    assert permits.has_permit(TWO, state, max(frees, NOON))
    assert frees == 0 or not permits.has_permit(TWO, state, frees - 1)


def test_c8_a_full_rate_is_checked_when_it_frees_and_hinted_then() -> None:
    assert permits.next_service(TWO, started(0, 10), NOON + 30 * MINUTE) == NOON + HOUR
    assert permits.next_service(TWO, started(0), NOON + 30 * MINUTE) == NOON + 30 * MINUTE
    assert [permits.is_timed(ask) for ask in (TWO, Pace("emr:a", 1, 1), Slots(LIMIT, 1), None)] == [
        True,
        True,
        False,
        False,
    ]


def test_w2_a_new_job_at_a_rate_does_not_overtake_the_waiters() -> None:
    assert permits.admits(TWO, started(), NOON)
    assert not permits.admits(TWO, started(waiters=1), NOON)


def test_c5_a_job_that_is_only_counted_is_never_blocked() -> None:
    full = started(0, 10, waiters=3)
    assert permits.has_permit(NOT_BINDING, full, NOON + 11 * MINUTE)
    assert permits.admits(NOT_BINDING, full, NOON + 11 * MINUTE)
    assert permits.is_unlimited(NOT_BINDING)
    assert not permits.is_unlimited(TWO)


def test_c5_a_rate_window_forgets_only_starts_no_drop_can_return() -> None:
    assert permits.outdated(TWO, started(0, 10, 20)) == ()
    assert permits.outdated(TWO, started(0, 10, 20, 30)) == ("r0",)
    assert permits.outdated(TWO, started(30, 20, 10, 0, 40)) == ("r0", "r10")


def test_c5_why_names_the_rate_that_a_job_waits_for() -> None:
    assert permits.why(TWO, started(0, 10, waiters=1)).text == (
        "waits for the rate limit of workflow demo.flights.clean: at most 2 runs claimed per 1h, "
        "the next at 2026-03-02T13:00:00.000Z"
    )


def test_c5_a_rate_window_is_named_by_its_workflow_and_rate() -> None:
    assert permits.rate_window_of(NAME, names.rate_rule(2, HOUR), binding=True) == TWO
    assert names.is_rate_window(TWO.limit_name)
    assert not names.is_rate_window(LIMIT)
    assert not names.returns_permit(TWO.limit_name), "a start is not undone by its end"


Steps = list[tuple[int, str, int]]


@st.composite
def stories(draw: st.DrawFn) -> tuple[int, int, Steps]:
    """A limit, a span in minutes, and steps: minutes that pass, the action, and the index of the job among those that
    wait.
    """
    step = st.tuples(st.integers(0, 6), st.sampled_from(["ask", "ask", "tell", "start", "drop"]), st.integers(0, 9))
    return draw(st.integers(1, 3)), draw(st.integers(10, 30)), draw(st.lists(step, min_size=8, max_size=40))


# A start that was recorded between two requests must outlive the drop of the first one.
@given(stories())
@example((2, 30, [(0, "tell", 0), (1, "ask", 0), (1, "tell", 0), (1, "drop", 0), (1, "ask", 0), (1, "start", 0)]))
@example((1, 10, [(0, "ask", 0), (10, "ask", 0), (0, "start", 1), (1, "start", 0)]))
@thorough
def test_c5_no_sliding_span_has_starts_beyond_the_limit(story: tuple[int, int, Steps]) -> None:
    """Jobs acquire a permit and hold it while they queue elsewhere; some are dropped and release it. Starts of other
    schedules are only recorded. A job that starts requests its permit again first.
    """
    limit, minutes, steps = story
    ask, state, now = RateWindow(RATE_LIMIT, limit, minutes * MINUTE), LimitState(RATE_LIMIT), NOON
    answer, held, starts = replace(ask, binding=False), set[str](), list[Instant]()

    def without(*gone: str) -> LimitState:
        return replace(state, starts={holder: at for holder, at in state.starts.items() if holder not in gone})

    for number, (gap, what, which) in enumerate(steps):
        now += gap * MINUTE
        name = f"j{number:02d}" if what in ("ask", "tell") else sorted(held)[which % len(held)] if held else None
        asked = answer if what == "tell" else ask
        if name is None or (what in ("ask", "tell") and not permits.admits(asked, state, now)):
            continue
        forgotten = permits.outdated(asked, state) if what in ("ask", "tell") else ()
        others = without(name, *forgotten)
        goes = what != "drop" and (what != "start" or permits.has_permit(ask, others, now))
        state = replace(others, starts=others.starts | ({name: now} if goes else {}))
        held = held | {name} if what == "ask" else held - {name}
        if goes and what != "ask":
            starts.append(now)
        if goes and what == "start":
            assert sum(now - ask.span < at <= now for at in starts) <= limit
        assert len(state.starts) <= 2 * limit + len(held) + 1


@given(st.integers(1, 4), st.integers(1, 50), st.lists(st.integers(0, 30), min_size=1, max_size=40))
@thorough
def test_c5_a_job_is_blocked_only_while_a_span_is_full(limit: int, span: int, gaps: list[int]) -> None:
    ask, state, now, starts = RateWindow(RATE_LIMIT, limit, span), LimitState(RATE_LIMIT), NOON, []
    for number, gap in enumerate(gaps):
        now += gap
        full = sum(now - span < at <= now for at in starts) >= limit
        assert permits.admits(ask, state, now) is not full
        if not full:
            kept = {holder: at for holder, at in state.starts.items() if holder not in permits.outdated(ask, state)}
            state = replace(state, starts=kept | {f"r{number:02d}": now})
            starts.append(now)


# -- gaps ----------------------------------------------------------------------------------------------------------

GAP = Slots(LIMIT, None, HOUR)
ANY = replace(GAP, any_run=True)
LIVING = {"r1#001": NOON, "r2#001": NOON + 9 * MINUTE}


@pytest.mark.parametrize(
    ("state", "success", "any_run"),
    [
        (LimitState(LIMIT), None, None),
        (LimitState(LIMIT, active=2, starts=LIVING, last_start=NOON + 9 * MINUTE), 9, 9),  # an active run counts as one
        (LimitState(LIMIT, last_start=NOON, last_success_start=NOON), 0, 0),
        (LimitState(LIMIT, last_start=NOON + 5 * MINUTE, last_success_start=NOON), 0, 5),  # the last one failed
        (LimitState(LIMIT, last_start=NOON + 5 * MINUTE), None, 5),  # none has succeeded yet
        (
            LimitState(
                LIMIT, active=1, starts={"r": NOON}, last_start=NOON + 3 * MINUTE, last_success_start=NOON + 3 * MINUTE
            ),
            3,
            3,
        ),
    ],
)
def test_c4_a_gap_counts_from_last_active_or_successful_start(
    state: LimitState, success: int | None, any_run: int | None
) -> None:
    def ends(minute: int | None) -> Instant | None:
        return None if minute is None else NOON + minute * MINUTE + HOUR

    assert permits.gap_ends(GAP, state) == ends(success)
    assert permits.gap_ends(ANY, state) == ends(any_run)


def test_c4_active_runs_not_remembered_count_by_the_latest_start() -> None:
    early = LimitState(LIMIT, active=3, starts=LIVING, untracked_start=NOON + 20 * MINUTE)
    assert permits.gap_ends(GAP, early) == NOON + 20 * MINUTE + HOUR
    over = replace(early, active=2)
    assert permits.gap_ends(GAP, over) == NOON + 9 * MINUTE + HOUR, "the untracked starts are gone"


def test_c4_without_a_gap_the_last_start_does_not_matter() -> None:
    assert permits.gap_ends(Slots(LIMIT, 1), LimitState(LIMIT, active=1, starts=LIVING)) is None


# -- changed rules -------------------------------------------------------------------------------------------------

OLD = RateWindow(f"rate:{NAME}:3/{HOUR}", 3, HOUR, binding=False)


def _known(own: LimitState, *starts: int, holder: str = "job") -> dict[str, LimitState]:
    """What becomes of a new window beside an old one with starts at these minutes."""
    old = replace(started(*starts), limit_name=OLD.limit_name, rev=len(starts))
    states = {RATE_LIMIT: own, OLD.limit_name: old}
    return permits.with_known_starts((TWO, OLD), states, holder)


def test_c5_a_new_window_has_the_starts_of_the_old_one() -> None:
    found = _known(started(), 0, 10, 20)
    assert found == {RATE_LIMIT: started(0, 10, 20)}
    assert permits.frees_at(TWO, found[RATE_LIMIT]) == NOON + HOUR + 10 * MINUTE


def test_c5_a_new_window_takes_no_more_starts_than_it_keeps() -> None:
    assert _known(started(), 0, 10, 20, 30, 40, 50) == {RATE_LIMIT: started(30, 40, 50)}
    assert permits.outdated(TWO, started(30, 40, 50)) == ()


@pytest.mark.parametrize(("own", "starts"), [(started(5, rev=1), (0, 10)), (started(rev=2), (0, 10)), (started(), ())])
def test_c5_a_window_that_has_counted_is_left_as_it_is(own: LimitState, starts: tuple[int, ...]) -> None:
    assert _known(own, *starts) == {}


def test_c5_a_job_is_not_kept_from_a_new_window_by_its_own_entry() -> None:
    """It has a permit of the old window, and waited for a slot when the rule changed."""
    assert _known(started(), 0, 10, holder="r10") == {RATE_LIMIT: started(0)}
    assert _known(started(), 10, holder="r10") == {}
