"""Every kind of stored row, in one table: where its rows lie, whose they are, and what becomes of them.

`aws/tables` derives keys from it and the kind of a row from its key, the sweep its reads, exports what they contain.
A key is a partition and a sort key of a table. Names in braces are fields or properties of the row, each as `_TEXTS`
writes it. A ref has the same texts, so the key of a row follows from its ref.

Each schedule state has a partition of its own, so that a thousand schedules of one app that are due together share no
hot key. The indexes are: `wake` (wake_shard, wake_at) of each table, sparse; `events` (event_job) of jobs; of runs also
by_workflow, by_schedule and by_day (.., at). Parts `waits#<ns>#<shard>` (jobs) and `paused#<ns>#<shard>` (catalog) of
`wake` list rows that no instant wakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Final, Literal, NamedTuple

from chalicelib.core import ids
from chalicelib.core.rows.access import AccessRow, AllowedRow, QuotasRow
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixLock, PrefixRow
from chalicelib.core.rows.delivery_lease import ClosingCount, DeliveryLease
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.event import (
    AppliedEvent,
    CountedObject,
    LastArrival,
    ManifestRow,
    NewestPartition,
    Partition,
    PostedEvent,
)
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.rows.job import Job, Requested
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.notice import DeadlineWatch, FreshnessWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.ref import Ref, RefKind
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import DeadLetter, Fire, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version, ZoneRules
from chalicelib.core.rows.stops import StopsRow

TableName = Literal["catalog", "jobs", "runs"]
TABLES: Final[tuple[TableName, ...]] = ("catalog", "jobs", "runs")
NAMESPACES = "NAMESPACES"  # the partition of all namespaces
Part = str | int | tuple[str, ...]  # of a key, as a row has it
MAX_KEYS = 8_192  # that are not made again; a batch of jobs asks for each of its keys several times

# How a part of a key is written, by the name of its field. Numbers that sort have leading zeros.
_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "generation": ids.base36,
    "version": "{:010d}".format,
    "attempt": "{:03d}".format,
    "number": "{:04d}".format,
    "values": "/".join,
}


_PART = re.compile(r"\{(\w+)\}")  # of a template


class Key(NamedTuple):
    table: TableName
    pk: str
    sk: str


@dataclass(frozen=True)
class Kind:
    """One kind of row. ``owner`` is the field whose full name begins with the namespace of a row; empty for one of the
    whole installation. ``ref`` is the kind of refs that name its rows, if they wake.

    ``left_out`` says why no export has these rows. ``history``: a row expires with the history of its run or job (H1).
    ``fixed``: a row never changes once it is written, so a process may keep it. ``unswept``: the sweep leaves the rows
    alone, because another step of the tick finds those that are due. ``stamp``: the attributes that show whether a row
    has changed. Every change raises its ``rev``; the others differ in a row that was deleted and written again.

    If the parts of a key are no fields of the row, ``computed`` makes them of the fields ``by``, and ``heads`` are the
    beginnings of the two keys that no other kind has.
    """

    row: type[Any]
    table: TableName
    pk: str
    sk: str
    owner: str = "schedule"
    ref: RefKind | None = None
    left_out: str = ""
    history: bool = False
    fixed: bool = False
    unswept: bool = False
    stamp: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    computed: Callable[..., tuple[str, ...]] | None = None
    heads: tuple[tuple[str, str], ...] = ()

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts of a key of this kind, in their order there."""
        return tuple(_PART.findall(self.pk + self.sk))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of a row from which its key follows."""
        return self.by or self.parts

    @cached_property
    def beginnings(self) -> tuple[tuple[str, str], ...]:
        """How the two keys begin."""
        return self.heads or ((self.pk.partition("{")[0], self.sk.partition("{")[0]),)

    @cached_property
    def _writers(self) -> tuple[Callable[[Any], str], ...]:
        return tuple(_TEXTS.get(name, str) for name in self.parts)

    @cached_property
    def _forms(self) -> tuple[str, str]:
        """The templates of both keys, which take the texts of all parts in their order."""
        numbers = count()
        pk, sk = (_PART.sub(lambda _: f"{{{next(numbers)}}}", template) for template in (self.pk, self.sk))
        return pk, sk

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Matches both keys, with a line end between them. A part ends where the text behind it first comes."""
        form = re.escape(f"{self.pk}\n{self.sk}").replace(r"\{", "{").replace(r"\}", "}")
        return re.compile(_PART.sub("(.*?)", form), re.DOTALL)

    def written(self, *values: Part) -> tuple[str, ...]:
        """The texts of the parts of the key of the row that has these values in its `fields`."""
        if self.computed is not None:
            return self.computed(*values)
        return tuple(write(value) for write, value in zip(self._writers, values, strict=True))

    def key(self, texts: Sequence[str]) -> Key:
        """The key with these texts for its parts."""
        if len(texts) != len(self.parts):
            raise ValueError(f"expected {self.parts} of a key of {self.row.__name__}, got {texts}")
        pk, sk = self._forms
        return Key(self.table, pk.format(*texts), sk.format(*texts))

    def texts(self, key: Key) -> tuple[str, ...] | None:
        """The texts of the parts of a key; None for a key of another kind."""
        for pk, sk in self.beginnings:
            if key.sk.startswith(sk) and key.pk.startswith(pk):
                found = self._pattern.fullmatch(f"{key.pk}\n{key.sk}")
                return found.groups() if found is not None else None
        return None


