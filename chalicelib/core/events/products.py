"""The partition of a dataset that a run produces: the one with the values of the run's correlation (L22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core.dags import rounds
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.per import Per
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import build, periods
from chalicelib.core.events.values import folders
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import CountedObject, Partition
from chalicelib.core.rows.run import Run
from chalicelib.core.time import period_names
from chalicelib.core.triggers import tree


@dataclass(frozen=True, slots=True)
class Product:
    """A dataset that a workflow produces. ``registers``: Sluice registers the partition when a run has succeeded."""

    name: str
    dataset: Dataset
    registers: bool = False


def partition_of(dataset: Dataset, correlation: Mapping[str, str]) -> tuple[str, ...] | None:
    """The values of the partition that a run with this correlation produces, in the order of the keys. Those of a
    period are as the format writes them. They may follow from the label of the run's own period, if it has the same
    length: ``day: 2026-03-01`` gives ``dt=2026-03-01``. None if the correlation lacks a key. Further keys of it do not
    matter."""
    correlation = {**correlation, **_by_label(dataset, correlation)}
    if not set(dataset.keys) <= correlation.keys():
        return None
    return periods.identity(dataset, [correlation[key] for key in dataset.keys])


def _by_label(dataset: Dataset, correlation: Mapping[str, str]) -> dict[str, str]:
    """The values that name the period of a run in a dataset of periods of the same length; empty if it names none."""
    rule = dataset.period
    names = rule.names if rule is not None else None
    if rule is None or names is None or rule.each not in correlation:
        return {}
    labels = Per(each=rule.each, week_starts=rule.week_starts).names(rule.zone)
    try:
        return names.write(labels.read({rule.each: correlation[rule.each]})) if labels is not None else {}
    except SluiceError:
        return {}  # a value of a key that only has the name of a length


def why_none(name: str, dataset: Dataset, correlation: Mapping[str, str]) -> str:
    """Why a run with this correlation produces no partition of a dataset that is known."""
    missing = [key for key in dataset.keys if key not in correlation]
    of = folders(tuple(correlation), tuple(correlation.values())).rstrip("/") or "nothing"
    return f"a run for {of} names no {', '.join(missing)}, which a partition of {name} has"


def values_of(run: Run) -> dict[str, str]:
    """The values of the correlation of a run, by which its products are named."""
    return rounds.without(run.partition) or rounds.without(run.correlation) or {}


def missing_keys(schedule: Schedule, dataset: Dataset, counted: Mapping[str, Dataset]) -> list[str]:
    """The keys of a dataset that no run of a schedule can name. ``counted`` are the datasets of its trigger. Without
    ``by``, a run has the values that all its events share: those of a partition, or those that a status carries."""
    if schedule.by == rounds.BY or (not schedule.by and tree.upstreams(schedule.trigger)):
        return []
    given = {*schedule.keys} if schedule.keys else {key for each in counted.values() for key in each.keys}
    per, rule = schedule.per, dataset.period
    if per is not None and rule is not None and rule.each == per.each:
        given |= {*period_names.keys_of(rule.format)}
    return [key for key in dataset.keys if key not in given]


def registration(
    run: Run, name: str, dataset: Dataset, values: tuple[str, ...], replayed: bool, now: Instant
) -> Partition:
    """The row of the partition that a run has produced, which is the outbox of its event."""
    event = build.partition_event(name, dataset, values, _ended_at(run, now), now)
    event = replace(event, run_id=run.run_id, by=run.requested_by)
    return Partition(name, values, event, "", replayed, wake_at=now)


def made_again(run: Run, known: Partition, now: Instant) -> CountedObject | None:
    """The outbox of the event that a run has made a known partition again. None if its own objects have registered the
    partition since its claim: then it is the same data."""
    if known.event.run_id is None and known.event.accepted_at >= run.claimed_at:
        return None
    event = build.made_again_event(known.event, run, _ended_at(run, now), now)
    return CountedObject(known.dataset, f"run {run.run_id}", "", event, wake_at=now)


def _ended_at(run: Run, now: Instant) -> Instant:
    return run.ended_at if run.ended_at is not None else now


def noted(name: str, dataset: Dataset | None, values: tuple[str, ...] | None, why: str = "") -> dict[str, Any]:
    """What a run keeps of a dataset of which its success registers a partition."""
    partition = dict(zip(dataset.keys, values, strict=True)) if dataset is not None and values is not None else None
    return {"dataset": name, "partition": partition, "why": why}
