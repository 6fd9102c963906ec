"""What answers leave out: names of namespaces that the signer of the request may not read (O5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chalicelib.core import ids
from chalicelib.core.errors import HIDDEN
from chalicelib.core.mentions import DIGEST, SENTENCES

View = Mapping[str, Any]
Sees = Callable[[str], bool]  # whether the signer may read the namespace of a full name


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
    lists = ("waiting", "runs", "ended")
    kept = {name: [item for item in view[name] if sees(item["schedule"])] for name in lists}
    return {**view, **kept, "schedules": [name for name in view["schedules"] if sees(name)]}


def reprocess(view: View, sees: Sees) -> View:
    """A re-processing without its hidden steps. Its counts stay those of all steps."""
    return {**view, "steps": [step for step in view["steps"] if sees(step["schedule"])]}


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


# An id of a job or a run, and what a job inherits its priority from.
_NAMED = re.compile(
    r"(?P<id>(?<![\w~.-])[a-z0-9][\w~-]*(?:\.[\w~-]+){4}(?![\w~-]))"
    r"|(?<=inherited from )(?:dataset )?(?P<name>[\w.~-]*[\w~-])",
    re.ASCII,
)
_TEXTS = frozenset((*SENTENCES, "inherited_priority", "waited_for", "message", "hint"))
_OF_EVENT = ("id", "run_id", "schedule")


def named(text: str) -> set[str]:
    """The namespaces of the ids, and of the sources of priorities, in a text: an answer, or a part of one."""
    return {name.partition(".")[0] for found in _NAMED.finditer(text) if (name := _name_of(found)) is not None}


def texts(content: Any, sees: Sees) -> Any:
    """An answer whose sentences name no hidden jobs, runs and sources of priorities, and whose events come from no
    hidden runs."""
    if isinstance(content, list):
        return [texts(each, sees) for each in content]
    if not isinstance(content, dict):
        return content
    left = {name: _left(value, sees) if name in _TEXTS else texts(value, sees) for name, value in content.items()}
    if content.get("kind") == "program_status" and {"instant", "id"} <= content.keys():
        left |= {name: _of_run(content[name], sees) for name in _OF_EVENT if name in content}
    if "refs" in content:
        left["refs"] = [ref for ref in left["refs"] if ref.get("kind") != "run" or sees(str(ref.get("name")))]
    return left


def _of_run(value: Any, sees: Sees) -> Any:
    """A field of the event of a run: its own id, that of the run, or the schedule that started it."""
    return HIDDEN if isinstance(value, str) and value.count(".") >= 2 and not sees(value) else value


def _left(value: Any, sees: Sees) -> Any:
    """A sentence, or a list of them, without hidden names."""
    if isinstance(value, str):
        return _NAMED.sub(lambda found: found[0] if _may_stay(found, sees) else HIDDEN, value)
    return [_left(each, sees) for each in value] if isinstance(value, list) else texts(value, sees)


def _may_stay(found: re.Match[str], sees: Sees) -> bool:
    name = _name_of(found)
    return name is None or sees(name)


def _name_of(found: re.Match[str]) -> str | None:
    """The id or the name that was found; None for a text that only looks like an id."""
    if found["id"] is None:
        return found["name"]
    parsed = ids.parse_job_id(found["id"])
    return found["id"] if parsed is not None and len(parsed.digest) == DIGEST else None


def _is_seen(node: View, sees: Sees) -> bool:
    kind, _, name = str(node["id"]).partition(":")
    if node["schedule"] is not None:
        return sees(node["schedule"])
    return sees(name) if kind == "partition" else True


def _connected(view: View, nodes: Sequence[View]) -> View:
    ids = {node["id"] for node in nodes}
    edges = [edge for edge in view["edges"] if edge["from"] in ids and edge["to"] in ids]
    return {**view, "nodes": nodes, "edges": edges}
