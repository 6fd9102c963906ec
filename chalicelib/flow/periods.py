"""The periods of partitions, by the documents of their datasets (T24)."""

from __future__ import annotations

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.periods import period_of
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event
from chalicelib.core.time.periods import Period
from chalicelib.ports import Ports


class Periods:
    """Finds the periods of events, as the present documents of their datasets say. It reads each dataset once."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._read: dict[str, Dataset | None] = {}

    def of(self, event: Event) -> Period | None:
        """The period of the partition that an event is about. None if it is about none, if its dataset is gone or has
        no periods, or if the partition is older than the format of the dataset and names none."""
        dataset = self.dataset(event)
        return period_of(dataset, event.partition or {}) if dataset is not None else None

    def dataset(self, event: Event) -> Dataset | None:
        """The dataset of the partition that an event is about; None if it is about none, or its dataset is gone."""
        if event.dataset is None or not event.partition or _is_snapshot(event):
            return None
        if event.dataset not in self._read:
            row = self._ports.rows.get(Definition, "dataset", event.dataset)
            self._read[event.dataset] = Dataset.model_validate(row.document) if row is not None else None
        return self._read[event.dataset]


def _is_snapshot(event: Event) -> bool:
    """Whether the event is that of a snapshot, which is no period: its table need not be read."""
    return event.payload is not None
