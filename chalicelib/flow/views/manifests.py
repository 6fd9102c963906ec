"""Why partitions with a manifest are not ready yet, for those who wait for them (T8)."""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.event import ManifestRow
from chalicelib.core.text import count_of
from chalicelib.flow import grants
from chalicelib.ports import Ports

MAX_READ = 100  # manifests of a dataset
MAX_SHOWN = 3


def waiting(ports: Ports, schedule_name: str, schedule: Schedule, correlation: Mapping[str, str] | None) -> list[str]:
    """What the manifests of the datasets of a trigger wait for, in words. With the ``correlation`` of a job, only those
    of its values."""
    values = set((rounds.without(correlation) or {}).values())
    texts: list[str] = []
    for name in datasets_of(schedule):
        if _is_hidden(ports, schedule_name, name):
            continue
        rows = [row for row in ports.catalog.manifests(name, MAX_READ) if row.waits and values <= set(row.values)]
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
