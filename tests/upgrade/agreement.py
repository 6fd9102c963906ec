"""Two versions read the same from the same tables: every row, and every answer of the API."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

from chalicelib.core import ids, states
from tests.faults import invariants
from tests.support.stored import class_of
from tests.upgrade import documents
from tests.upgrade.rolling_world import APP, NS, RollingWorld

HISTORY = ("Run", "Record")
TEXTS = frozenset(("reason", "why", "message", "hint"))  # a newer release may reword them
# Of a backfill: since its job was created, no longer since its event. `why` of a run does not name the backfill.
CORRECTED = frozenset(("waited_ms", "waited_for"))
ABOUT_ONE = ("", "/jobs", "/runs", "/records", "/why", "/versions", "/preview")


# Rows that no instant wakes are listed in the wake index, in partitions of their own. Code from before these lists
# reads their position as ``wake_at``. No tick of it finds them there. If it writes such a row again, it
# checks the row once more.
LISTED = frozenset({"wake_at"})


def _is_listed(item: Mapping[str, Any]) -> bool:
    return item.get("wake_shard", {}).get("S", "").startswith(("waits#", "paused#"))


def rows_read_alike(world: RollingWorld) -> None:
    """Compare each row as both versions read it, and record the classes of the rows. Fields that only one version has
    are ignored.
    """
    for _, item in world.tables.rows():
        # The name of a limit is only in its key.
        answer = dict(item)
        if not world.old.has(class_of(answer)):
            continue  # a kind of row that is new; older code reads none by its key
        by_old, by_new = world.old.read(answer), world.new.read(answer)
        both = by_old.keys() & by_new.keys()
        assert both, f"no field of {item} is known to both"
        known = LISTED if _is_listed(item) else frozenset()
        differ = {name: (by_old[name], by_new[name]) for name in both - known if _reads_differ(by_old, by_new, name)}
        assert not differ, f"{item} is read in two ways: {differ}"
        world.read_alike.add(class_of(answer))


def _reads_differ(by_old: dict[str, Any], by_new: dict[str, Any], name: str) -> bool:
    """Whether two versions read a field differently. A start request, and the progress of each leaf, is a row inside a
    row, with fields of its own."""
    one, other = by_old[name], by_new[name]
    if name == "request" and isinstance(one, dict) and isinstance(other, dict):
        return any(one[field] != other[field] for field in one.keys() & other.keys())
    if name == "leaves" and one.keys() == other.keys():
        return any(one[leaf][field] != other[leaf][field] for leaf in one for field in one[leaf].keys() & other[leaf])
    return bool(one != other)


def answers_are_alike(world: RollingWorld) -> int:
    """Send every read request of the API to both versions. Returns how many were answered.

    A newer release may add fields to an answer and reword a text. All other fields must be equal.
    """
    answered = 0
    runs = invariants.Stock(world.account.books).runs
    backfilled = {f"/v1/runs/{run.run_id}/why" for run in runs if run.backfill is not None}
    for path in _paths(world):
        (status, by_old), (newer, by_new) = world.old.request("GET", path), world.new.request("GET", path)
        assert status < 500, f"GET {path}: {by_old}"
        assert newer == status, f"GET {path} is answered with {status} and with {newer}"
        if path == f"{NS}/jobs":
            by_old, by_new = _jobs_of_both(by_old, by_new)
        by_old, by_new = _plain(by_old), _plain(by_new)
        differ = list(_differences(by_old, by_new, corrected=CORRECTED if path in backfilled else frozenset()))
        assert differ == [], f"GET {path} is answered in two ways: {differ[:3]}"
        answered += status == 200
    return answered


def _plain(answer: Any) -> Any:
    """An answer with the names of DAGs as people know them. Older code names the graph of a node in its sentences."""
    return json.loads(ids.plain_in(json.dumps(answer)))


def _jobs_of_both(by_old: Any, by_new: Any) -> tuple[Any, Any]:
    """The lists of waiting jobs in one order. A job that no instant wakes, and that older code has written last, enters
    the list of the newer release with its next write."""
    listed = {job["job_id"] for job in by_new["items"]}
    known = [job for job in by_old["items"] if job["job_id"] in listed or job["wake_at"] is not None]
    return tuple(
        {**answer, "items": sorted(items, key=lambda job: job["job_id"])}
        for answer, items in ((by_old, known), (by_new, by_new["items"]))
    )


def history_is_alike(world: RollingWorld) -> int:
    """Let each version write the history of all runs and records into the lake. Returns how many objects they made. A
    newer release that adds fields to a line counts that in ``schema``."""
    rows = [item for name, item in world.tables.rows() if name == "RunsTable" and class_of(dict(item)) in HISTORY]
    made = []
    for version in (world.old, world.new):
        before, world.account.s3.objects = world.account.s3.objects, {}
        assert version.lake(rows) == {"batchItemFailures": []}
        made.append(world.account.s3.objects)
        world.account.s3.objects = before
    assert made[0].keys() == made[1].keys(), "two versions write two histories"
    for name in made[0]:
        by_old, by_new = (_lines(objects[name]) for objects in made)
        assert all(new.pop("schema") >= old.pop("schema") for old, new in zip(by_old, by_new, strict=True))
        differ = list(_differences(by_old, by_new))
        assert differ == [], f"two versions write {name} in two ways: {differ[:3]}"
    return len(made[0])


def _lines(content: bytes) -> list[Any]:
    """The lines of an object of the history."""
    return [_plain(json.loads(line)) for line in gzip.decompress(content).splitlines()]


def _paths(world: RollingWorld) -> Iterator[str]:
    stock = invariants.Stock(world.account.books)
    yield from (NS, APP, f"{APP}/schedules", f"{APP}/workflows", f"{APP}/dags", f"{APP}/dags/daily")
    yield from (f"{NS}/{part}" for part in ("jobs", "runs", "records", "pools", "pools/p", "policies", "datasets"))
    yield from (f"{NS}/datasets/flights/partitions", f"{NS}/dead-letters", f"{APP}/dags/daily/runs")
    yield from (f"{APP}/schedules/{name}{part}" for name in documents.NAMES for part in ABOUT_ONE)
    yield f"{APP}/schedules/clock/backfills"
    for job in stock.jobs:
        if not job.closed:
            yield from (f"/v1/jobs/{job.job_id}", f"/v1/jobs/{job.job_id}/why")
    for run in stock.runs:
        yield f"/v1/runs/{run.run_id}"
        if not states.is_terminal(run.state):
            yield f"/v1/runs/{run.run_id}/why"


def _differences(
    by_old: Any, by_new: Any, path: str = "", corrected: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any, Any]]:
    """The parts of two answers that differ, without texts for people, without fields that only one of them has, and
    without ``corrected`` fields. A newer release may add references to an answer."""
    if isinstance(by_old, dict) and isinstance(by_new, dict):
        corrected = CORRECTED if by_new.get("backfill") else corrected
        for name in by_old.keys() & by_new.keys() - TEXTS - corrected:
            if name == "refs":
                by_new = {**by_new, name: [ref for ref in by_new[name] if ref in by_old[name]]}
            yield from _differences(by_old[name], by_new[name], f"{path}.{name}")
    elif isinstance(by_old, list) and isinstance(by_new, list) and len(by_old) == len(by_new):
        for number, (one, other) in enumerate(zip(by_old, by_new, strict=True)):
            yield from _differences(one, other, f"{path}[{number}]")
    elif by_old != by_new:
        yield path, by_old, by_new
