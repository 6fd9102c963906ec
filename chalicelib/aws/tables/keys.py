"""Every access pattern of the three tables, in one module.

| table   | pk                      | sk                        | row             | read by                        |
|---------|-------------------------|---------------------------|-----------------|--------------------------------|
| catalog | NAMESPACES              | <ns>                      | Definition      | get, list                      |
| catalog | NS#<ns>                 | APP#<app>, DATASET#<ds>   | Definition      | get, list by prefix of sk      |
| catalog | APP#<ns.app>            | WORKFLOW#<name>           | Definition      | get, list                      |
| catalog | APP#<ns.app>            | DAG#<name>                | Definition      | get, list                      |
| catalog | APP#<ns.app>            | GRAPH#<name>~<digest>     | Definition      | get: a graph of a DAG's run    |
| catalog | APP#<ns.app>            | SCHEDULE#<name>           | Listing         | list schedules of an app       |
| catalog | APP#<ns.app>            | MESSAGE#<name>            | Listing         | list messages of an app        |
| catalog | SCHEDULE#<full>         | STATE, TIMER, VERSION#<n> | as named        | get; a claim checks only STATE |
| catalog | SCHEDULE#<full>         | FAILURES                  | Failures        | get, when a run has failed     |
| catalog | SCHEDULE#<ns.app.~name> | WORKFLOW                  | Definition      | get: a message's own target    |
| catalog | ACCESS                  | <ns>                      | AccessRow       | get, list                      |
| catalog | GRANTS                  | <ns>                      | GrantsRow       | get                            |
| catalog | ALLOWED#<ns>            | ALLOWED                   | AllowedRow      | get: before calls of targets   |
| catalog | QUOTAS                  | <ns>                      | QuotasRow       | get                            |
| catalog | ZONES                   | RULES                     | ZoneRules       | get: by the tick, until done   |
| catalog | SCHEDULE#<ns.app.~>     | WORKFLOW                  | Definition      | get: an app's default target   |
| catalog | TRIGGER#<event key>     | <schedule>#<leaf>#<gen>   | Subscription    | query: leaves of an event key  |
| catalog | BUCKET#<bucket>         | PREFIX#<prefix>           | PrefixRow       | query of a key's folders       |
| catalog | BUCKET#<bucket>         | LOCK#<first folder>       | PrefixLock      | get: by changes of prefixes    |
| catalog | DATASET#<ns.ds>         | PARTITION#<v>/<v>         | Partition       | get, list                      |
| catalog | DATASET#<ns.ds>         | IGNORED                   | IgnoredObjects  | get, when such an object comes |
| catalog | DATASET#<ns.ds>         | NEWEST                    | NewestPartition | get, for a constraint on it    |
| catalog | DATASET#<ns.ds>         | MANIFEST#<v>/<v>          | ManifestRow     | get, list                      |
| catalog | OBJECTS#<ns.ds>#<part>  | OBJECT#<digest of key>    | CountedObject   | get; 256 parts share the load  |
| jobs    | <schedule>@<generation> | GATHERING[#<v>/<v>]       | Job (gathering) | get                            |
| jobs    | <schedule>@<generation> | FIRE# JOB# RETRY# RUNNOW# | Job             | get; query to list and drain   |
| jobs    | <schedule>@<generation> | REDRIVE#<run id>#<n>      | Job             | as above                       |
| jobs    | <schedule>@<generation> | ARRIVED#<leaf>            | LastArrival     | get, when its leaf is due      |
| jobs    | EVENT#<event id>        | EVENT                     | PostedEvent     | get                            |
| jobs    | DELIVERY#<due instant>  | LEASE#<digest> LEASE#~<job>| DeliveryLease   | query: jobs being sent         |
| jobs    | CLOSINGS#<ns>           | COUNT                     | ClosingCount    | get, before each sub-batch     |
| jobs    | <schedule>@<generation> | APPLIED#<event id>        | AppliedEvent    | get; index `events` by job id  |
| jobs    | REQUEST#<request id>    | REQUEST                   | Requested       | get: the job of a request      |
| jobs    | BACKFILL#<schedule>     | <id>                      | Backfill        | get, list                      |
| jobs    | REPROCESS#<ns>          | <id>                      | Reprocess       | get, list                      |
| jobs    | DEPLOYMENT#<ns.app>     | <id of the upload>        | Deployment      | get                            |
| jobs    | NOTICE#<workflow>       | <what>#<job id>           | PendingNotice   | get, query: to be sent         |
| jobs    | WINDOW#<workflow>       | <digest of the target>    | NoticeWindow    | get: sent lately               |
| jobs    | DEADLINE#<job id>       | DEADLINE                  | DeadlineWatch   | get, at the deadline           |
| jobs    | PLAN#<digest>           | <number>                  | PlanPart        | get; a hundred entries each    |
| jobs    | LIMIT#<limit>           | STATE                     | LimitState      | get                            |
| jobs    | LIMIT#<limit>           | WAIT#<rank>               | Waiter          | query: the head of the queue   |
| jobs    | LIMIT#<limit>/<part>    | STATE, WAIT#<rank>        | (the same)      | the queue of a fast policy     |
| jobs    | OFFER#<pool>            | <rank>                    | Offer           | query: runs to claim           |
| runs    | RUN#<run id>            | A#<attempt>, RECORD       | Run, Record     | get, query                     |
| runs    | RUN#<run id>            | OUTPUT#<attempt>          | Output          | get: the last lines of a run   |
| runs    | RUN#<run id>            | DAG                       | DagRun          | get: re-runs of a DAG's run    |
| runs    | DEAD#<schedule>         | <run id>#<attempt>        | DeadLetter      | query; list by `by_day`        |
| runs    | TARGET#<target's id>    | POINTER                   | Pointer         | get                            |
| runs    | AUDIT#<ns>              | <instant>#<random part>   | AuditRow        | query; list days by `by_day`   |

Indexes: `wake` (wake_shard, wake_at) on each table, sparse; on runs also by_workflow, by_schedule, by_day (.., at).
Parts `waits#<ns>#<shard>` (jobs) and `paused#<ns>#<shard>` (catalog) of `wake` list rows that no instant wakes.
Each schedule state has a partition of its own, so that a thousand schedules of one app that are due together share no
hot key.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows import ref, sort_keys
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.closings import ClosingCount
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixLock, PrefixRow
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.deployment import Deployment
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
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.quotas import QuotasRow
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.rows.zone_rules import ZoneRules
from chalicelib.core.writes import Row

TableName = Literal["catalog", "jobs", "runs"]
NAMESPACES = "NAMESPACES"  # the partition of all namespaces
ACCESS = "ACCESS"  # the partition of all access documents
GRANTS = "GRANTS"  # the partition of all grants documents


class Key(NamedTuple):
    table: TableName
    pk: str
    sk: str


ZONE_RULES = Key("catalog", "ZONES", "RULES")


def key_of(row: Row) -> Key:
    """The key of a row."""
    match row:
        case AccessRow():
            return access(row.namespace)
        case GrantsRow():
            return grants(row.namespace)
        case AllowedRow():
            return allowed(row.namespace)
        case AuditRow():
            return audit(row.namespace, row.id)
        case QuotasRow():
            return quotas(row.namespace)
        case ZoneRules():
            return ZONE_RULES
        case Definition():
            return definition(row.kind, row.name)
        case ScheduleState():
            return schedule_state(row.schedule)
        case Version():
            return version(row.schedule, row.version)
        case Listing():
            app, _, name = row.schedule.rpartition(".")
            if ids.is_of_message(row.schedule):
                return Key("catalog", f"APP#{app}", f"MESSAGE#{name.removeprefix(ids.MESSAGE)}")
            return Key("catalog", f"APP#{app}", f"SCHEDULE#{name}")
        case PrefixRow():
            return prefix(row.bucket, row.prefix)
        case PrefixLock():
            return prefix_lock(row.bucket, row.folder)
        case Subscription():
            sort_key = f"{row.schedule}#{row.leaf}#{ids.base36(row.generation)}"
            return Key("catalog", f"TRIGGER#{row.event_key}", sort_key)
        case Timer():
            return timer(row.schedule)
        case Partition():
            return partition(row.dataset, row.values)
        case IgnoredObjects():
            return ignored(row.dataset)
        case NewestPartition():
            return newest_partition(row.dataset)
        case ManifestRow():
            return manifest(row.dataset, row.values)
        case CountedObject():
            return counted_object(row.dataset, row.object_key, row.etag)
        case PostedEvent():
            return posted(row.event.id)
        case DeliveryLease():
            return delivery_lease(row.due_at, row.id)
        case ClosingCount():
            return closings(row.namespace)
        case Requested():
            return requested(row.id)
        case LastArrival():
            return last_arrival(row.schedule, row.generation, row.leaf)
        case Failures():
            return failures(row.schedule)
        case Backfill():
            return backfill(row.schedule, row.id)
        case Deployment():
            return deployment(row.app, row.id)
        case Reprocess():
            return reprocess(row.namespace, row.id)
        case PendingNotice():
            return notice(row.workflow, row.what, row.id)
        case NoticeWindow():
            return notice_window(row.workflow, row.channel)
        case DeadlineWatch():
            return deadline(row.id)
        case PlanPart():
            return plan_part(row.plan, row.number)
        case AppliedEvent():
            return applied(row.schedule, row.generation, row.event.id)
        case Job():
            return job(row.schedule, row.generation, row.sort_key)
        case Waiter():
            return Key("jobs", f"LIMIT#{row.limit_name}", f"WAIT#{row.rank}")
        case Offer():
            return Key("jobs", f"OFFER#{row.pool}", row.rank)
        case Output():
            return output(row.run_id, row.attempt)
        case Run():
            return run(row.run_id, row.attempt)
        case DagRun():
            return dag_run(row.dag_run)
        case Record():
            return record(row.id)
        case Pointer():
            return pointer(row.target_id)
        case DeadLetter():
            return dead_letter(row.schedule, row.run_id, row.attempt)


def access(namespace: str) -> Key:
    return Key("catalog", ACCESS, namespace)


def grants(namespace: str) -> Key:
    return Key("catalog", GRANTS, namespace)


def allowed(namespace: str) -> Key:
    """The key of an allow-list. Each has a partition of its own, because Lambdas read it before they call targets."""
    return Key("catalog", f"ALLOWED#{namespace}", "ALLOWED")


def quotas(namespace: str) -> Key:
    return Key("catalog", "QUOTAS", namespace)


def audit(namespace: str, record_id: str) -> Key:
    return Key("runs", f"AUDIT#{namespace}", record_id)


def definition(kind: str, name: str) -> Key:
    parent, _, short = name.rpartition(".")
    if kind == "namespace":
        return Key("catalog", NAMESPACES, name)
    if ids.is_of_message(name):  # next to the message, so that no list of workflows contains it
        return Key("catalog", f"SCHEDULE#{name}", "WORKFLOW")
    group = f"APP#{parent}" if kind in ("workflow", "dag") else f"NS#{parent}"
    word = "GRAPH" if kind == "dag" and ids.is_dag_graph(name) else kind.upper()
    return Key("catalog", group, f"{word}#{short}")


def definitions(kind: str, parent: str) -> tuple[str, str]:
    """The partition key under which a kind is listed, and the prefix of its sort keys."""
    if kind == "namespace":
        return NAMESPACES, ""
    of_app = kind in ("workflow", "schedule", "message", "dag")
    return f"{'APP' if of_app else 'NS'}#{parent}", f"{kind.upper()}#"


def schedule_state(schedule: str) -> Key:
    return Key("catalog", f"SCHEDULE#{schedule}", "STATE")


def version(schedule: str, number: int) -> Key:
    return Key("catalog", f"SCHEDULE#{schedule}", f"VERSION#{number:010d}")


def timer(schedule: str) -> Key:
    return Key("catalog", f"SCHEDULE#{schedule}", "TIMER")


def prefix(bucket: str, folder: str) -> Key:
    return Key("catalog", f"BUCKET#{bucket}", f"PREFIX#{folder}")


def prefix_lock(bucket: str, folder: str) -> Key:
    return Key("catalog", f"BUCKET#{bucket}", f"LOCK#{folder}")


def partition(dataset: str, values: tuple[str, ...]) -> Key:
    return Key("catalog", f"DATASET#{dataset}", f"PARTITION#{'/'.join(values)}")


def ignored(dataset: str) -> Key:
    return Key("catalog", f"DATASET#{dataset}", "IGNORED")


def newest_partition(dataset: str) -> Key:
    return Key("catalog", f"DATASET#{dataset}", "NEWEST")


def manifest(dataset: str, values: tuple[str, ...]) -> Key:
    return Key("catalog", f"DATASET#{dataset}", f"MANIFEST#{'/'.join(values)}")


def counted_object(dataset: str, object_key: str, etag: str) -> Key:
    """The key of a counted object. An S3 key may be as long as a whole sort key, so its digest replaces it."""
    return stored_object(dataset, ids.digest(object_key, etag, length=40))


def stored_object(dataset: str, digest: str) -> Key:
    return Key("catalog", f"OBJECTS#{dataset}#{digest[:2]}", f"OBJECT#{digest}")


def delivery_lease(due: Instant, lease_id: str) -> Key:
    return Key("jobs", deliveries(due), f"LEASE#{lease_id}")


def deliveries(due: Instant) -> str:
    """The partition key of the delivery leases of jobs that are due at an instant."""
    return f"DELIVERY#{due}"


def posted(event_id: str) -> Key:
    return Key("jobs", f"EVENT#{event_id}", "EVENT")


def requested(request: str) -> Key:
    return Key("jobs", f"REQUEST#{request}", "REQUEST")


def last_arrival(schedule: str, generation: int, leaf: str) -> Key:
    return Key("jobs", jobs_of(schedule, generation), f"ARRIVED#{leaf}")


def failures(schedule: str) -> Key:
    return Key("catalog", f"SCHEDULE#{schedule}", "FAILURES")


def applied(schedule: str, generation: int, event: str) -> Key:
    return Key("jobs", jobs_of(schedule, generation), f"APPLIED#{event}")


def jobs_of(schedule: str, generation: int) -> str:
    return f"{schedule}@{ids.base36(generation)}"


def job(schedule: str, generation: int, sort_key: str) -> Key:
    return Key("jobs", jobs_of(schedule, generation), sort_key)


def closings(namespace: str) -> Key:
    return Key("jobs", f"CLOSINGS#{namespace}", "COUNT")


def gathering(schedule: str, generation: int) -> Key:
    return job(schedule, generation, GATHERING)


def limit(name: str) -> Key:
    return Key("jobs", f"LIMIT#{name}", "STATE")


def backfill(schedule: str, backfill_id: str) -> Key:
    return Key("jobs", f"BACKFILL#{schedule}", backfill_id)


def deployment(app: str, upload: str) -> Key:
    return Key("jobs", f"DEPLOYMENT#{app}", upload)


def reprocess(namespace: str, reprocess_id: str) -> Key:
    return Key("jobs", f"REPROCESS#{namespace}", reprocess_id)


def notice(workflow: str, what: str, notice_id: str) -> Key:
    return Key("jobs", f"NOTICE#{workflow}", f"{what}#{notice_id}")


def notice_window(workflow: str, channel: str) -> Key:
    return Key("jobs", f"WINDOW#{workflow}", channel)


def deadline(job_id: str) -> Key:
    return Key("jobs", f"DEADLINE#{job_id}", "DEADLINE")


def plan_part(plan: str, number: int) -> Key:
    return Key("jobs", f"PLAN#{plan}", f"{number:04d}")


def run(run_id: str, attempt: int) -> Key:
    return Key("runs", f"RUN#{run_id}", sort_keys.attempt(attempt))


def output(run_id: str, attempt: int) -> Key:
    return Key("runs", f"RUN#{run_id}", f"OUTPUT#{attempt:03d}")


def record(job_id: str) -> Key:
    return Key("runs", f"RUN#{job_id}", "RECORD")


def dag_run(run_id: str) -> Key:
    return Key("runs", f"RUN#{run_id}", "DAG")


def dead_letter(schedule: str, run_id: str, attempt: int) -> Key:
    """The key of a dead letter. Those of a schedule share a partition, so one strong read shows whether any exist."""
    return Key("runs", f"DEAD#{schedule}", f"{run_id}#{attempt:03d}")


def pointer(target_id: str) -> Key:
    return Key("runs", f"TARGET#{target_id}", "POINTER")


def ref_of(key: Key) -> Ref | None:
    """The ref for a key of a wake index; None for a row that has no handler of its own."""
    head, _, name = key.pk.partition("#")
    if key.table == "catalog" and key.sk == "TIMER":
        return ref.timer_ref(name)
    if key.table == "catalog" and key.sk.startswith("PARTITION#"):
        return ref.partition_ref(name, key.sk.removeprefix("PARTITION#").split("/"))
    if key.table == "catalog" and key.sk == "STATE":
        return ref.schedule_ref(name)
    if key.table == "catalog" and key.pk == GRANTS:
        return ref.grants_ref(key.sk)
    if key.table == "catalog" and head == "OBJECTS":
        return ref.object_ref(name.rpartition("#")[0], key.sk.removeprefix("OBJECT#"))
    if key.table == "jobs" and head == "EVENT":
        return ref.event_ref(name)
    if key.table == "runs" and key.sk.startswith("A#"):
        return ref.run_ref(name, int(key.sk.removeprefix("A#")))
    if key.table == "runs" and key.sk == "DAG":
        return ref.dag_run_ref(name)
    if key.table == "jobs" and head == "LIMIT":
        return ref.limit_ref(name)
    if key.table == "jobs" and head == "NOTICE":
        what, _, notice_id = key.sk.partition("#")
        return ref.notice_ref(name, what, notice_id)
    if key.table == "jobs" and head == "DEADLINE":
        return ref.deadline_ref(name)
    if key.table == "jobs" and head == "WINDOW":
        return ref.window_ref(name, key.sk)
    if key.table == "jobs" and head == "BACKFILL":
        return ref.backfill_ref(name, key.sk)
    if key.table == "jobs" and head == "DEPLOYMENT":
        return ref.deployment_ref(name, key.sk)
    if key.table == "jobs" and head == "REPROCESS":
        return ref.reprocess_ref(name, key.sk)
    if key.table == "jobs" and "@" in key.pk:
        schedule, _, generation = key.pk.partition("@")
        return ref.job_ref(schedule, generation, key.sk)
    return None
