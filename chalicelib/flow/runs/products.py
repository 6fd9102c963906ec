"""Register the partitions that a run produces when it has succeeded (L22).

The transaction that ends the run creates the row of each partition, which is the outbox of its event. So a run that has
succeeded has its partitions. A hint lets `check` apply each event, and if it is lost, the sweep hints again. A
partition that is registered already stays as it is: its event counted once. If its dataset has `rewritten: again`, and
no flag or manifest says so, the transaction creates the outbox of a further event instead: each run counts once.
"""

from __future__ import annotations

from chalicelib.core.changes import replace
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import products
from chalicelib.core.events.values import folders
from chalicelib.core.instants import Instant
from chalicelib.core.partition_values import check_value
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import CountedObject, Partition
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete
from chalicelib.core.runs.complete import Advance
from chalicelib.flow import registered
from chalicelib.ports import Ports

Produced = Partition | CountedObject


def of_step(ports: Ports, step: Advance, now: Instant) -> tuple[Advance, list[Produced]]:
    """The step, with what its run keeps of its products, and the outboxes of the partitions that are new or were made
    again. Nothing is read for a run that does not succeed by this step, or that registers nothing."""
    run = step.run
    if run.state != "SUCCEEDED" or not run.registers:
        return step, []
    begun_by = complete.dag_start_of(run)
    start = ports.rows.get(Run, begun_by, 1) if begun_by is not None else None
    found = [_of_dataset(ports, run, name, complete.is_replayed(run, start), now) for name in run.registers]
    kept = tuple(note for note, _ in found)
    return replace(step, run=replace(run, registered=kept)), [row for _, row in found if row is not None]


def _of_dataset(
    ports: Ports, run: Run, name: str, replayed: bool, now: Instant
) -> tuple[dict[str, object], Produced | None]:
    stored = ports.rows.get(Definition, "dataset", name)
    if stored is None:
        return products.noted(name, None, None, f"dataset {name} was deleted"), None
    dataset = Dataset.model_validate(stored.document)
    correlation = products.values_of(run)
    values = products.partition_of(dataset, correlation)
    if values is None:
        return products.noted(name, dataset, None, products.why_none(name, dataset, correlation)), None
    try:
        for key, value in zip(dataset.keys, values, strict=True):
            check_value(value, key)
    except SluiceError as error:
        return products.noted(name, dataset, None, error.message), None
    known = registered.matching(ports, name, dataset.keys, values)[0]
    if known == values:
        again = None if replayed else _again(ports, run, name, dataset, values, now)
        return products.noted(name, dataset, values), again
    if len(known) == len(values):
        other = folders(dataset.keys, known).rstrip("/")
        return products.noted(name, dataset, None, f"{other} of {name} is registered, which is the same"), None
    return products.noted(name, dataset, values), products.registration(run, name, dataset, values, replayed, now)


def _again(
    ports: Ports, run: Run, name: str, dataset: Dataset, values: tuple[str, ...], now: Instant
) -> CountedObject | None:
    """The outbox of the event that a run has made a registered partition again; None if it is none for its dataset."""
    row = ports.rows.get(Partition, name, values) if dataset.told_again_by == "runs" else None
    return products.made_again(run, row, now) if row is not None else None
