"""The parts that answers leave out: those of namespaces that the signer of the request may not read (O5).

A sentence stays, and leaves out its hidden names itself (`Why.seen`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.core.why import Sees

View = Mapping[str, Any]


def graph(view: View, sees: Sees) -> View:
    """A graph of schedules, workflows and datasets without hidden nodes and their edges."""
    return _connected(view, [node for node in view["nodes"] if sees(node["name"])])


def lineage(view: View, sees: Sees) -> View:
    """A lineage without hidden runs, jobs and partitions, and without what only these connect with its run."""
    kept = _connected(view, [node for node in view["nodes"] if _is_seen(node, sees)])
    beside: dict[str, set[str]] = {}
    for edge in kept["edges"]:
        beside.setdefault(edge["from"], set()).add(edge["to"])
        beside.setdefault(edge["to"], set()).add(edge["from"])
    found, level = {view["run_id"]}, {view["run_id"]}
    while level:
        level = {other for node in level for other in beside.get(node, ())} - found
        found |= level
    return _connected(kept, [node for node in kept["nodes"] if node["id"] in found])


def partition(view: View, sees: Sees) -> View:
    """A partition without the schedules of hidden namespaces, and without their jobs and runs."""
    lists = ("made_by", "waiting", "runs", "ended")
    kept = {name: [item for item in view[name] if sees(item["schedule"])] for name in lists}
    return {**view, **kept, "schedules": [name for name in view["schedules"] if sees(name)]}


def late(items: Sequence[View], sees: Sees) -> list[View]:
    """Registered partitions without the hidden schedules that have ignored them."""
    return [
        item if "late" not in item else {**item, "late": [each for each in item["late"] if sees(each["schedule"])]}
        for item in items
    ]


def reprocess(view: View, sees: Sees) -> View:
    """A re-processing without its hidden steps. Its counts stay those of all steps."""
    return {**view, "steps": [step for step in view["steps"] if sees(step["schedule"])]}


def not_followed(view: View, sees: Sees) -> View:
    """The plan of a re-processing, all of whose steps the signer may run, without hidden schedules beside it."""
    return {**view, "not_followed": [each for each in view["not_followed"] if sees(each["schedule"])]}


def why(view: View, sees: Sees) -> View:
    """The explanation of a job, or of a schedule with its jobs, without hidden runs that hold permits."""
    lists: View = {
        name: [_held(item, sees) for item in view[name]] for name in ("constraints", "limits") if name in view
    }
    jobs = {"jobs": [why(job, sees) for job in view["jobs"]]} if "jobs" in view else {}
    return {**view, **lists, **jobs}


def _held(item: View, sees: Sees) -> View:
    """The use of a limit; null where it does not list its holders stays null."""
    held = item["held_by"]
    return item if held is None else {**item, "held_by": [run_id for run_id in held if sees(run_id)]}


def queued(items: Sequence[View], sees: Sees) -> list[View]:
    """The jobs or runs of a queue whose schedules are not hidden. Their positions stay those of the whole queue."""
    return [item for item in items if sees(item["schedule"])]


def parts(view: View, sees: Sees) -> View:
    """A pool or policy whose queues leave out hidden jobs."""
    return {**view, "parts": [{**part, "queue": queued(part["queue"], sees)} for part in view["parts"]]}


def limit(view: View, sees: Sees) -> View:
    """A limit without hidden holders and waiters; null stays null."""
    lists = {name: queued(view[name], sees) for name in ("holders", "waiters") if view[name] is not None}
    return {**view, **lists}


def _is_seen(node: View, sees: Sees) -> bool:
    kind, _, name = str(node["id"]).partition(":")
    if node["schedule"] is not None:
        return sees(node["schedule"])
    return sees(name) if kind == "partition" else True


def _connected(view: View, nodes: Sequence[View]) -> View:
    ids = {node["id"] for node in nodes}
    edges = [edge for edge in view["edges"] if edge["from"] in ids and edge["to"] in ids]
    return {**view, "nodes": nodes, "edges": edges}
