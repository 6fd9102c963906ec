"""The rows of documents that are not schedules, and of what leads to them. `core/rows/schedule.py` has all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class Definition(StoredRow):
    """A document that is not a schedule: namespace, app, workflow, dataset, policy, pool or DAG, by its full name. A
    graph that a DAG has or had is one, too, under the name that `core/dags/compile.py` gives it, and never changes.

    ``counted``: every start of this workflow is counted in its line, also at a target without a lifecycle, because a
    schedule asks how often it starts or when it last did (C5, T13). ``cut``: the lines of a pool that had more units
    before, and may still have more in use than they have now (W3). ``edition`` counts the changes of a workflow, also
    past a deletion: the workflow's line knows the same number, and a claim expects it there. Of a pool it counts the
    runs that were counted there after they had begun. ``uncounted``: living runs of a workflow may lack the pool
    that it names since (`core/runs/counting.py`).
    """

    kind: Literal["namespace", "app", "workflow", "dataset", "policy", "pool", "dag"]
    name: str
    document: Mapping[str, Any]
    version: int
    updated_at: Instant
    by: str = ""
    counted: bool = False
    shrunk: tuple[str, ...] = ()
    edition: int = 0
    uncounted: bool = False


@dataclass(frozen=True, slots=True)
class Listing(StoredRow):
    """Says that an app has a schedule of this name; of a message also what it runs, so that a workflow which goes is
    looked for in the list alone."""

    schedule: str
    workflow: str = ""


@dataclass(frozen=True, slots=True)
class PrefixRow(StoredRow):
    """Says which dataset a prefix of a bucket belongs to, and since when. What a table had before is its history."""

    bucket: str
    prefix: str
    dataset: str
    since: Instant = 0
