"""The request for a backfill: a past interval or partitions, the concurrency, and the order (L12)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from chalicelib.core.documents import Document, Properties, Reference, StoredReference
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import parse_instant
from chalicelib.core.partition_values import check_value
from chalicelib.core.rows.backfill import BackfillOnly, BackfillOrder

MAX_BATCH = 100  # active runs of one backfill: as many jobs as one transaction can write
MAX_VALUE = 200  # characters of a partition key's value


def _check_moment(text: str) -> str:
    parse_instant(text, "")
    return text


def _text(given: Any) -> Any:
    """A value as in the folder names of S3; of a whole number its digits. Raises `SluiceError` for anything else."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise invalid("", "text or a whole number", given)
    if not 0 < len(str(given)) <= MAX_VALUE or "/" in str(given) or not str(given).isprintable():
        raise invalid("", f"1 to {MAX_VALUE} printable characters without '/'", given)
    check_value(str(given), "")
    return str(given)


Moment = Annotated[str, AfterValidator(_check_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Value = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int)]
Values = dict[str, Value]


class PartitionRange(Document):
    """Partitions of a dataset for which the schedule waits; a schedule with one dataset may omit it. They are the
    registered partitions between ``from`` and ``to``, both included, or those in ``values``, registered or not.

    ``from`` and ``to`` may have the first keys only: ``{"year": "2013"}`` to ``{"year": "2013", "month": "3"}`` is the
    first quarter. Without both, all registered partitions count.

    Of a schedule with ``per`` they are periods, by the keys of its jobs: ``{"day": "2026-03-01"}``. Those between
    ``from`` and ``to``, which have the label alone, run if their trigger would start them with the partitions that are
    registered. Those in ``values`` run with what is there.
    """

    dataset: Reference | None = None
    from_: Values | None = Field(default=None, alias="from")
    to: Values | None = None
    values: tuple[Values, ...] | None = Field(default=None, min_length=1, max_length=1_000)

    @model_validator(mode="after")
    def _one_of_both(self) -> PartitionRange:
        if self.values is not None and (self.from_ is not None or self.to is not None):
            raise invalid("values", "either a range (from, to) or values", "both")
        return self


class Backfill(Document):
    """The request for a backfill: ``from`` (included) and ``to`` (excluded) for time triggers, ``partitions`` for data
    triggers. ``only: missing`` runs those that have never run, ``failed`` those whose newest run has not succeeded,
    ``all`` (the default) both and those that have succeeded. What waits or runs at present is left alone.
    ``properties`` override those of the schedule. With ``dry_run`` Sluice returns the plan and stores nothing.
    """

    from_: Moment | None = Field(default=None, alias="from")
    to: Moment | None = None
    partitions: PartitionRange | None = None
    only: BackfillOnly = "all"
    concurrency: int = Field(default=1, ge=1, le=MAX_BATCH)
    order: BackfillOrder = "oldest"
    properties: Properties = Field(default_factory=dict)
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Backfill:
        interval = self.from_ is not None or self.to is not None
        if interval == (self.partitions is not None):
            got = "both" if interval else "neither"
            hint = "a schedule with a time trigger takes from and to, one that waits for data takes partitions"
            raise invalid("from", "either an interval (from, to) or partitions", got, hint)
        if interval and (self.from_ is None or self.to is None):
            missing = "from" if self.from_ is None else "to"
            raise SluiceError("invalid", "expected both ends of the interval, got one", missing, "add the other end")
        return self


class FireRange(Document):
    """The fires of a schedule with a time in its trigger, or of such a DAG, by its full name. They are those from
    ``from`` (included) to ``to`` (excluded)."""

    schedule: StoredReference
    from_: Moment = Field(alias="from")
    to: Moment


class Reprocess(Document):
    """The request for a re-processing. It begins with a ``partition`` of a dataset, or the registered ones between
    ``from`` and ``to`` (both included). Or it begins with a ``run``, also that of a DAG's start, or with ``fires``.
    ``scope: only`` runs the first schedules alone, ``downstream`` everything after them too, and ``upto`` what leads to
    that workflow (its full name). With ``dry_run`` Sluice returns the plan and stores nothing.
    """

    dataset: Reference | None = None
    run: str | None = Field(default=None, min_length=1, max_length=1_000)
    fires: FireRange | None = None
    partition: Values | None = None
    from_: Values | None = Field(default=None, alias="from")
    to: Values | None = None
    scope: Literal["downstream", "only"] = "downstream"
    upto: StoredReference | None = None
    concurrency: int = Field(default=1, ge=1, le=MAX_BATCH)
    properties: Properties = Field(default_factory=dict)
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_start(self) -> Reprocess:
        bounds = self.from_ is not None or self.to is not None
        starts = {"dataset": self.dataset, "run": self.run, "fires": self.fires}
        given = [name for name, start in starts.items() if start is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            raise invalid(given[-1] if given else "dataset", "one of dataset, run and fires", got)
        if self.dataset is None and (bounds or self.partition is not None):
            raise invalid("dataset", "a dataset with partition, from or to", f"{given[0]}, which has no such bounds")
        if self.dataset is not None and bounds == (self.partition is not None):
            got = "both" if bounds else "neither"
            raise invalid("partition", "either a partition or bounds (from, to)", got)
        if self.scope == "only" and self.upto is not None:
            raise invalid("upto", "upto with scope: downstream", "scope: only", "leave out one of them")
        return self
