"""The true state of a limit, counted from the runs that exist; after a repair no job holds a permit or queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.ids import holder_of
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits import names, returns
from chalicelib.core.limits.permits import MAX_STARTS
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry


def recounted(
    limits: Mapping[str, LimitState], runs: Iterable[Run], spacings: Mapping[str, Millis]
) -> dict[str, LimitState]:
    """The limits as the runs say, by name; those that are right already are left out. ``spacings`` are those of
    policies: the next permit of one is at least that long after the last start that is known."""
    known = list(runs)
    found: dict[str, LimitState] = {}
    used = {name for run in known if _lives(run) for name in run.permits if names.returns_permit(name)}
    for name in sorted({*limits, *used}):
        state = limits.get(name) or LimitState(name)
        if names.is_rate_window(name):
            now = _rate(state, name, limits, known)
        elif names.is_pace(name):
            now = _pace(state, known, spacings.get(name))
        else:
            now = _slots(state, name, known)
        now = replace(now, waiters=0, wake_at=None)
        if now != state:
            found[name] = replace(now, rev=state.rev + 1)
    return found


def _lives(run: Run) -> bool:
    return not states.is_terminal(run.state)


def _slots(state: LimitState, name: str, runs: list[Run]) -> LimitState:
    holding = [run for run in runs if _lives(run) and name in run.permits]
    starts = {holder_of(run.run_id, run.attempt): run.claimed_at for run in holding}
    if not names.names_starts(name):
        starts = {}
    newest = sorted(starts, key=lambda holder: starts[holder])[-MAX_STARTS:]
    rest = [at for holder, at in starts.items() if holder not in newest]
    counted = replace(
        state,
        active=sum(returns.units_at(name, run.units) for run in holding),
        starts={holder: starts[holder] for holder in newest},
        untracked_start=max([*rest, *([state.untracked_start] if rest else [])], default=0),
    )
    if not names.is_of_workflow(name):
        return counted
    own = [run for run in runs if names.workflow_limit(run.workflow) == name and name in run.permits]
    ended = [run for run in own if run.state == "SUCCEEDED"]
    return replace(
        counted,
        last_start=_latest(state.last_start, [run.claimed_at for run in own]),
        last_success_start=_latest(state.last_success_start, [run.claimed_at for run in ended]),
        last_success_at=_latest(state.last_success_at, list(_successes(name, runs))),
        numbered=max([state.numbered, *(run.number for run in own)]),
    )


def _successes(name: str, runs: list[Run]) -> Iterator[Instant]:
    """When a workflow has succeeded. A node with elements has with the last of them: its run holds no permit (W19)."""
    for run in runs:
        counts = run.element is None and (name in run.permits or registry.of_run(run).of_elements)
        if counts and names.workflow_limit(run.workflow) == name and run.state == "SUCCEEDED" and run.state_at:
            yield run.state_at


def _rate(state: LimitState, name: str, limits: Mapping[str, LimitState], runs: list[Run]) -> LimitState:
    """The last starts of a workflow, as many as the rate allows: those that the limit remembers, and the known runs."""
    _, workflow, rule = name.split(":", 2)
    tracked = name in (limits.get(names.workflow_limit(workflow)) or LimitState("")).rates
    own = [run for run in runs if run.workflow == workflow and (tracked or name in run.permits)]
    starts = {**state.starts, **{holder_of(run.run_id, run.attempt): run.claimed_at for run in own}}
    newest = sorted(starts, key=lambda holder: starts[holder])[-int(rule.partition("/")[0]) :]
    return replace(state, starts={holder: starts[holder] for holder in newest})


def _pace(state: LimitState, runs: list[Run], spacing: Millis | None) -> LimitState:
    begun = [run.start_requested_at for run in runs if run.start_requested_at and state.limit_name in run.permits]
    return state if spacing is None or not begun else replace(state, head=max(state.head, max(begun) + spacing))


def _latest(known: Instant | None, others: list[Instant]) -> Instant | None:
    return max([*([known] if known is not None else []), *others], default=None)
