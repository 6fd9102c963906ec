"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.
"""

from __future__ import annotations

from pydantic import Field

from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.dataset import BUCKET, Dataset
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.documents import Described, Name
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.targets.registry import AnyTarget


class App(Described):
    """One deployment: an app's workflows, schedules and DAGs, and datasets of its namespace (L8).

    ``default_target`` serves the messages that name none (L16); ``data_bucket`` keeps data that is too large to stand
    with its schedule or message (L13), instead of the control bucket.
    """

    namespace: Name | None = None
    app: Name | None = None
    default_target: AnyTarget | None = None
    data_bucket: str | None = Field(default=None, pattern=BUCKET)
    datasets: dict[Name, Dataset] = Field(default_factory=dict)
    policies: dict[Name, Policy] = Field(default_factory=dict)
    pools: dict[Name, Pool] = Field(default_factory=dict)
    workflows: dict[Name, Workflow] = Field(default_factory=dict)
    schedules: dict[Name, NewSchedule] = Field(default_factory=dict)
    dags: dict[Name, NewDag] = Field(default_factory=dict)
