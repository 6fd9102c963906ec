"""Checks from the history of runs alone that the limits of schedules were kept (C1, C4, C5).

A limit is checked only if all schedules of a workflow (or of a group) set the same one in all their versions. Otherwise
schedules without the limit may exceed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chalicelib.core import states
from chalicelib.core.constraints.concurrency import Concurrency
from chalicelib.core.constraints.constraint import Constraint
from chalicelib.core.constraints.rate import Rate
from chalicelib.core.constraints.since_last_run import SinceLastRun
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry

Versions = dict[tuple[str, int], Schedule]


def check_limits(runs: Iterable[Run], versions: Versions) -> None:
    """Raise if more runs were active at a time, started in a span, or started too soon after another than the limit
    allows. The run of a node with elements takes no permit: they do (W19).
    """
    runs = [run for run in runs if not registry.of_run(run).of_elements]
    bound: dict[str, list[Schedule]] = {}
    for (name, _), definition in versions.items():
        bound.setdefault(name, []).append(definition)
    by_workflow: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.claimed_at):
        by_workflow.setdefault(run.workflow, []).append(run)
    for workflow, started in by_workflow.items():
        rules = [definition for definition in versions.values() if definition.workflow == workflow]
        for rule in _shared(rules, lambda each: isinstance(each, Rate)):
            _check_rate(rule, started)
        for rule in _shared(rules, lambda each: isinstance(each, Concurrency) and each.group is None):
            _check_slots(rule, started)
        for rule in _shared(rules, lambda each: isinstance(each, SinceLastRun)):
            _check_gap(rule, started)
    _check_groups(bound, by_workflow)


def _check_groups(bound: dict[str, list[Schedule]], by_workflow: dict[str, list[Run]]) -> None:
    everything = [definition for known in bound.values() for definition in known]
    groups = {each.group for definition in everything for each in definition.constraints
              if isinstance(each, Concurrency) and each.group is not None}  # fmt: skip
    for group in groups:
        members = {name: versions for name, versions in bound.items()
                   if any(_in_group(definition, group) for definition in versions)}  # fmt: skip
        rules = _shared([d for versions in members.values() for d in versions],
                        lambda each, group=group: isinstance(each, Concurrency) and each.group == group)  # fmt: skip
        runs = [run for started in by_workflow.values() for run in started if run.schedule in members]
        for rule in rules:
            _check_slots(rule, sorted(runs, key=lambda run: run.claimed_at))


def _in_group(definition: Schedule, group: str | None) -> bool:
    return any(isinstance(each, Concurrency) and each.group == group for each in definition.constraints)


def _shared(definitions: list[Schedule], kind: Callable[[Constraint], bool]) -> list[Constraint]:
    """The constraint of this kind that all definitions share, or an empty list."""
    found = {tuple(each for each in definition.constraints if kind(each)) for definition in definitions}
    return list(next(iter(found))) if len(found) == 1 else []


def _check_rate(rule: Constraint, started: list[Run]) -> None:
    assert isinstance(rule, Rate)
    # A backfill's starts count, but the rate does not delay them.
    for run in (each for each in started if each.backfill is None):
        since = run.claimed_at - rule.span
        window = [other for other in started if since < other.claimed_at <= run.claimed_at and not _beside(other, run)]
        assert len(window) <= rule.max, f"{len(window)} starts within {rule.per}, and {rule.max} are allowed: {window}"


def _check_slots(rule: Constraint, started: list[Run]) -> None:
    assert isinstance(rule, Concurrency)
    for run in started:
        living = [other for other in started if other.claimed_at <= run.claimed_at < (_ended(other) or 10**15)]
        assert len(living) <= rule.max, f"{len(living)} at a time, and {rule.max} are allowed: {living}"


def _check_gap(rule: Constraint, started: list[Run]) -> None:
    assert isinstance(rule, SinceLastRun)
    for index, run in enumerate(started):
        for other in started[:index]:
            # The order of two claims in the same millisecond is unknown.
            orders = [(other, run), (run, other)] if other.claimed_at == run.claimed_at else [(other, run)]
            assert not all(_is_too_soon(rule, *order) for order in orders), f"{run} started too soon after {other}"


def _is_too_soon(rule: SinceLastRun, other: Run, run: Run) -> bool:
    if run.backfill is not None or run.fired_by.code == "timeout_passed":
        return False
    counts = rule.of == "any" or other.state == "SUCCEEDED" or (_ended(other) or 10**15) > run.claimed_at
    return counts and run.claimed_at - other.claimed_at < rule.span and not _beside(other, run)


def _beside(other: Run, run: Run) -> bool:
    """True if a backfill's run was claimed in the same millisecond: it may have come later, and this limit does not
    delay it.
    """
    return other.backfill is not None and other.claimed_at == run.claimed_at


def _ended(run: Run) -> int | None:
    return run.ended_at if states.is_terminal(run.state) else None
