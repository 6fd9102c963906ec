"""The document of an app: all that one deployment contains (L8)."""

from __future__ import annotations

from pydantic import Field

from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.dataset import BUCKET, Dataset
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.documents import Described, Name
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.targets.registry import AnyTarget


class App(Described):
    """One deployment: the workflows, schedules and DAGs of an app, and datasets, policies, pools and holiday calendars
    of its namespace (L8).

    ``default_target`` is the target of messages that name none (L16). ``data_bucket`` replaces the control bucket as
    the store of data that is too large for the row of its schedule or message (L13).
    """

    namespace: Name | None = None
    app: Name | None = None
    default_target: AnyTarget | None = None
    data_bucket: str | None = Field(default=None, pattern=BUCKET)
    datasets: dict[Name, Dataset] = Field(default_factory=dict)
    policies: dict[Name, Policy] = Field(default_factory=dict)
    pools: dict[Name, Pool] = Field(default_factory=dict)
    calendars: dict[Name, HolidayCalendar] = Field(default_factory=dict)
    workflows: dict[Name, Workflow] = Field(default_factory=dict)
    schedules: dict[Name, NewSchedule] = Field(default_factory=dict)
    dags: dict[Name, NewDag] = Field(default_factory=dict)
