"""The documents of a workflow and of a namespace."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, Tag, field_validator, model_validator

from chalicelib.core.constraints.approval import Approval
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.documents import (
    ONCE_EACH,
    Described,
    Document,
    Duration,
    Properties,
    Reference,
    Sparse,
    one_of,
    spanning,
)
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, Millis, duration
from chalicelib.core.names import dataset_name
from chalicelib.core.targets.registry import AnyTarget
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Delivery, Retries

DEFAULT_PRIORITY = 5
# That a workflow reads, and that it produces: the transaction at the end of a run registers a partition of each.
MAX_DATASETS = 20


def _check_run_timeout(text: str) -> str:
    if text != "never" and not MINUTE <= duration(text, "") <= 30 * DAY:
        raise invalid("", "a timeout from 1m to 30d, or never", text, "such as 2h")
    return text


RunTimeout = Annotated[str, AfterValidator(_check_run_timeout)]
StartTimeout = Annotated[
    Duration, spanning(MINUTE, 30 * DAY, "a start_timeout from 1m to 30d", "such as 30m; leave it out for no limit")
]


class Namespace(Described):
    pass


class Deadline(Document):
    """The spans within which a job must be started (``start_within``) and its run must end (``end_within``) (H5, W14).

    With ``from: nominal`` they count from the due instant of the fire, or for a job without a fire from the arrival of
    its data. With ``from: data`` they always count from the arrival of the data."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    start_within: Duration | None = None
    end_within: Duration | None = None
    since: Literal["nominal", "data"] = Field(default="nominal", alias="from")

    @model_validator(mode="after")
    def _says_when(self) -> Deadline:
        if self.start_within is None and self.end_within is None:
            raise invalid("", "start_within, end_within, or both", "neither", "such as end_within: 2h")
        return self


def _check_pool(pool: str) -> str:
    """Returns the name of a pool. Raises ``invalid`` for a name with an app: a pool belongs to a namespace."""
    if pool.count(".") > 1:
        raise invalid("", "a pool as name or namespace.name", pool, "such as spark, or demo.spark")
    return pool


PoolReference = Annotated[Reference, AfterValidator(_check_pool)]


def _check_dataset(dataset: str) -> str:
    """Returns the name of a dataset. Raises ``invalid`` for a name with an app: a dataset belongs to a namespace."""
    if dataset.count(".") > 1:
        raise invalid("", "a dataset as name or namespace.name", dataset, "such as daily, or demo.daily")
    return dataset


DatasetReference = Annotated[Reference, AfterValidator(_check_dataset)]


class Registered(Document):
    """A dataset of which each run that succeeds is a partition: Sluice registers it at the end of the run (L22)."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    dataset: DatasetReference
    when: Literal["on_success"] = Field(alias="register")


AnyProduct = Annotated[
    Annotated[DatasetReference, Tag("@name")] | Annotated[Registered, Tag("@registered")],
    one_of(
        lambda value: "@name" if isinstance(value, str) else "@registered",
        "the name of a dataset, or an object with dataset and register",
    ),
]


class Workflow(Described, Sparse):
    """A target with default properties (runtime arguments), retries and a priority (9 is most urgent).

    ``delivery`` is the policy of deliveries to a target without a lifecycle. ``timeout`` is how long a run may be
    RUNNING; then Sluice cancels it, and it has failed (W12). ``start_timeout`` is the same for the time from its start
    request until it is RUNNING (W21). ``notify`` names the targets of notices about failures (W9) and missed deadlines
    (H5).

    From ``pool``, a run takes ``slots``, or the vCPUs of its ``resources`` (W3, W13). ``expected`` is the expected
    duration of a run. Of jobs with equal priority, the one that must start first to meet its ``deadline`` goes first
    (W14). A schedule may override these and ``retries``. Each job that runs the workflow waits for its ``approval``,
    whichever schedule has made it (C16). Its runs read partitions of the datasets ``reads``, and write partitions of
    those in ``produces`` (L22).
    """

    omitted: ClassVar[Collection[str]] = ("approval", "reads", "produces", "start_timeout")

    target: AnyTarget
    properties: Properties = Field(default_factory=dict)
    priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=9)
    retries: Retries = Field(default_factory=Retries)
    delivery: Delivery = Field(default_factory=Delivery)
    timeout: RunTimeout = "12h"
    start_timeout: StartTimeout | None = None
    pool: PoolReference | None = None
    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    resources: Resources | None = None
    deadline: Deadline | None = None
    expected: Duration | None = None
    notify: tuple[Notify, ...] = Field(default=(), max_length=5)
    approval: Approval | None = None
    reads: Annotated[tuple[DatasetReference, ...], Field(max_length=MAX_DATASETS), ONCE_EACH] = ()
    produces: Annotated[tuple[AnyProduct, ...], Field(max_length=MAX_DATASETS)] = ()

    @field_validator("produces")
    @classmethod
    def _once_each(cls, produces: tuple[AnyProduct, ...]) -> tuple[AnyProduct, ...]:
        names = [_dataset_of(product) for product in produces]
        if len(set(names)) < len(names):
            raise invalid("", "each dataset once", names, "remove one of the two")
        return produces

    @model_validator(mode="after")
    def _reports_starts(self) -> Workflow:
        if self.start_timeout is not None and not self.target.has_lifecycle:
            hint = "remove it; delivery limits the tries of a delivery"
            expected = "start_timeout only for a target that reports when its runs begin"
            raise invalid("start_timeout", expected, f"one of type {self.target.type}", hint)
        return self

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else duration(self.timeout)

    @property
    def start_timeout_millis(self) -> Millis | None:
        return None if self.start_timeout is None else duration(self.start_timeout)

    def datasets_read(self, namespace: str) -> tuple[str, ...]:
        """The full names of the datasets that its runs read. ``namespace`` is that of the workflow."""
        return tuple(dataset_name(name, namespace) for name in self.reads)

    def datasets_produced(self, namespace: str) -> tuple[str, ...]:
        """The full names of the datasets that its runs write."""
        return tuple(dataset_name(_dataset_of(product), namespace) for product in self.produces)

    def datasets_registered(self, namespace: str) -> tuple[str, ...]:
        """Of these, the datasets of which Sluice registers a partition when a run has succeeded."""
        registered = (product.dataset for product in self.produces if isinstance(product, Registered))
        return tuple(dataset_name(name, namespace) for name in registered)


def _dataset_of(product: AnyProduct) -> str:
    return product.dataset if isinstance(product, Registered) else product