def _of_definition(kind: str, name: str) -> tuple[str, str]:
    """The keys of a definition. Lists of an app or a namespace are queries by the beginning of the sort key."""
    parent, _, short = name.rpartition(".")
    if kind == "namespace":
        return NAMESPACES, name
    if ids.is_of_message(name):  # next to the message, so that no list of workflows contains it
        return f"SCHEDULE#{name}", "WORKFLOW"
    group = f"APP#{parent}" if kind in ("workflow", "dag") else f"NS#{parent}"
    word = "GRAPH" if kind == "dag" and ids.is_dag_graph(name) else kind.upper()
    return group, f"{word}#{short}"


def _of_listing(schedule: str) -> tuple[str, str]:
    app, _, short = schedule.rpartition(".")
    if ids.is_of_message(schedule):
        return app, f"MESSAGE#{short.removeprefix(ids.MESSAGE)}"
    return app, f"SCHEDULE#{short}"


def _of_object(dataset: str, object_key: str, etag: str) -> tuple[str, str, str]:
    """An S3 key may be as long as a whole sort key, so its digest replaces it. 256 partitions share the load."""
    digest = ids.digest(object_key, etag, length=40)
    return dataset, digest[:2], digest


# The first kind whose templates fit a key is that of its row.
KINDS: Final = (
    # Definitions and what belongs to them: what users defined.
    Kind(AccessRow, "catalog", "ACCESS", "{namespace}", "namespace"),
    Kind(GrantsRow, "catalog", "GRANTS", "{namespace}", "namespace", "grants"),
    Kind(AllowedRow, "catalog", "ALLOWED#{namespace}", "ALLOWED", "namespace"),  # its own: Lambdas read it before calls
    Kind(QuotasRow, "catalog", "QUOTAS", "{namespace}", "namespace"),
    Kind(StopsRow, "catalog", "STOPS#{namespace}#{copy}", "STOPS", "namespace", "stops"),
    Kind(ZoneRules, "catalog", "ZONES", "RULES", "",
         left_out="each installation brings its own rows to the rules of its code"),
    Kind(ScheduleState, "catalog", "SCHEDULE#{schedule}", "STATE", ref="schedule",
         stamp=("rev", "generation", "version", "mode", "updated_at")),
    Kind(Timer, "catalog", "SCHEDULE#{schedule}", "TIMER", ref="timer", unswept=True),
    Kind(Version, "catalog", "SCHEDULE#{schedule}", "VERSION#{version}", fixed=True),
    Kind(Failures, "catalog", "SCHEDULE#{schedule}", "FAILURES"),
    Kind(Subscription, "catalog", "TRIGGER#{event_key}", "{schedule}#{leaf}#{generation}"),
    Kind(PrefixRow, "catalog", "BUCKET#{bucket}", "PREFIX#{prefix}", "namespace"),
    Kind(PrefixLock, "catalog", "BUCKET#{bucket}", "LOCK#{folder}", "",
         left_out="only changes of prefixes that are in progress rely on it; each installation counts for itself"),
    Kind(Partition, "catalog", "DATASET#{dataset}", "PARTITION#{values}", "dataset", "partition"),
    Kind(ManifestRow, "catalog", "DATASET#{dataset}", "MANIFEST#{values}", "dataset"),
    Kind(NewestPartition, "catalog", "DATASET#{dataset}", "NEWEST", "dataset"),
    Kind(FreshnessWatch, "catalog", "DATASET#{dataset}", "FRESHNESS", "dataset", "freshness"),
    Kind(IgnoredObjects, "catalog", "DATASET#{dataset}", "IGNORED", "dataset"),
    Kind(CountedObject, "catalog", "OBJECTS#{dataset}#{part}", "OBJECT#{digest}", "dataset", "object",
         by=("dataset", "object_key", "etag"), computed=_of_object),
    Kind(Listing, "catalog", "APP#{app}", "{entry}", by=("schedule",), computed=_of_listing,
         heads=(("APP#", "SCHEDULE#"), ("APP#", "MESSAGE#"))),
    Kind(Definition, "catalog", "{group}", "{entry}", "name", by=("kind", "name"), computed=_of_definition,
         heads=((NAMESPACES, ""), ("NS#", ""), ("APP#", ""), ("SCHEDULE#", "WORKFLOW"))),
    # What waits.
    Kind(PostedEvent, "jobs", "EVENT#{event_id}", "EVENT", "namespace", "event"),
    Kind(DeliveryLease, "jobs", "DELIVERY#{due_at}", "LEASE#{id}", "",
         left_out="it names the jobs that an invocation sends at present; in a frozen source no invocation runs"),
    Kind(ClosingCount, "jobs", "CLOSINGS#{namespace}", "COUNT", "",
         left_out="only invocations that send at present rely on it; each installation counts for itself"),
    Kind(Requested, "jobs", "REQUEST#{id}", "REQUEST", "job_id", history=True),
    Kind(Backfill, "jobs", "BACKFILL#{schedule}", "{id}", ref="backfill"),
    Kind(PlanPart, "jobs", "PLAN#{plan}", "{number}", ""),  # of the namespace of the backfill that names the plan
    Kind(Reprocess, "jobs", "REPROCESS#{namespace}", "{id}", "namespace", "reprocess"),
    Kind(Deployment, "jobs", "DEPLOYMENT#{app}", "{id}", "app", "deployment"),
    Kind(PendingNotice, "jobs", "NOTICE#{workflow}", "{what}#{id}", "workflow", "notice"),
    Kind(NoticeWindow, "jobs", "WINDOW#{workflow}", "{channel}", "workflow", "notice_window"),
    Kind(DeadlineWatch, "jobs", "DEADLINE#{id}", "DEADLINE", ref="deadline"),
    Kind(LimitState, "jobs", "LIMIT#{limit_name}", "STATE", "", "limit"),
    Kind(Waiter, "jobs", "LIMIT#{limit_name}", "WAIT#{rank}", "job_schedule"),
    Kind(Offer, "jobs", "OFFER#{pool}", "{rank}", "run_id"),
    Kind(LastArrival, "jobs", "{schedule}@{generation}", "ARRIVED#{leaf}"),
    Kind(AppliedEvent, "jobs", "{schedule}@{generation}", "APPLIED#{event_id}"),
    Kind(Job, "jobs", "{schedule}@{generation}", "{sort_key}", ref="job",
         stamp=("rev", "job_id", "attempt", "tries")),
    # What has started, or never will.
    Kind(Run, "runs", "RUN#{run_id}", "A#{attempt}", ref="run", history=True),
    Kind(Record, "runs", "RUN#{id}", "RECORD", history=True),
    Kind(Fire, "runs", "RUN#{id}", "FIRE", history=True),
    Kind(Output, "runs", "RUN#{run_id}", "OUTPUT#{attempt}", "run_id", history=True),
    Kind(DagRun, "runs", "RUN#{dag_run}", "DAG", "dag_run", "dag_run", history=True),
    Kind(Elements, "runs", "RUN#{run_id}", "ELEMENTS", "run_id", "elements", history=True),
    Kind(DeadLetter, "runs", "DEAD#{schedule}", "{run_id}#{attempt}", history=True),
    Kind(Pointer, "runs", "TARGET#{target_id}", "POINTER", "run_id", history=True),
    Kind(PeriodEnds, "runs", "PERIODS#{schedule}", "ENDS"),
    Kind(AuditRow, "runs", "AUDIT#{namespace}", "{id}", "namespace"),
)  # fmt: skip

