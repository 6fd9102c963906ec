"""The names that tests write. A DAG has its own name, and its nodes are ``nightly/load``; Sluice runs them as schedules
whose names have a digest of the graph. A name that nothing has is refused with those that exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from chalicelib.core import ids, names
from chalicelib.core.dags import compile, rounds
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.ports import Kind, Ports

MAX_LISTED = 20  # names that a hint lists


def plain(schedule: str) -> str:
    """The name of a schedule as tests write it, with namespace and app: ``demo.flights.nightly/load`` for the node of a
    DAG, and ``demo.flights.nightly`` for its start."""
    return ids.plain(schedule)


def unknown(kind: str, name: str, known: Iterable[str]) -> SluiceError:
    """The error for a name that nothing has. The hint has the name that was probably meant, and lists those that
    exist."""
    listed = sorted(dict.fromkeys(known))
    near = get_close_matches(name, listed, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    hint = f"{meant}Known: {', '.join(listed[:MAX_LISTED]) or 'none'}{more}"
    return SluiceError("not_found", f"no {kind} named {name!r}", None, hint)


def schedules_in(ports: Ports, namespace: str) -> Iterator[str]:
    """The full names of all schedules of a namespace, with those to which DAGs are compiled."""
    for app in lookup.definitions_in(ports, "app", namespace):
        yield from lookup.schedules_of(ports, app.name)


def definitions_in(ports: Ports, kind: Kind, namespace: str) -> Iterator[str]:
    """The full names of all definitions of a kind in a namespace or its apps."""
    parents = [namespace] if kind != "dag" else [app.name for app in lookup.definitions_in(ports, "app", namespace)]
    for parent in parents:
        yield from (row.name for row in lookup.definitions_in(ports, kind, parent))


def schedule_of(ports: Ports, name: str, namespace: str, app: str) -> str:
    """The full name of a schedule, of the start of a DAG, or of a node of its present graph. Raises ``not_found``."""
    short, slash, node = name.partition("/")
    full = names.full_name(short, namespace, app)
    if not slash and ports.rows.get(ScheduleState, full) is not None:
        return full
    if not slash and ports.rows.get(ScheduleState, ids.dag_start(full)) is not None:
        return ids.dag_start(full)
    row = ports.rows.get(Definition, "dag", full) if slash else None
    if row is None:
        known = map(plain, schedules_in(ports, full.partition(".")[0]))
        raise unknown("schedule", full + slash + node, known)
    dag = Dag.model_validate(row.document)
    if node not in dag.nodes:
        raise unknown(f"node of DAG {full}", node, dag.nodes)
    return ids.dag_node(compile.graph_of(full, dag), node)


def dag_of(ports: Ports, name: str, namespace: str, app: str) -> str:
    """The full name of a DAG that exists or existed. Raises ``not_found``."""
    full = names.full_name(name, namespace, app)
    if ports.rows.get(ScheduleState, ids.dag_start(full)) is None:
        raise unknown("DAG", full, definitions_in(ports, "dag", full.partition(".")[0]))
    return full


def dataset_of(ports: Ports, name: str, namespace: str) -> tuple[str, Dataset]:
    """The full name of a dataset, and its document. Raises ``not_found``."""
    full = names.dataset_name(name, namespace)
    row = ports.rows.get(Definition, "dataset", full)
    if row is None:
        raise unknown("dataset", full, definitions_in(ports, "dataset", full.partition(".")[0]))
    return full, Dataset.model_validate(row.document)


def check_keys(ports: Ports, partition: Mapping[str, Any]) -> None:
    """Raises ``not_found`` for a key that no dataset and no schedule of the installation has: a search for it would
    find nothing for ever."""
    known = {key for key in _keys(ports) if key != rounds.KEY}
    for key in partition.keys() - known:
        raise unknown("key of partitions", key, known)


def _keys(ports: Ports) -> Iterator[str]:
    for namespace in lookup.definitions_in(ports, "namespace", ""):
        for row in lookup.definitions_in(ports, "dataset", namespace.name):
            yield from row.document.get("keys", ())
        for name in schedules_in(ports, namespace.name):
            schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, name))
            yield from schedule.keys if schedule is not None else ()
