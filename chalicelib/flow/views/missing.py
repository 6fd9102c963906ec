"""What a trigger lacks, in words: upstream runs that failed, manifests that wait, objects outside of all partitions.

A join of two workflows never starts if one of them has failed. The event of that failure does not reach the join, so
the explanation of the join reads the runs of the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.build import reached
from chalicelib.core.events.values import rank
from chalicelib.core.instants import DAY, Instant, iso
from chalicelib.core.rows.event import ManifestRow
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.text import count_of
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Upstream
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.why import Why, joined, mention
from chalicelib.flow import grants, lookup
from chalicelib.ports import Ports

ENDED = ("FAILED", "CANCELLED", "ABORTED")


def upstreams(ports: Ports, name: str, schedule: Schedule, job: Job | None, now: Instant) -> list[Why]:
    """A phrase for each workflow whose last run ended in a status that the trigger does not count. With a job, it is
    the run for the job's correlation values."""
    progress, values = (job.leaves, job.correlation) if job is not None else ({}, None)
    namespace = name.partition(".")[0]
    found: dict[Why, None] = {}
    for leaf in tree.leaves(schedule.trigger):
        if leaf.trigger.evaluate(progress.get(leaf.id), now).met:
            continue
        for upstream in leaf.trigger.upstreams():
            # A signer who may read this schedule may have no right in the namespace of the run.
            last = next(lookup.runs_for(ports, upstream, values), None)
            if last is not None and _has_missed(last, upstream) and last.schedule.startswith(f"{namespace}."):
                found[_phrase(last, values)] = None
    return list(found)


def _has_missed(run: Run, upstream: Upstream) -> bool:
    """Whether a run has ended without a status that counts."""
    return run.state in ENDED and not set(reached(run)) & set(upstream.statuses)


def _phrase(run: Run, values: Mapping[str, str] | None) -> Why:
    own = rounds.without(values)
    of = f" for {' '.join(f'{key}={value}' for key, value in own.items())}" if own else ""
    at = run.ended_at if run.ended_at is not None else run.state_at
    when = f" at {iso(at)}" if at is not None else ""
    said = joined([f"the last run of {run.workflow}{of} {run.state}{when}", run.reason], ": ")
    return said.then(" (run ", mention("run", run.run_id), ")")


MAX_READ = 100  # manifests of a dataset
MAX_SHOWN = 3


def manifests(ports: Ports, schedule_name: str, schedule: Schedule, correlation: Mapping[str, str] | None) -> list[str]:
    """What the manifests of the datasets of a trigger wait for, in words. With the ``correlation`` of a job, only those
    of its values."""
    # A manifest has the values of its folder, whose numbers may have other zeros than those of its period.
    values = set(map(rank, (rounds.without(correlation) or {}).values()))
    texts: list[str] = []
    for name in datasets_of(schedule):
        if _is_hidden(ports, schedule_name, name):
            continue
        waiting = (row for row in ports.catalog.manifests(name, MAX_READ) if row.waits)
        rows = [row for row in waiting if values <= set(map(rank, row.values))]
        texts += [_text(row) for row in rows[:MAX_SHOWN]]
        if len(rows) > MAX_SHOWN:
            texts.append(f"{count_of(len(rows) - MAX_SHOWN, 'more partition')} of {name} with manifests are not ready")
    return texts


def _text(row: ManifestRow) -> str:
    return f"partition {'/'.join(row.values)} of {row.dataset} is not ready: {row.why}"


def _is_hidden(ports: Ports, schedule: str, dataset: str) -> bool:
    """Whether another namespace does not let the schedule use its dataset."""
    use = ForeignUse("datasets", dataset, schedule.partition(".")[0])
    return use.owner != use.by and bool(grants.used_of(ports, [use]).missing)


SHOWN_FOR = 7 * DAY


def ignored(ports: Ports, name: str, schedule: Schedule, now: Instant) -> list[str]:
    """Which object came last to each dataset whose partitions a schedule counts, and belongs to none, if it came within
    `SHOWN_FOR`. A dataset of another namespace than the schedule's is left out."""
    counted = {key for leaf in tree.leaves(schedule.trigger) for key in leaf.trigger.event_keys()}
    texts = []
    for dataset in datasets_of(schedule):
        if partition_key(dataset) not in counted or dataset.partition(".")[0] != name.partition(".")[0]:
            continue
        row = ports.rows.get(IgnoredObjects, dataset)
        if row is not None and now - row.noted_at <= SHOWN_FOR:
            last = row.objects[0]
            texts.append(f"{last['key']} came to {dataset} at {last['at']} and belongs to no partition: {last['why']}")
    return texts


def unjoined(correlations: Sequence[Mapping[str, str] | None]) -> list[str]:
    """Which of these correlations have the same numbers with other leading zeros, so that their jobs wait apart. Only
    the first two are named."""
    first: dict[Any, Mapping[str, str]] = {}
    for values in filter(None, correlations):
        other = first.setdefault(tuple(map(rank, values.values())), values)
        if other != values:
            one, two = ("/".join(f"{key}={value}" for key, value in each.items()) for each in (other, values))
            return [f"{one} and {two} do not join, because by compares texts: give both datasets the same folders"]
    return []