ROWS: Final = {kind.row: kind for kind in KINDS}
_OF_REFS: Final = {kind.ref: kind for kind in KINDS if kind.ref is not None}


def _heads(kind: Kind) -> set[str]:
    """How the partition keys of a kind begin, up to the first ``#``; empty if they begin with a part."""
    return {pk.partition("#")[0] for pk, _ in kind.beginnings}


_BY_HEAD: Final = {
    (table, head): tuple(kind for kind in KINDS if kind.table == table and head in _heads(kind))
    for table, head in {(kind.table, head) for kind in KINDS for head in _heads(kind)}
}


def key(row: type[Any], *values: Part) -> Key:
    """The key of the row of this class that has these values in the fields of its kind."""
    kind: Any = row
    return _key(kind, values)


@lru_cache(maxsize=MAX_KEYS)
def _key(row: Any, values: tuple[Part, ...]) -> Key:
    kind = ROWS[row]
    return kind.key(kind.written(*values))


def ref(row: type[Any], *values: Part) -> Ref:
    """The ref of the row of this class that has these values in the fields of its kind. Its rows wake."""
    kind = ROWS[row]
    assert kind.ref is not None, f"expected a kind of row that wakes, got {row.__name__}"
    return Ref(kind.ref, kind.written(*values))


def key_of(row: object) -> Key:
    """The key of a row."""
    kind: Any = type(row)
    return _key(kind, tuple([getattr(row, name) for name in ROWS[kind].fields]))


