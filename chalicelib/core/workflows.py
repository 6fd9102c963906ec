"""The documents that say what there is to run and what data it works on: namespaces, workflows, datasets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from chalicelib.core.calendar import DAY, MINUTE, Millis, duration
from chalicelib.core.delivery import Delivery
from chalicelib.core.documents import Document, Duration, Properties, Reference, Tags
from chalicelib.core.errors import invalid
from chalicelib.core.notify import Notify
from chalicelib.core.resources import Resources
from chalicelib.core.retries import Retries
from chalicelib.core.targets import AnyTarget

DEFAULT_PRIORITY = 5
BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"  # the name of an S3 bucket
MOST_PREFIX = 900  # bytes: an S3 key has 1,024, and the partition and the file want some too


def _check_run_timeout(text: str) -> str:
    if text != "never" and not MINUTE <= duration(text, "") <= 30 * DAY:
        raise invalid("", "a timeout from 1m to 30d, or never", text)
    return text


RunTimeout = Annotated[str, AfterValidator(_check_run_timeout)]


class Described(Document):
    """What everything that has an owner carries (L18); changing it changes nothing else."""

    description: str = Field(default="", max_length=1_000)
    tags: Tags = Field(default_factory=dict)
    owner: str = Field(default="", max_length=200)


class Namespace(Described):
    pass


class Deadline(Document):
    """A job is to be started, and its run to end, within a span ``from`` when its fire was due or, for one that data
    started, when the data was there (``nominal``), or always when the data was there (``data``). (H5, W14)"""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    start_within: Duration | None = None
    end_within: Duration | None = None
    since: Literal["nominal", "data"] = Field(default="nominal", alias="from")

    @model_validator(mode="after")
    def _says_when(self) -> Deadline:
        if self.start_within is None and self.end_within is None:
            raise invalid("", "start_within, end_within, or both", "neither")
        return self


class Workflow(Described):
    """What is run: a target with default properties (runtime arguments), retries and a priority (9 is most urgent).

    ``delivery`` says how often a delivery is tried, at a target without a lifecycle. ``timeout`` is how long a run may
    take, from when it runs: then it is cancelled, and has failed (W12). ``notify`` says who is told when something goes
    wrong (W9), a missed ``deadline`` included (H5).

    ``pool`` is where it takes its ``slots``, or the vCPUs of its ``resources`` (W3, W13). ``expected`` is how long a
    run takes: among equals who must start the earliest to meet its ``deadline`` goes first (W14). A schedule may say
    otherwise of these, and of ``retries``.
    """

    target: AnyTarget
    properties: Properties = Field(default_factory=dict)
    priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=9)
    retries: Retries = Field(default_factory=Retries)
    delivery: Delivery = Field(default_factory=Delivery)
    timeout: RunTimeout = "12h"
    pool: Reference | None = None
    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    resources: Resources | None = None
    deadline: Deadline | None = None
    expected: Duration | None = None
    notify: tuple[Notify, ...] = Field(default=(), max_length=5)

    @field_validator("pool")
    @classmethod
    def _is_of_a_namespace(cls, pool: str | None) -> str | None:
        return check_pool(pool)

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else duration(self.timeout)


def check_pool(pool: str | None) -> str | None:
    """A pool belongs to a namespace, not to an app."""
    if pool is not None and pool.count(".") > 1:
        raise invalid("", "a pool as name or namespace.name", pool)
    return pool


class Readiness(Document):
    """When a partition is ready (T8): at its first object; when ``done_flag`` appears in it; or when all objects are
    there that the object ``manifest`` lists, one name to a line or as a JSON list."""

    done_flag: str | None = Field(default=None, pattern=r"^[^/]+$", max_length=200)
    manifest: str | None = Field(default=None, pattern=r"^[^/]+$", max_length=200)

    @model_validator(mode="after")
    def _one_rule(self) -> Readiness:
        if self.done_flag is not None and self.manifest is not None:
            raise invalid("", "either a done_flag or a manifest", "both")
        return self


Operation = Literal["append", "overwrite", "delete", "replace"]
NEW_DATA: tuple[Operation, ...] = ("append", "overwrite")
SNAPSHOT = ("snapshot",)  # the partition key of a table


class Dataset(Described):
    """An S3 prefix whose partitions are laid out as ``key=value/`` folders, in the order of ``keys``; or, with
    ``format: iceberg``, the location of an Iceberg table, each snapshot of which is a partition (T21).

    ``operations``: snapshots of a table that count. What only rewrites or removes data does not, unless it is named.
    ``glue_table`` (``database.table``): the Glue catalog says which snapshots are committed; ``single_writer``: all
    are, for no commit of the table competes with another. Else a later metadata file of the table says so.
    ``count_overwrites``: for size triggers, an object that is written again with other content counts again (T9).
    ``priority``: the jobs that its data triggers are at least as urgent (W2).
    """

    bucket: str = Field(pattern=BUCKET)
    prefix: str
    format: Literal["files", "iceberg"] = "files"
    keys: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")], ...] = Field(default=(), max_length=10)
    ready: Readiness = Field(default_factory=Readiness)
    count_overwrites: bool = False
    priority: int | None = Field(default=None, ge=0, le=9)
    operations: tuple[Operation, ...] = Field(default=(), max_length=4)
    glue_table: str | None = Field(default=None, pattern=r"^[^.\s]{1,255}\.[^.\s]{1,255}$")
    single_writer: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_a_table(cls, data: Any) -> Any:
        """What follows from the format need not be written."""
        if isinstance(data, dict) and data.get("format") == "iceberg":
            return {"keys": SNAPSHOT, "operations": NEW_DATA, **data}
        return data

    @model_validator(mode="after")
    def _fits_its_format(self) -> Dataset:
        if self.format == "files":
            for field in ("operations", "glue_table", "single_writer"):
                if getattr(self, field):
                    raise invalid(field, "it only with format: iceberg", getattr(self, field))
            if not self.keys:
                raise invalid("keys", "the partition keys of the dataset", "nothing", "add the field")
            return self
        if self.keys != SNAPSHOT:
            raise invalid("keys", "no keys, for each snapshot of a table is a partition", list(self.keys))
        if not self.operations:
            raise invalid("operations", "at least one operation, such as append", "none")
        for field in ("ready", "count_overwrites"):
            if getattr(self, field) != type(self).model_fields[field].get_default(call_default_factory=True):
                raise invalid(field, "it only with format: files", "it for a table, whose commits say what is ready")
        if self.glue_table is not None and self.single_writer:
            raise invalid("single_writer", "either glue_table or single_writer", "both")
        return self

    @field_validator("prefix")
    @classmethod
    def _names_a_folder(cls, prefix: str) -> str:
        if len(prefix.encode()) > MOST_PREFIX:
            raise invalid("", f"a prefix of at most {MOST_PREFIX} bytes", prefix)
        if not prefix.endswith("/") or prefix.startswith("/") or "//" in prefix:
            raise invalid("", "a prefix that ends with '/' and does not begin with one, such as raw/flights/", prefix)
        return prefix

    @field_validator("keys")
    @classmethod
    def _distinct(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(keys)) < len(keys):
            raise invalid("", "distinct partition keys", list(keys))
        return keys
