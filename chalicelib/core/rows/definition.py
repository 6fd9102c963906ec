"""The rows of all documents but schedules, and the rows by which these are found. `core/rows/schedule.py` has
schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.definition_kinds import DefinitionKind
from chalicelib.core.instants import Instant
from chalicelib.core.rows.authors import Authors
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class Definition(StoredRow):
    """A document that is not a schedule: namespace, app, workflow, dataset, policy, pool, calendar or DAG, by its full
    name. Each graph that a DAG has or had is a definition, too. Its name comes from `core/dags/compile.py`, and it
    never changes.

    ``counted``: the limit of this workflow counts every start, also at a target without a lifecycle. A schedule depends
    on the number of its starts, or on the last one (C5, T13). ``shrunk`` are the limits of a pool that had more units
    before, and may still have more in use than they have now (W3).

    ``edition`` of a workflow counts its changes, and keeps its value through a deletion. The workflow's limit carries
    the same number, and a claim expects it there. ``edition`` of a pool counts the runs that acquired units of it after
    they had begun. ``edition`` of an app is the mark of the deployment in progress, 0 without one
    (`flow/deploy/turns.py`). ``uncounted``: active runs of a workflow may lack units of its pool
    (`core/runs/counting.py`). ``authors`` of a workflow or DAG has who wrote which fields (`core/rows/authors.py`).
    """

    kind: DefinitionKind
    name: str
    document: Mapping[str, Any]
    version: int
    updated_at: Instant
    by: str = ""
    counted: bool = False
    shrunk: tuple[str, ...] = ()
    edition: int = 0
    uncounted: bool = False
    authors: Authors = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing(StoredRow):
    """An entry in the list of an app's schedules. For a message it also names the workflow. So the deletion of a
    workflow finds the messages that refer to it in the list alone. ``fires`` are the fires a day of a schedule that
    fires often, for the quota of its namespace."""

    schedule: str
    workflow: str = ""
    fires: int | None = None


@dataclass(frozen=True, slots=True)
class PrefixRow(StoredRow):
    """The dataset at a prefix of a bucket, and the namespace to which an administrator gave the prefix (``owner``).
    Either is empty if there is none. Objects from before ``since`` do not count."""

    bucket: str
    prefix: str
    dataset: str
    since: Instant = 0
    owner: str = ""

    @property
    def namespace(self) -> str:
        """The namespace to which the prefix belongs. No administrator gives away the prefix of a dataset, so it is that
        of the dataset if there is one."""
        return self.owner or self.dataset.partition(".")[0]


@dataclass(frozen=True, slots=True)
class PrefixLock(StoredRow):
    """Counts the changes of prefixes below a first folder of a bucket in ``rev``. A change that has searched for nested
    prefixes writes it, so that no other change is missed."""

    bucket: str
    folder: str
    rev: int = 1
