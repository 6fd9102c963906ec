"""The document of a dataset: an S3 prefix with partitions, or an Iceberg table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from chalicelib.core.definitions.listed import ListedOrSeen, check_listed
from chalicelib.core.definitions.period import PeriodRule
from chalicelib.core.documents import ONE_LINE, STORED, Described, Document, Duration, Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.instants import MINUTE, duration
from chalicelib.core.time import period_names

BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"  # the name of an S3 bucket
KEY = r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$"  # a partition key, such as day, _region or aws-account-id


MAX_PREFIX = 900  # bytes of the 1,024 of an S3 key; the rest is for the partition and the file


def _check_fresh(span: str) -> str:
    if duration(span) < MINUTE:
        raise invalid("", "a span of at least 1m", span, "such as 26h for a dataset that gets a partition each day")
    return span


FileName = Annotated[str, Field(pattern=r"^[^/]+$", max_length=200), ONE_LINE]


def _check_prefix(prefix: str) -> str:
    if len(prefix.encode()) > MAX_PREFIX:
        raise invalid("", f"a prefix of at most {MAX_PREFIX} bytes", prefix, "use shorter names of folders")
    if not prefix.endswith("/") or prefix.startswith("/") or "//" in prefix:
        hint = "write the folder without the bucket, with a slash at its end"
        raise invalid("", "a prefix that ends with '/' and does not begin with one, such as raw/flights/", prefix, hint)
    return prefix


Prefix = Annotated[str, AfterValidator(_check_prefix), ONE_LINE]  # a folder of a bucket


class Readiness(Document):
    """When a partition is ready (T8): at its first object, when the object ``done_flag`` arrives, or when all objects
    have arrived that ``manifest`` lists. ``manifest`` is an object with one name in each row, or with a JSON list."""

    done_flag: FileName | None = None
    manifest: FileName | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Readiness:
        if self.done_flag is not None and self.manifest is not None:
            raise invalid("", "either a done_flag or a manifest", "both", "remove one of the two")
        return self


Operation = Literal["append", "overwrite", "delete", "replace"]


NEW_DATA: tuple[Operation, ...] = ("append", "overwrite")


SNAPSHOT = ("snapshot",)  # the partition key of a table


class Dataset(Described, Sparse):
    """A prefix of S3 with partitions in ``key=value/`` folders, in the order of ``keys``, or with ``format: iceberg``
    the location of an Iceberg table. Each snapshot of the table is a partition (T21).

    ``operations``: the snapshots of a table that count; by default, not those that only rewrite or remove data.
    ``glue_table`` (``database.table``): the Glue catalog shows which snapshots are committed. ``single_writer``: all
    are, because commits of the table never compete. Without both, a later metadata file of the table shows it.
    ``count_overwrites``: for size triggers, an object that is overwritten with other content counts again (T9).
    ``rewritten: again``: a known partition that is written again is a new event: with a done-flag or a manifest, when
    this is put (T22); without both, when another run that registers it has succeeded (L22).
    ``period``: the period that each partition is, and how its folders name it (T24).
    ``values``: which values its other keys have, so that it is known which partitions a period has (T25). A list, or
    ``seen_last``: those that the period before had.
    ``fresh``: the dataset is late when its newest partition came longer ago (T29).
    ``priority``: the least priority of the jobs that its data triggers (W2).
    """

    omitted: ClassVar[Collection[str]] = ("rewritten", "period", "values", "fresh")

    bucket: str = Field(pattern=BUCKET)
    prefix: Prefix
    format: Literal["files", "iceberg"] = "files"
    keys: tuple[Annotated[str, Field(pattern=KEY)], ...] = Field(default=(), max_length=10)
    ready: Readiness = Field(default_factory=Readiness)
    count_overwrites: bool = False
    rewritten: Literal["again", "ignore"] = "ignore"
    period: PeriodRule | None = None
    values: dict[str, ListedOrSeen] = Field(default={}, max_length=10)
    fresh: Annotated[Duration, AfterValidator(_check_fresh)] | None = None
    priority: int | None = Field(default=None, ge=0, le=9)
    operations: tuple[Operation, ...] = Field(default=(), max_length=4)
    glue_table: str | None = Field(default=None, pattern=r"^[^.\s]{1,255}\.[^.\s]{1,255}$")
    single_writer: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_a_table(cls, data: Any) -> Any:
        """Adds the fields that follow from the format."""
        if isinstance(data, dict) and data.get("format") == "iceberg":
            return {"keys": SNAPSHOT, "operations": NEW_DATA, **data}
        return data

    @model_validator(mode="after")
    def _fits_its_format(self, info: ValidationInfo) -> Dataset:
        if self.format == "files":
            for field in ("operations", "glue_table", "single_writer"):
                if getattr(self, field):
                    hint = "remove the field, or add format: iceberg"
                    raise invalid(field, f"{field} only with format: iceberg", getattr(self, field), hint)
            if not self.keys:
                raise invalid("keys", "the partition keys of the dataset", "nothing", "add the field")
            self._check_period(info)
            return self
        if self.keys != SNAPSHOT:
            hint = "remove keys"
            raise invalid("keys", "no keys, because each snapshot of a table is a partition", list(self.keys), hint)
        if not self.operations:
            hint = "leave it out to count every operation, or name one"
            raise invalid("operations", "at least one operation, such as append", "none", hint)
        for field in ("ready", "count_overwrites", "rewritten", "period", "values"):
            if getattr(self, field) != type(self).model_fields[field].get_default(call_default_factory=True):
                expected = f"{field} only with format: files"
                hint = "remove the field, or the format"
                raise invalid(field, expected, f"{field} for a table, whose commits determine what is ready", hint)
        if self.glue_table is not None and self.single_writer:
            raise invalid("single_writer", "either glue_table or single_writer", "both", "remove one of the two")
        return self

    @property
    def told_again_by(self) -> Literal["objects", "runs"] | None:
        """What says that a known partition was written again: its done-flag or manifest, or without both the runs that
        register it. None if nothing does."""
        if self.rewritten == "ignore":
            return None
        return "runs" if self.ready == Readiness() else "objects"

    def _check_period(self, info: ValidationInfo) -> None:
        self._check_values(info)
        if self.period is None:
            return
        named = period_names.keys_of(self.period.format)
        if named != tuple(key for key in self.keys if key in named):
            hint = "write the folders in the order of keys; leave out those that are no part of the period"
            raise invalid("period.format", f"folders of the keys {', '.join(self.keys)}", self.period.format, hint)

    def _check_values(self, info: ValidationInfo) -> None:
        """Raises ``invalid`` unless the listed values are those of keys that do not name the period."""
        if self.values and self.period is None:
            hint = "add period, or remove values: without a period, no set of partitions is complete"
            raise invalid("values", "values only with a period", sorted(self.values), hint)
        named = period_names.keys_of(self.period.format) if self.period is not None else ()
        others = [key for key in self.keys if key not in named]
        for key, values in self.values.items():
            if key not in others:
                expected = f"keys that do not name the period: {', '.join(others) or 'there are none'}"
                raise invalid(f"values.{key}", expected, key, "correct the key, or remove it")
            if isinstance(values, tuple):
                check_listed(key, values, info)
        if list(self.values.values()).count("seen_last") > 1:
            raise invalid("values", "seen_last for one key", sorted(self.values), "list the values of the other keys")

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """The values of the keys for which they are listed."""
        return {key: values for key, values in self.values.items() if isinstance(values, tuple)}

    @property
    def grows(self) -> str | None:
        """The key whose values are those of the period before; None if there is none."""
        return next((key for key, values in self.values.items() if values == "seen_last"), None)

    @field_validator("keys")
    @classmethod
    def _distinct(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(keys)) < len(keys):
            raise invalid("", "distinct partition keys", list(keys), "write each key once")
        return keys

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """A stored dataset, whose zone the present rules may no longer have, unless a context says otherwise."""
        return super().model_validate(obj, **({"context": STORED} if cls is Dataset else {}) | options)