def kind_of(key: Key) -> Kind:
    """The kind of the row under a key. Raises ValueError for a key that no kind of row has."""
    return _found(key)[0]


def ref_of(key: Key) -> Ref | None:
    """The ref for a key of a wake index; None for a row that has no handler of its own."""
    try:
        kind, texts = _found(key)
    except ValueError:  # a kind of row that only newer code has
        return None
    return Ref(kind.ref, texts) if kind.ref is not None else None


def at(ref: Ref) -> tuple[Kind, Key] | None:
    """The kind and the key of the row that a ref names; None for a ref that names no single row."""
    kind = _OF_REFS.get(ref.kind)
    return (kind, kind.key(ref.parts)) if kind is not None else None


def _found(key: Key) -> tuple[Kind, tuple[str, ...]]:
    begins_with_a_part = _BY_HEAD.get((key.table, ""), ())
    for kind in _BY_HEAD.get((key.table, key.pk.partition("#")[0]), begins_with_a_part):
        texts = kind.texts(key)
        if texts is not None:
            return kind, texts
    raise ValueError(f"expected the key of a row of {key.table}, got {key.pk}, {key.sk}")


Stamp = tuple[Any, ...]


def stamp_of(row: ScheduleState | Job) -> Stamp:
    """The stamp of a schedule state or a job: two reads have equal stamps if the row has not changed between them."""
    return tuple(getattr(row, name) for name in ROWS[type(row)].stamp)
