"""The parts of an app, generated from the OpenAPI document of the API by `python -m infra.builder_code`.

Use them by `sluice.builder`. A parameter that is left out is left out of the document, so that its default applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from sluice.builder_base import UNSET, Constrained, Named, Part, given, given_or


class Around(Part):
    """A document of the kind Around, made by a function of this module."""


class Backoff(Part):
    """A document of the kind Backoff, made by a function of this module."""


class CatchUp(Part):
    """A document of the kind CatchUp, made by a function of this module."""


class Constraint(Part):
    """A document of the kind Constraint, made by a function of this module."""


class DagConcurrency(Part):
    """A document of the kind DagConcurrency, made by a function of this module."""


class Deadline(Part):
    """A document of the kind Deadline, made by a function of this module."""


class Delivery(Part):
    """A document of the kind Delivery, made by a function of this module."""


class Each(Part):
    """A document of the kind Each, made by a function of this module."""


class Edge(Part):
    """A document of the kind Edge, made by a function of this module."""


class Incomplete(Part):
    """A document of the kind Incomplete, made by a function of this module."""


class Last(Part):
    """A document of the kind Last, made by a function of this module."""


class Measured(Part):
    """A document of the kind Measured, made by a function of this module."""


class Metric(Part):
    """A document of the kind Metric, made by a function of this module."""


class Node(Part):
    """A document of the kind Node, made by a function of this module."""


class Notify(Part):
    """A document of the kind Notify, made by a function of this module."""


class Per(Part):
    """A document of the kind Per, made by a function of this module."""


class PeriodRule(Part):
    """A document of the kind PeriodRule, made by a function of this module."""


class Probe(Part):
    """A document of the kind Probe, made by a function of this module."""


class QuietHours(Part):
    """A document of the kind QuietHours, made by a function of this module."""


class Readiness(Part):
    """A document of the kind Readiness, made by a function of this module."""


class Registered(Part):
    """A document of the kind Registered, made by a function of this module."""


class Resources(Part):
    """A document of the kind Resources, made by a function of this module."""


class Retries(Part):
    """A document of the kind Retries, made by a function of this module."""


class SecretReference(Part):
    """A document of the kind SecretReference, made by a function of this module."""


class SecretUrl(Part):
    """A document of the kind SecretUrl, made by a function of this module."""


class Share(Part):
    """A document of the kind Share, made by a function of this module."""


class Spread(Part):
    """A document of the kind Spread, made by a function of this module."""


class Target(Part):
    """A document of the kind Target, made by a function of this module."""


class Timeout(Part):
    """A document of the kind Timeout, made by a function of this module."""


class Trigger(Part):
    """A document of the kind Trigger, made by a function of this module."""


def absent(
    of: Trigger,
    *,
    within: str | None = UNSET,
    deadline: str | None = UNSET,
    period: Literal["today", "yesterday", "current", "last"] | None = UNSET,
    after: str | None = UNSET,
    zone: str | None = UNSET,
    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = UNSET,
) -> Trigger:
    """No event of ``of`` arrived ``within`` a span, or from one daily ``deadline`` (HH:MM) to the next (T18).
    With ``period``, the partition of this period has not come by the deadline: of a dataset of days ``today``
    or ``yesterday``, of longer periods the ``current`` or the ``last`` one. With ``after``, the partition of
    a period has not come so long after the end of the period (T29).
    """
    return Trigger(
        given(
            {
                "type": "absent",
                "of": of,
                "within": within,
                "deadline": deadline,
                "period": period,
                "after": after,
                "zone": zone,
                "days": days,
            }
        )
    )


def all_of(*triggers: Trigger, within: str | None = UNSET) -> Trigger:
    """Met when each of its triggers is met. A partial match older than ``within`` is dropped, with a record."""
    return Trigger(given({"type": "all", "triggers": list(triggers), "within": within}))


def any_of(*triggers: Trigger) -> Trigger:
    """Met when one of its triggers is met."""
    return Trigger(given({"type": "any", "triggers": list(triggers)}))


def approval(
    *,
    role: str | None = UNSET,
    people: Sequence[str] = UNSET,
    timeout: str | None = UNSET,
    on_unmet: Literal["wait"] = UNSET,
) -> Constraint:
    """A user approves of this job: one with the IAM ``role``, or one of ``people`` (ARNs of users and roles). A
    refusal aborts the job; so does the end of ``timeout``, which counts from the instant at which its trigger
    was met (C16).
    """
    return Constraint(
        given({"type": "approval", "role": role, "people": people, "timeout": timeout, "on_unmet": on_unmet})
    )


def around(from_: str, *, to: Literal["period", "before"] = UNSET) -> Around:
    """The periods that begin between two instants of the calendar: from ``since`` (``from``) before the period
    of the job, or from the beginning of its month, to the end of the period, or to before it.
    """
    return Around(given({"from": from_, "to": to}))


def at_least(count: int, *triggers: Trigger, within: str | None = UNSET) -> Trigger:
    """Met when ``count`` of its triggers are met. ``within`` is as for ``all``."""
    return Trigger(given({"type": "at_least", "count": count, "triggers": list(triggers), "within": within}))


def athena(
    query: str,
    *,
    parameters: Sequence[str | bool | int | float] = UNSET,
    workgroup: str = UNSET,
    database: str | None = UNSET,
    catalog: str | None = UNSET,
    output: str | None = UNSET,
    result_reuse: str | None = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """A query of Athena. A ``?`` in the ``query`` stands for one of the ``parameters``, in order. Athena reports
    the states of a run by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """
    return Target(
        given(
            {
                "type": "athena",
                "query": query,
                "parameters": parameters,
                "workgroup": workgroup,
                "database": database,
                "catalog": catalog,
                "output": output,
                "result_reuse": result_reuse,
                "poll_every": poll_every,
            }
        )
    )


def aws_api(service: str, action: str, *, input: Mapping[str, Any] = UNSET, result: bool = UNSET) -> Target:
    """A call of AWS's API that is answered at once, such as ``{service: sns, action: publish, input: {...}}``.
    Texts of the ``input`` may hold values of the run context. With ``result``, the answer is the result of
    the run (W18). What calls there are, and which input each takes, the models of AWS say.
    """
    return Target(given({"type": "aws_api", "service": service, "action": action, "input": input, "result": result}))


def backoff(
    *, tries: int = UNSET, growth: Literal["exponential", "fixed"] = UNSET, delay: str = UNSET, max_delay: str = UNSET
) -> Backoff:
    """The tries after the quick ones: ``tries`` more, ``delay`` apart. Unless ``growth`` is fixed, the delay
    doubles up to ``max_delay``.
    """
    return Backoff(given({"tries": tries, "growth": growth, "delay": delay, "max_delay": max_delay}))


def batch(
    job_queue: str,
    job_definition: str,
    *,
    command: Sequence[str] = UNSET,
    environment: Mapping[str, str] = UNSET,
    parameters: Mapping[str, str] = UNSET,
    vcpus: float | None = UNSET,
    memory_mib: int | None = UNSET,
    share_identifier: str | None = UNSET,
    scheduling_priority: int | None = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """A job of AWS Batch, of a job definition with one container on Fargate or EC2, in the account and region of
    the stack. ``command``, and the values of ``environment`` and of ``parameters``, may have placeholders
    such as ``{{correlation.day}}``. Batch reports the states of a run by events. With ``poll_every``, Sluice
    also polls it at that interval (W6).
    """
    return Target(
        given(
            {
                "type": "batch",
                "job_queue": job_queue,
                "job_definition": job_definition,
                "command": command,
                "environment": environment,
                "parameters": parameters,
                "vcpus": vcpus,
                "memory_mib": memory_mib,
                "share_identifier": share_identifier,
                "scheduling_priority": scheduling_priority,
                "poll_every": poll_every,
            }
        )
    )


def calendar(
    *,
    only: Sequence[str | Mapping[str, str]] = UNSET,
    excluding: Sequence[str | Mapping[str, str]] = UNSET,
    zone: str | None = UNSET,
    on_unmet: Literal["abort", "wait"] = UNSET,
) -> Constraint:
    """A job may launch on the days and in the windows ``only`` (all, if empty), but on none of ``excluding``
    (C17). Entries have the form of those that a time trigger excludes (T6), in a zone.
    """
    return Constraint(
        given({"type": "calendar", "only": only, "excluding": excluding, "zone": zone, "on_unmet": on_unmet})
    )


def catch_up(*, mode: Literal["all", "latest", "none"] = UNSET, within: str = UNSET) -> CatchUp:
    """Which fires Sluice makes up for after an outage: ``all`` of them, the ``latest``, or ``none``; but none
    older than ``within``. It skips the others, with a record (T5). A text in place of the object is its
    ``mode``.
    """
    return CatchUp(given({"mode": mode, "within": within}))


def cloudwatch_alarm(
    alarm: str,
    count: int = UNSET,
    *,
    state: Literal["ALARM", "OK", "INSUFFICIENT_DATA"] | Sequence[Literal["ALARM", "OK", "INSUFFICIENT_DATA"]] = UNSET,
) -> Trigger:
    """A CloudWatch alarm of the account and region of Sluice goes into ``state``, or into one of several,
    ``count`` times (T23). An alarm belongs to the account, so schedules of every namespace may wait for it.
    """
    return Trigger(given({"type": "cloudwatch_alarm", "alarm": alarm, "state": state, "count": count}))


def concurrency(
    max: int, *, group: str | None = UNSET, on_unmet: Literal["abort", "wait", "cancel_other"] = UNSET
) -> Constraint:
    """Fewer than ``max`` active runs of the workflow, or of all runs that name the same ``group`` (C1)."""
    return Constraint(given({"type": "concurrency", "max": max, "group": group, "on_unmet": on_unmet}))


def dag_concurrency(max: int, *, on_unmet: Literal["abort", "wait", "cancel_other"] = UNSET) -> DagConcurrency:
    """At most ``max`` runs of a DAG at a time, each until it has ended. ``on_unmet`` says what becomes of
    another one, as for the constraint `concurrency` of a schedule.
    """
    return DagConcurrency(given({"max": max, "on_unmet": on_unmet}))


class Dataset(Named):
    """A prefix of S3 with partitions in ``key=value/`` folders, in the order of ``keys``, or with ``format:
    iceberg`` the location of an Iceberg table. Each snapshot of the table is a partition (T21).
    ``operations``: the snapshots of a table that count; by default, not those that only rewrite or remove
    data. ``glue_table`` (``database.table``): the Glue catalog shows which snapshots are committed.
    ``single_writer``: all are, because commits of the table never compete. Without both, a later metadata
    file of the table shows it. ``count_overwrites``: for size triggers, an object that is overwritten with
    other content counts again (T9). ``rewritten: again``: a known partition that is written again is a new
    event: with a done-flag or a manifest, when this is put (T22); without both, when another run that
    registers it has succeeded (L22). ``period``: the period that each partition is, and how its folders name
    it (T24). ``values``: which values its other keys have, so that it is known which partitions a period has
    (T25). A list, or ``seen_last``: those that the period before had. ``fresh``: the dataset is late when its
    newest partition came longer ago (T29). ``priority``: the least priority of the jobs that its data
    triggers (W2).
    """

    group = "datasets"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def bucket(self, value: str) -> Self:
        """Set ``bucket``."""
        return self._set("bucket", value)

    def prefix(self, value: str) -> Self:
        """Set ``prefix``."""
        return self._set("prefix", value)

    def format(self, value: Literal["files", "iceberg"]) -> Self:
        """Set ``format``."""
        return self._set("format", value)

    def keys(self, *values: str) -> Self:
        """Set ``keys``."""
        return self._set("keys", list(values))

    def ready(
        self, value: Readiness = UNSET, /, *, done_flag: str | None = UNSET, manifest: str | None = UNSET
    ) -> Self:
        """Set ``ready``: to a value, or to one of these fields."""
        return self._set("ready", given_or(value, {"done_flag": done_flag, "manifest": manifest}))

    def count_overwrites(self, value: bool) -> Self:
        """Set ``count_overwrites``."""
        return self._set("count_overwrites", value)

    def rewritten(self, value: Literal["again", "ignore"]) -> Self:
        """Set ``rewritten``."""
        return self._set("rewritten", value)

    def period(
        self,
        value: PeriodRule | None = UNSET,
        /,
        *,
        each: Literal[
            "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
        ] = UNSET,
        format: str = UNSET,
        zone: str = UNSET,
        week_starts: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = UNSET,
    ) -> Self:
        """Set ``period``: to a value, or to one of these fields."""
        return self._set(
            "period", given_or(value, {"each": each, "format": format, "zone": zone, "week_starts": week_starts})
        )

    def values(
        self,
        values: Mapping[str, Sequence[str] | Literal["seen_last"]] | None = None,
        /,
        **more: Sequence[str] | Literal["seen_last"],
    ) -> Self:
        """Add to ``values``."""
        return self._merge("values", values, more)

    def fresh(self, value: str | None) -> Self:
        """Set ``fresh``."""
        return self._set("fresh", value)

    def priority(self, value: int | None) -> Self:
        """Set ``priority``."""
        return self._set("priority", value)

    def operations(self, *values: Literal["append", "overwrite", "delete", "replace"]) -> Self:
        """Set ``operations``."""
        return self._set("operations", list(values))

    def glue_table(self, value: str | None) -> Self:
        """Set ``glue_table``."""
        return self._set("glue_table", value)

    def single_writer(self, value: bool) -> Self:
        """Set ``single_writer``."""
        return self._set("single_writer", value)


def dataset_fresh(dataset: str, on_unmet: Literal["abort", "wait"], *, within: str | None = UNSET) -> Constraint:
    """A partition of ``dataset`` has come ``within`` a span before now (C18). The default is the span ``fresh``
    of the dataset, as it is then. ``on_unmet`` has no default. The age of a partition counts from its
    arrival. What its keys say does not matter: a day of last year that comes now is the newest partition.
    """
    return Constraint(given({"type": "dataset_fresh", "dataset": dataset, "within": within, "on_unmet": on_unmet}))


def deadline(
    *, start_within: str | None = UNSET, end_within: str | None = UNSET, from_: Literal["nominal", "data"] = UNSET
) -> Deadline:
    """The spans within which a job must be started (``start_within``) and its run must end (``end_within``) (H5,
    W14). With ``from: nominal`` they count from the due instant of the fire, or for a job without a fire from
    the arrival of its data. With ``from: data`` they always count from the arrival of the data.
    """
    return Deadline(given({"start_within": start_within, "end_within": end_within, "from": from_}))


def delay(
    after: str, *, since: Literal["created", "met"] = UNSET, on_unmet: Literal["abort", "wait"] = UNSET
) -> Constraint:
    """At least ``after`` since the job was created, or since its trigger was met (C2)."""
    return Constraint(given({"type": "delay", "after": after, "since": since, "on_unmet": on_unmet}))


def delivery(
    *, tries: int = UNSET, delay: str = UNSET, backoff: Backoff | None = UNSET, records: Literal["fire", "each"] = UNSET
) -> Delivery:
    """``tries`` quick tries, ``delay`` apart, then the tries of the ``backoff``. ``records``: with ``fire``, the
    events of a large fire that were sent share a record; with ``each``, every event has its own, with the
    instant of its send and the target's id of its message. That costs over twenty times as much.
    """
    return Delivery(given({"tries": tries, "delay": delay, "backoff": backoff, "records": records}))


def each(of: str, *, path: str | None = UNSET, max: int = UNSET, concurrency: int | None = UNSET) -> Each:
    """The list lies at ``path`` in the result of the node ``of``, such as ``files`` or ``new.files``; without a
    path the whole result is the list. ``max`` is the longest list for which the node starts. ``concurrency``
    is how many elements are under way at once; by default as many as the limits of the node let start. A node
    of a DAG has it, and the schedule of that node. No other schedule may have it.
    """
    return Each(given({"of": of, "path": path, "max": max, "concurrency": concurrency}))


def ecs(
    cluster: str,
    task_definition: str,
    container: str,
    subnets: Sequence[str],
    *,
    command: Sequence[str] = UNSET,
    environment: Mapping[str, Any] = UNSET,
    security_groups: Sequence[str] = UNSET,
    assign_public_ip: bool = UNSET,
    capacity_provider: Literal["FARGATE", "FARGATE_SPOT"] | None = UNSET,
    platform_version: str | None = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """A task on Fargate. Its container ``container`` runs the program: it gets the ``command``, the
    ``environment`` and the run context, and its exit code decides. ECS reports the states of a task by
    events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """
    return Target(
        given(
            {
                "type": "ecs",
                "cluster": cluster,
                "task_definition": task_definition,
                "container": container,
                "command": command,
                "environment": environment,
                "subnets": subnets,
                "security_groups": security_groups,
                "assign_public_ip": assign_public_ip,
                "capacity_provider": capacity_provider,
                "platform_version": platform_version,
                "poll_every": poll_every,
            }
        )
    )


def edge(
    from_: str | Sequence[str],
    to: str | Sequence[str],
    *,
    on: Sequence[Literal["COMPLETED", "FAILED", "KILLED"]] = UNSET,
    within: str | None = UNSET,
    if_: Mapping[str, Any] | None = UNSET,
) -> Edge:
    """``to`` is launched after ``from`` has ended with a status in ``on``. With ``within``, only while the last
    success of the workflow of ``from`` is no older than that. With ``if``, only if the result of ``from``
    matches that pattern; if it does not, ``to`` is skipped (W18). Either end may be a list of nodes, which
    stands for an edge of each.
    """
    return Edge(given({"from": from_, "to": to, "on": on, "within": within, "if": if_}))


def elapsed(after: str) -> Trigger:
    """``after`` has passed since the workflow's last run started; since enabling, before the first (T13)."""
    return Trigger(given({"type": "elapsed", "after": after}))


def emr_eks(
    virtual_cluster: str,
    execution_role_arn: str,
    release: str,
    entry_point: str,
    *,
    arguments: Sequence[str] = UNSET,
    py_files: Sequence[str] = UNSET,
    spark: Mapping[str, str] = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """A PySpark job of EMR on EKS, in a virtual cluster of the region of the stack. ``spark`` holds Spark
    properties. EMR reports the states of a run by events. With ``poll_every``, Sluice also polls it at that
    interval (W6).
    """
    return Target(
        given(
            {
                "type": "emr_eks",
                "virtual_cluster": virtual_cluster,
                "execution_role_arn": execution_role_arn,
                "release": release,
                "entry_point": entry_point,
                "arguments": arguments,
                "py_files": py_files,
                "spark": spark,
                "poll_every": poll_every,
            }
        )
    )


def emr_serverless(
    entry_point: str,
    *,
    arguments: Sequence[str] = UNSET,
    py_files: Sequence[str] = UNSET,
    spark: Mapping[str, str] = UNSET,
    application_id: str | None = UNSET,
    execution_role_arn: str | None = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """An EMR Serverless PySpark job. ``spark`` holds Spark properties; application and role default to the
    stack's. EMR reports the states of a run by events. With ``poll_every``, Sluice also polls it at that
    interval (W6).
    """
    return Target(
        given(
            {
                "type": "emr_serverless",
                "entry_point": entry_point,
                "arguments": arguments,
                "py_files": py_files,
                "spark": spark,
                "application_id": application_id,
                "execution_role_arn": execution_role_arn,
                "poll_every": poll_every,
            }
        )
    )


def event_bus(
    bus: str,
    *,
    format: Literal["cloudevents"] | None = UNSET,
    event_type: str | None = UNSET,
    source: str = UNSET,
    detail_type: str = UNSET,
) -> Target:
    """An event on an EventBridge bus. The rules of the bus see its ``source`` and ``detail_type``."""
    return Target(
        given(
            {
                "type": "event_bus",
                "format": format,
                "event_type": event_type,
                "bus": bus,
                "source": source,
                "detail_type": detail_type,
            }
        )
    )


def event(
    event: str, count: int = UNSET, *, namespace: str | None = UNSET, pattern: Mapping[str, Any] | None = UNSET
) -> Trigger:
    """``count`` custom events of a type whose payload matches ``pattern`` (T11), in ``namespace`` or its own."""
    return Trigger(given({"type": "event", "event": event, "namespace": namespace, "pattern": pattern, "count": count}))


def fresh(workflows: Sequence[str], within: str, on_unmet: Literal["abort", "wait"]) -> Constraint:
    """Each of ``workflows`` has succeeded ``within`` a span before now (C7). ``on_unmet`` has no default."""
    return Constraint(given({"type": "fresh", "workflows": workflows, "within": within, "on_unmet": on_unmet}))


def glue(
    job: str,
    *,
    arguments: Mapping[str, str] = UNSET,
    worker_type: str | None = UNSET,
    workers: int | None = UNSET,
    execution_class: Literal["STANDARD", "FLEX"] | None = UNSET,
    poll_every: str | None = UNSET,
) -> Target:
    """A run of a Glue job, in the region of the stack. The job defines script, role and connections; the fields
    here replace what the job has as its defaults. Glue reports the end of a run by an event. With
    ``poll_every``, Sluice also polls it at that interval (W6).
    """
    return Target(
        given(
            {
                "type": "glue",
                "job": job,
                "arguments": arguments,
                "worker_type": worker_type,
                "workers": workers,
                "execution_class": execution_class,
                "poll_every": poll_every,
            }
        )
    )


class HolidayCalendar(Named):
    """The days that are no working days, besides Saturdays and Sundays. Time triggers that name the calendar
    leave them out when they count working days (T30).
    """

    group = "calendars"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def days(self, *values: str | Mapping[str, str]) -> Self:
        """Set ``days``."""
        return self._set("days", list(values))


def http_probe(
    url: str | SecretUrl,
    *,
    headers: Mapping[str, str | SecretReference] = UNSET,
    timeout: str = UNSET,
    secret: str | SecretReference | None = UNSET,
) -> Probe:
    """An HTTP endpoint that Sluice calls by POST, signed if there is a ``secret``."""
    return Probe(given({"type": "http", "url": url, "headers": headers, "timeout": timeout, "secret": secret}))


def http(
    url: str | SecretUrl,
    *,
    format: Literal["cloudevents", "cloudevents-binary"] | None = UNSET,
    event_type: str | None = UNSET,
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = UNSET,
    headers: Mapping[str, str | SecretReference] = UNSET,
    timeout: str = UNSET,
    secret: str | SecretReference | None = UNSET,
    body_secrets: Mapping[str, Any] | None = UNSET,
) -> Target:
    """An HTTP request to a web address. ``secret`` is the name of an SSM parameter, the ARN of a secret in
    Secrets Manager, or a reference. With it, Sluice signs the request (see docs/targets.md). A header may be
    a reference, too, and so may ``url``, with the ``host`` of the address. ``format``: the body is a
    CloudEvent in structured mode, or (``cloudevents-binary``) its attributes are headers and its data is the
    body (E11). ``body_secrets`` are fields of the body, a JSON object, which Sluice reads right before the
    call.
    """
    return Target(
        given(
            {
                "type": "http",
                "format": format,
                "event_type": event_type,
                "url": url,
                "method": method,
                "headers": headers,
                "timeout": timeout,
                "secret": secret,
                "body_secrets": body_secrets,
            }
        )
    )


def incomplete(*, allow: int | None = UNSET, after: str | None = UNSET) -> Incomplete:
    """When ``after`` has passed since the end of the period, a leaf may lack any number of partitions. It may
    lack ``allow`` of them when the last one has had as long to come as its own period takes: an hour, of
    hours.
    """
    return Incomplete(given({"allow": allow, "after": after}))


def lambda_probe(function: str) -> Probe:
    """A Lambda function that Sluice invokes."""
    return Probe(given({"type": "lambda", "function": function}))


def lambda_function(
    function: str, *, format: Literal["cloudevents"] | None = UNSET, event_type: str | None = UNSET, wait: bool = UNSET
) -> Target:
    """A call of a Lambda function. By default it is asynchronous, and Lambda retries failures; with ``wait`` it
    is synchronous, and its answer is the result of the run (W18).
    """
    return Target(
        given({"type": "lambda", "format": format, "event_type": event_type, "function": function, "wait": wait})
    )


def last(periods: int, *, ending: Literal["period", "before", "after"] = UNSET) -> Last:
    """So many ``periods`` of the dataset. The last of them belongs to the period of the job (``ending``), is the
    one before those that do, or the one after them.
    """
    return Last(given({"periods": periods, "ending": ending}))


def load(
    of: Measured,
    *,
    below: float | None = UNSET,
    at_least: float | None = UNSET,
    recheck: str = UNSET,
    on_unmet: Literal["abort", "wait"] = UNSET,
) -> Constraint:
    """The measurement ``of`` is ``below`` a bound, or ``at_least`` one (C6). Sluice measures once all other
    constraints but a probe are met, and again after ``recheck``. While a measurement fails, the job waits;
    ``on_unmet`` does not apply.
    """
    return Constraint(
        given(
            {"type": "load", "of": of, "below": below, "at_least": at_least, "recheck": recheck, "on_unmet": on_unmet}
        )
    )


def measured(
    *,
    pool: str | None = UNSET,
    emr_application: str | None = UNSET,
    cloudwatch: Metric | None = UNSET,
    subnet: str | None = UNSET,
) -> Measured:
    """One of four measurements: use of a ``pool``, vCPUs in use of an EMR Serverless application, a CloudWatch
    metric, or free addresses of a ``subnet``. Use is a share of the pool. The vCPUs are a share of the
    application's maximum capacity, if it has one.
    """
    return Measured(
        given({"pool": pool, "emr_application": emr_application, "cloudwatch": cloudwatch, "subnet": subnet})
    )


class Message(Named):
    """A message as a user sends it. It has a ``schedule`` (any expression of T1), a ``due_time``, or both (T3).
    It may say how often it ``repeats``, how long it lives (``ttl``), and its ``zone``. Without a ``target``
    or ``workflow`` it goes to the default target of the app.
    """

    group = "messages"

    def data(self, value: Any) -> Self:
        """Set ``data``."""
        return self._set("data", value)

    def data_base64(self, value: str | None) -> Self:
        """Set ``data_base64``."""
        return self._set("data_base64", value)

    def content_type(self, value: str | None) -> Self:
        """Set ``content_type``."""
        return self._set("content_type", value)

    def data_uri(self, value: str | None) -> Self:
        """Set ``data_uri``."""
        return self._set("data_uri", value)

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def schedule(self, value: str | Mapping[str, Any] | None) -> Self:
        """Set ``schedule``."""
        return self._set("schedule", value)

    def due_time(self, value: str | None) -> Self:
        """Set ``due_time``."""
        return self._set("due_time", value)

    def repeats(self, value: int | None) -> Self:
        """Set ``repeats``."""
        return self._set("repeats", value)

    def ttl(self, value: str | None) -> Self:
        """Set ``ttl``."""
        return self._set("ttl", value)

    def zone(self, value: str) -> Self:
        """Set ``zone``."""
        return self._set("zone", value)

    def target(self, value: Target | None) -> Self:
        """Set ``target``."""
        return self._set("target", value)

    def workflow(self, value: str | None) -> Self:
        """Set ``workflow``."""
        return self._set("workflow", value)


def metric(
    namespace: str,
    metric: str,
    *,
    dimensions: Mapping[str, str] = UNSET,
    statistic: Literal["Average", "Sum", "Minimum", "Maximum", "SampleCount"] = UNSET,
    period: Literal[10, 30, 60, 300, 900, 3600] = UNSET,
) -> Metric:
    """A metric of CloudWatch: its newest value for a ``period`` in seconds, by a statistic."""
    return Metric(
        given(
            {
                "namespace": namespace,
                "metric": metric,
                "dimensions": dimensions,
                "statistic": statistic,
                "period": period,
            }
        )
    )


class Dag(Named):
    """A DAG as a user sends it. ``enabled`` enables or disables it at once; None keeps its present mode (L2)."""

    group = "dags"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def on(self, value: Trigger) -> Self:
        """Set ``trigger``."""
        return self._set("trigger", value)

    def by(self, *values: str) -> Self:
        """Set ``by``."""
        return self._set("by", list(values))

    def per(
        self,
        value: Per | None = UNSET,
        /,
        *,
        each: Literal[
            "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
        ] = UNSET,
        zone: str | None = UNSET,
        week_starts: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = UNSET,
    ) -> Self:
        """Set ``per``: to a value, or to one of these fields."""
        return self._set("per", given_or(value, {"each": each, "zone": zone, "week_starts": week_starts}))

    def incomplete(
        self, value: Incomplete | None = UNSET, /, *, allow: int | None = UNSET, after: str | None = UNSET
    ) -> Self:
        """Set ``incomplete``: to a value, or to one of these fields."""
        return self._set("incomplete", given_or(value, {"allow": allow, "after": after}))

    def late(self, value: Literal["ignore", "again"]) -> Self:
        """Set ``late``."""
        return self._set("late", value)

    def timeout(
        self, value: Timeout | Literal["never"] = UNSET, /, *, after: str = UNSET, then: Literal["abort", "run"] = UNSET
    ) -> Self:
        """Set ``timeout``: to a value, or to one of these fields."""
        return self._set("timeout", given_or(value, {"after": after, "then": then}))

    def zone(self, value: str) -> Self:
        """Set ``zone``."""
        return self._set("zone", value)

    def catch_up(
        self, value: CatchUp = UNSET, /, *, mode: Literal["all", "latest", "none"] = UNSET, within: str = UNSET
    ) -> Self:
        """Set ``catch_up``: to a value, or to one of these fields."""
        return self._set("catch_up", given_or(value, {"mode": mode, "within": within}))

    def concurrency(
        self,
        value: DagConcurrency | None = UNSET,
        /,
        *,
        max: int = UNSET,
        on_unmet: Literal["abort", "wait", "cancel_other"] = UNSET,
    ) -> Self:
        """Set ``concurrency``: to a value, or to one of these fields."""
        return self._set("concurrency", given_or(value, {"max": max, "on_unmet": on_unmet}))

    def run_timeout(self, value: str | None) -> Self:
        """Set ``run_timeout``."""
        return self._set("run_timeout", value)

    def deadline(
        self,
        value: Deadline | None = UNSET,
        /,
        *,
        start_within: str | None = UNSET,
        end_within: str | None = UNSET,
        from_: Literal["nominal", "data"] = UNSET,
    ) -> Self:
        """Set ``deadline``: to a value, or to one of these fields."""
        return self._set(
            "deadline", given_or(value, {"start_within": start_within, "end_within": end_within, "from": from_})
        )

    def notify(self, *values: Notify) -> Self:
        """Set ``notify``."""
        return self._extend("notify", list(values))

    def nodes(self, values: Mapping[str, Node] | None = None, /, **more: Node) -> Self:
        """Add to ``nodes``."""
        return self._merge("nodes", values, more)

    def edges(self, *values: Edge) -> Self:
        """Set ``edges``."""
        return self._extend("edges", list(values))

    def enabled(self, value: bool | None) -> Self:
        """Set ``enabled``."""
        return self._set("enabled", value)


class Schedule(Constrained):
    """A schedule as a user sends it. ``enabled`` enables or disables it at once; None keeps its present mode
    (L2). With ``on_update: drop``, an update drops what has gathered and what waits; otherwise it keeps both
    if the trigger is the same (L25).
    """

    group = "schedules"

    def data(self, value: Any) -> Self:
        """Set ``data``."""
        return self._set("data", value)

    def data_base64(self, value: str | None) -> Self:
        """Set ``data_base64``."""
        return self._set("data_base64", value)

    def content_type(self, value: str | None) -> Self:
        """Set ``content_type``."""
        return self._set("content_type", value)

    def data_uri(self, value: str | None) -> Self:
        """Set ``data_uri``."""
        return self._set("data_uri", value)

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def runs(self, value: str) -> Self:
        """Set ``workflow``."""
        return self._set("workflow", value)

    def on(self, value: Trigger) -> Self:
        """Set ``trigger``."""
        return self._set("trigger", value)

    def by(self, *values: str) -> Self:
        """Set ``by``."""
        return self._set("by", list(values))

    def values(self, values: Mapping[str, Sequence[str]] | None = None, /, **more: Sequence[str]) -> Self:
        """Add to ``values``."""
        return self._merge("values", values, more)

    def per(
        self,
        value: Per | None = UNSET,
        /,
        *,
        each: Literal[
            "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
        ] = UNSET,
        zone: str | None = UNSET,
        week_starts: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = UNSET,
    ) -> Self:
        """Set ``per``: to a value, or to one of these fields."""
        return self._set("per", given_or(value, {"each": each, "zone": zone, "week_starts": week_starts}))

    def incomplete(
        self, value: Incomplete | None = UNSET, /, *, allow: int | None = UNSET, after: str | None = UNSET
    ) -> Self:
        """Set ``incomplete``: to a value, or to one of these fields."""
        return self._set("incomplete", given_or(value, {"allow": allow, "after": after}))

    def late(self, value: Literal["ignore", "again"]) -> Self:
        """Set ``late``."""
        return self._set("late", value)

    def where(self, *values: Constraint) -> Self:
        """Set ``constraints``."""
        return self._extend("constraints", list(values))

    def properties(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Add to ``properties``."""
        return self._merge("properties", values, more)

    def priority(self, value: int | None) -> Self:
        """Set ``priority``."""
        return self._set("priority", value)

    def timeout(
        self, value: Timeout | Literal["never"] = UNSET, /, *, after: str = UNSET, then: Literal["abort", "run"] = UNSET
    ) -> Self:
        """Set ``timeout``: to a value, or to one of these fields."""
        return self._set("timeout", given_or(value, {"after": after, "then": then}))

    def zone(self, value: str) -> Self:
        """Set ``zone``."""
        return self._set("zone", value)

    def coalesce(self, value: bool) -> Self:
        """Set ``coalesce``."""
        return self._set("coalesce", value)

    def pause_after_failures(self, value: int | None) -> Self:
        """Set ``pause_after_failures``."""
        return self._set("pause_after_failures", value)

    def policy(self, value: str | None) -> Self:
        """Set ``policy``."""
        return self._set("policy", value)

    def retries(
        self,
        value: Retries | None = UNSET,
        /,
        *,
        attempts: int = UNSET,
        delay: str = UNSET,
        backoff: Literal["fixed", "exponential"] = UNSET,
        max_delay: str = UNSET,
        jitter: bool = UNSET,
        on: Sequence[Literal["failed", "timed_out", "lost"]] = UNSET,
    ) -> Self:
        """Set ``retries``: to a value, or to one of these fields."""
        return self._set(
            "retries",
            given_or(
                value,
                {
                    "attempts": attempts,
                    "delay": delay,
                    "backoff": backoff,
                    "max_delay": max_delay,
                    "jitter": jitter,
                    "on": on,
                },
            ),
        )

    def pool(self, value: str | None) -> Self:
        """Set ``pool``."""
        return self._set("pool", value)

    def slots(self, value: int | None) -> Self:
        """Set ``slots``."""
        return self._set("slots", value)

    def resources(
        self,
        value: Resources | None = UNSET,
        /,
        *,
        workers: int | None = UNSET,
        vcpu: int | None = UNSET,
        memory_gb: int | None = UNSET,
        disk_gb: int | None = UNSET,
        application: str | None = UNSET,
    ) -> Self:
        """Set ``resources``: to a value, or to one of these fields."""
        return self._set(
            "resources",
            given_or(
                value,
                {
                    "workers": workers,
                    "vcpu": vcpu,
                    "memory_gb": memory_gb,
                    "disk_gb": disk_gb,
                    "application": application,
                },
            ),
        )

    def deadline(
        self,
        value: Deadline | None = UNSET,
        /,
        *,
        start_within: str | None = UNSET,
        end_within: str | None = UNSET,
        from_: Literal["nominal", "data"] = UNSET,
    ) -> Self:
        """Set ``deadline``: to a value, or to one of these fields."""
        return self._set(
            "deadline", given_or(value, {"start_within": start_within, "end_within": end_within, "from": from_})
        )

    def expected(self, value: str | None) -> Self:
        """Set ``expected``."""
        return self._set("expected", value)

    def run_timeout(self, value: str | None) -> Self:
        """Set ``run_timeout``."""
        return self._set("run_timeout", value)

    def catch_up(
        self, value: CatchUp = UNSET, /, *, mode: Literal["all", "latest", "none"] = UNSET, within: str = UNSET
    ) -> Self:
        """Set ``catch_up``: to a value, or to one of these fields."""
        return self._set("catch_up", given_or(value, {"mode": mode, "within": within}))

    def ttl(self, value: str | None) -> Self:
        """Set ``ttl``."""
        return self._set("ttl", value)

    def when_done(self, value: Literal["keep", "delete"]) -> Self:
        """Set ``when_done``."""
        return self._set("when_done", value)

    def spread(
        self,
        value: Spread | None = UNSET,
        /,
        *,
        count: int = UNSET,
        over: str | None = UNSET,
        overflow: Literal["late", "drop"] = UNSET,
    ) -> Self:
        """Set ``spread``: to a value, or to one of these fields."""
        return self._set("spread", given_or(value, {"count": count, "over": over, "overflow": overflow}))

    def notify(self, *values: Notify) -> Self:
        """Set ``notify``."""
        return self._extend("notify", list(values))

    def enabled(self, value: bool | None) -> Self:
        """Set ``enabled``."""
        return self._set("enabled", value)

    def on_update(self, value: Literal["drop", "carry"]) -> Self:
        """Set ``on_update``."""
        return self._set("on_update", value)

    def concurrency(
        self, max: int, *, group: str | None = UNSET, on_unmet: Literal["abort", "wait", "cancel_other"] = UNSET
    ) -> Self:
        """Fewer than ``max`` active runs of the workflow, or of all runs that name the same ``group`` (C1)."""
        return self._append(
            "constraints", Constraint(given({"type": "concurrency", "max": max, "group": group, "on_unmet": on_unmet}))
        )

    def delay(
        self, after: str, *, since: Literal["created", "met"] = UNSET, on_unmet: Literal["abort", "wait"] = UNSET
    ) -> Self:
        """At least ``after`` since the job was created, or since its trigger was met (C2)."""
        return self._append(
            "constraints", Constraint(given({"type": "delay", "after": after, "since": since, "on_unmet": on_unmet}))
        )

    def time_window(
        self,
        start: str,
        end: str,
        *,
        zone: str | None = UNSET,
        days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = UNSET,
        on_unmet: Literal["abort", "wait"] = UNSET,
    ) -> Self:
        """Within ``[start, end)`` of the day in a zone; the window may span midnight. It begins on each of
        ``days`` (C3).
        """
        return self._append(
            "constraints",
            Constraint(
                given(
                    {
                        "type": "time_window",
                        "start": start,
                        "end": end,
                        "zone": zone,
                        "days": days,
                        "on_unmet": on_unmet,
                    }
                )
            ),
        )

    def since_last_run(
        self, at_least: str, *, of: Literal["success", "any"] = UNSET, on_unmet: Literal["abort", "wait"] = UNSET
    ) -> Self:
        """``at_least`` since the last successful run of the workflow started; a live run counts as successful
        (C4).
        """
        return self._append(
            "constraints",
            Constraint(given({"type": "since_last_run", "at_least": at_least, "of": of, "on_unmet": on_unmet})),
        )

    def rate(self, max: int, per: str, *, on_unmet: Literal["abort", "wait"] = UNSET) -> Self:
        """At most ``max`` runs of the workflow are claimed in any ``per``: hour, day, or a duration (C5)."""
        return self._append(
            "constraints", Constraint(given({"type": "rate", "max": max, "per": per, "on_unmet": on_unmet}))
        )

    def fresh(self, workflows: Sequence[str], within: str, on_unmet: Literal["abort", "wait"]) -> Self:
        """Each of ``workflows`` has succeeded ``within`` a span before now (C7). ``on_unmet`` has no default."""
        return self._append(
            "constraints",
            Constraint(given({"type": "fresh", "workflows": workflows, "within": within, "on_unmet": on_unmet})),
        )

    def load(
        self,
        of: Measured,
        *,
        below: float | None = UNSET,
        at_least: float | None = UNSET,
        recheck: str = UNSET,
        on_unmet: Literal["abort", "wait"] = UNSET,
    ) -> Self:
        """The measurement ``of`` is ``below`` a bound, or ``at_least`` one (C6). Sluice measures once all other
        constraints but a probe are met, and again after ``recheck``. While a measurement fails, the job
        waits; ``on_unmet`` does not apply.
        """
        return self._append(
            "constraints",
            Constraint(
                given(
                    {
                        "type": "load",
                        "of": of,
                        "below": below,
                        "at_least": at_least,
                        "recheck": recheck,
                        "on_unmet": on_unmet,
                    }
                )
            ),
        )

    def approval(
        self,
        *,
        role: str | None = UNSET,
        people: Sequence[str] = UNSET,
        timeout: str | None = UNSET,
        on_unmet: Literal["wait"] = UNSET,
    ) -> Self:
        """A user approves of this job: one with the IAM ``role``, or one of ``people`` (ARNs of users and
        roles). A refusal aborts the job; so does the end of ``timeout``, which counts from the instant at
        which its trigger was met (C16).
        """
        return self._append(
            "constraints",
            Constraint(
                given({"type": "approval", "role": role, "people": people, "timeout": timeout, "on_unmet": on_unmet})
            ),
        )

    def probe(self, target: Probe, *, retry: str = UNSET, on_unmet: Literal["abort", "wait"] = UNSET) -> Self:
        """The user's own check decides whether to launch (C15). Sluice calls it once all other constraints are
        met, and again after ``retry`` or at the time of its answer. If it fails, the job waits; ``on_unmet``
        does not apply.
        """
        return self._append(
            "constraints", Constraint(given({"type": "probe", "target": target, "retry": retry, "on_unmet": on_unmet}))
        )

    def calendar(
        self,
        *,
        only: Sequence[str | Mapping[str, str]] = UNSET,
        excluding: Sequence[str | Mapping[str, str]] = UNSET,
        zone: str | None = UNSET,
        on_unmet: Literal["abort", "wait"] = UNSET,
    ) -> Self:
        """A job may launch on the days and in the windows ``only`` (all, if empty), but on none of ``excluding``
        (C17). Entries have the form of those that a time trigger excludes (T6), in a zone.
        """
        return self._append(
            "constraints",
            Constraint(
                given({"type": "calendar", "only": only, "excluding": excluding, "zone": zone, "on_unmet": on_unmet})
            ),
        )

    def dataset_fresh(self, dataset: str, on_unmet: Literal["abort", "wait"], *, within: str | None = UNSET) -> Self:
        """A partition of ``dataset`` has come ``within`` a span before now (C18). The default is the span
        ``fresh`` of the dataset, as it is then. ``on_unmet`` has no default. The age of a partition counts
        from its arrival. What its keys say does not matter: a day of last year that comes now is the newest
        partition.
        """
        return self._append(
            "constraints",
            Constraint(given({"type": "dataset_fresh", "dataset": dataset, "within": within, "on_unmet": on_unmet})),
        )


def node(
    workflow: str,
    *,
    properties: Mapping[str, Any] = UNSET,
    constraints: Sequence[Constraint] = UNSET,
    priority: int | None = UNSET,
    timeout: Timeout | Literal["never"] = UNSET,
    when: Literal["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed", "always"] = UNSET,
    each: Each | None = UNSET,
) -> Node:
    """One step: a workflow, and the settings of a schedule other than its trigger. Several nodes may run the
    same workflow. ``when`` is its join rule: how the nodes before it must have ended (`core/dags/join.py`).
    ``each`` makes a job for each element of a list (W19).
    """
    return Node(
        given(
            {
                "workflow": workflow,
                "properties": properties,
                "constraints": constraints,
                "priority": priority,
                "timeout": timeout,
                "when": when,
                "each": each,
            }
        )
    )


def notify(
    on: Sequence[Literal["failed", "aborted", "missed_start", "missed_end", "data_late", "data_fresh"]],
    to: Target,
    *,
    form: Literal["slack", "teams", "pagerduty", "mail"] | None = UNSET,
    console: str | None = UNSET,
    group: str | None = UNSET,
    quiet: QuietHours | None = UNSET,
) -> Notify:
    """The kinds of events ``on`` which Sluice sends a notice to the target ``to``. ``failed``: a run failed
    after its last attempt, or a delivery failed. ``aborted``: a job was aborted. ``missed_start``,
    ``missed_end``: a start or an end missed its deadline. ``data_late``, ``data_fresh``: a dataset with
    ``fresh`` for which a schedule waits is late, and no longer is. ``form`` writes the notice for a webhook
    of Slack or of Microsoft Teams, as an event of PagerDuty, or as a mail. ``console`` is the address of a
    web console, to which its links lead. What follows a notice within ``group`` is sent as one, and nothing
    is sent in the ``quiet`` hours.
    """
    return Notify(given({"on": on, "to": to, "form": form, "console": console, "group": group, "quiet": quiet}))


def partition(dataset: str, count: int = UNSET, *, of: Literal["period"] | Last | Around | None = UNSET) -> Trigger:
    """``count`` new partitions of a dataset, each counted once (T7). For an Iceberg table: its snapshots (T21).
    With ``of: period``, all partitions that the period of the job has (T25), or those of a window around it
    (T26).
    """
    return Trigger(given({"type": "partition", "dataset": dataset, "count": count, "of": of}))


def snapshot(dataset: str, count: int = UNSET, *, of: Literal["period"] | Last | Around | None = UNSET) -> Trigger:
    """``count`` new partitions of a dataset, each counted once (T7). For an Iceberg table: its snapshots (T21).
    With ``of: period``, all partitions that the period of the job has (T25), or those of a window around it
    (T26).
    """
    return Trigger(given({"type": "snapshot", "dataset": dataset, "count": count, "of": of}))


def per(
    each: Literal[
        "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
    ],
    *,
    zone: str | None = UNSET,
    week_starts: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = UNSET,
) -> Per:
    """One job for each period of this length, in ``zone``; None: in that of the schedule. A text in place of the
    object is ``each``.
    """
    return Per(given({"each": each, "zone": zone, "week_starts": week_starts}))


def period_rule(
    each: Literal[
        "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
    ],
    format: str,
    *,
    zone: str = UNSET,
    week_starts: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = UNSET,
) -> PeriodRule:
    """Each partition of the dataset is a period of this length in ``zone`` (T24). ``format`` has the folders
    that name it, with the fields of strftime: ``dt=%Y-%m-%d/hour=%H``. ``week_starts``: the first day of a
    week.
    """
    return PeriodRule(given({"each": each, "format": format, "zone": zone, "week_starts": week_starts}))


class Policy(Named):
    """At most ``max_events`` events start in any ``interval``, across all schedules that name the policy.
    ``margin`` lengthens the interval by what the latency of calls to the target may vary.
    """

    group = "policies"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def aging(self, value: str | None) -> Self:
        """Set ``aging``."""
        return self._set("aging", value)

    def max_events(self, value: int) -> Self:
        """Set ``max_events``."""
        return self._set("max_events", value)

    def interval(self, value: str) -> Self:
        """Set ``interval``."""
        return self._set("interval", value)

    def margin(self, value: str | None) -> Self:
        """Set ``margin``."""
        return self._set("margin", value)


class Pool(Named):
    """``size`` slots or vCPUs. The keys of ``shares`` name a workflow (``app.name``) or a concurrency group
    (``name``).
    """

    group = "pools"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def aging(self, value: str | None) -> Self:
        """Set ``aging``."""
        return self._set("aging", value)

    def size(self, value: int) -> Self:
        """Set ``size``."""
        return self._set("size", value)

    def unit(self, value: Literal["slots", "vcpu"]) -> Self:
        """Set ``unit``."""
        return self._set("unit", value)

    def shares(self, values: Mapping[str, Share] | None = None, /, **more: Share) -> Self:
        """Add to ``shares``."""
        return self._merge("shares", values, more)


def probe(target: Probe, *, retry: str = UNSET, on_unmet: Literal["abort", "wait"] = UNSET) -> Constraint:
    """The user's own check decides whether to launch (C15). Sluice calls it once all other constraints are met,
    and again after ``retry`` or at the time of its answer. If it fails, the job waits; ``on_unmet`` does not
    apply.
    """
    return Constraint(given({"type": "probe", "target": target, "retry": retry, "on_unmet": on_unmet}))


def program_status(
    workflow: str,
    count: int = UNSET,
    *,
    schedule: str | None = UNSET,
    version: int | None = UNSET,
    statuses: Sequence[Literal["STARTED", "COMPLETED", "FAILED", "KILLED"]] = UNSET,
) -> Trigger:
    """Runs of a workflow, of any app and namespace, reached one of ``statuses``, ``count`` times (T10). With
    ``schedule``, only runs that this schedule started count; with ``version``, only runs that were claimed
    with that version of the workflow's definition.
    """
    return Trigger(
        given(
            {
                "type": "program_status",
                "workflow": workflow,
                "schedule": schedule,
                "version": version,
                "statuses": statuses,
                "count": count,
            }
        )
    )


def quiet_hours(
    from_: str,
    to: str,
    *,
    zone: str = UNSET,
    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = UNSET,
    urgent: Sequence[Literal["failed", "aborted", "missed_start", "missed_end", "data_late", "data_fresh"]] = UNSET,
) -> QuietHours:
    """Hours in which a rule sends nothing: what comes in them is sent at their end, as one notice. They begin at
    ``from`` on each of ``days`` (none: every day) and may span midnight. Events of the kinds ``urgent`` are
    sent at once all the same.
    """
    return QuietHours(given({"from": from_, "to": to, "zone": zone, "days": days, "urgent": urgent}))


def quiet(of: Trigger, after: str) -> Trigger:
    """The leaf ``of`` is met, and then none of its events arrives for ``after``: all chunks have arrived (T12)."""
    return Trigger(given({"type": "quiet", "of": of, "after": after}))


def rate(max: int, per: str, *, on_unmet: Literal["abort", "wait"] = UNSET) -> Constraint:
    """At most ``max`` runs of the workflow are claimed in any ``per``: hour, day, or a duration (C5)."""
    return Constraint(given({"type": "rate", "max": max, "per": per, "on_unmet": on_unmet}))


def readiness(*, done_flag: str | None = UNSET, manifest: str | None = UNSET) -> Readiness:
    """When a partition is ready (T8): at its first object, when the object ``done_flag`` arrives, or when all
    objects have arrived that ``manifest`` lists. ``manifest`` is an object with one name in each row, or with
    a JSON list.
    """
    return Readiness(given({"done_flag": done_flag, "manifest": manifest}))


def registered(dataset: str, register: Literal["on_success"]) -> Registered:
    """A dataset of which each run that succeeds is a partition: Sluice registers it at the end of the run (L22)."""
    return Registered(given({"dataset": dataset, "register": register}))


def resources(
    *,
    workers: int | None = UNSET,
    vcpu: int | None = UNSET,
    memory_gb: int | None = UNSET,
    disk_gb: int | None = UNSET,
    application: str | None = UNSET,
) -> Resources:
    """``workers`` executors and a driver, each with ``vcpu`` vCPUs, ``memory_gb`` and ``disk_gb``.
    ``application`` is the EMR Serverless application, which also determines the network.
    """
    return Resources(
        given(
            {"workers": workers, "vcpu": vcpu, "memory_gb": memory_gb, "disk_gb": disk_gb, "application": application}
        )
    )


def retries(
    *,
    attempts: int = UNSET,
    delay: str = UNSET,
    backoff: Literal["fixed", "exponential"] = UNSET,
    max_delay: str = UNSET,
    jitter: bool = UNSET,
    on: Sequence[Literal["failed", "timed_out", "lost"]] = UNSET,
) -> Retries:
    """How many attempts a run has in all, and how long after a failure the next attempt is due. With ``backoff``
    exponential, ``delay`` doubles with each attempt, up to ``max_delay``. With ``jitter``, the delay is
    between half of that and all of it. Sluice retries the outcomes in ``on``. It never retries a run that
    cannot start or was cancelled.
    """
    return Retries(
        given(
            {
                "attempts": attempts,
                "delay": delay,
                "backoff": backoff,
                "max_delay": max_delay,
                "jitter": jitter,
                "on": on,
            }
        )
    )


def secret_reference(*, ssm: str | None = UNSET, secrets_manager: str | None = UNSET) -> SecretReference:
    """A secret by its name: the parameter ``ssm``, or the secret ``secrets_manager`` of the stack's account."""
    return SecretReference(given({"ssm": ssm, "secrets_manager": secrets_manager}))


def secret_url(host: str, *, ssm: str | None = UNSET, secrets_manager: str | None = UNSET) -> SecretUrl:
    """A web address that is a secret as a whole, such as that of a webhook with a key in its path. ``host`` is
    its host, so that allow-lists and readers know where a call goes.
    """
    return SecretUrl(given({"ssm": ssm, "secrets_manager": secrets_manager, "host": host}))


def share(reserved: int) -> Share:
    """``reserved`` units of a pool, which one workflow or group alone may use."""
    return Share(given({"reserved": reserved}))


def since_last_run(
    at_least: str, *, of: Literal["success", "any"] = UNSET, on_unmet: Literal["abort", "wait"] = UNSET
) -> Constraint:
    """``at_least`` since the last successful run of the workflow started; a live run counts as successful (C4)."""
    return Constraint(given({"type": "since_last_run", "at_least": at_least, "of": of, "on_unmet": on_unmet}))


def size(dataset: str, bytes: int | str) -> Trigger:
    """At least ``bytes`` of new objects in a dataset (``100GB``, or a number); an object counts once (T9)."""
    return Trigger(given({"type": "size", "dataset": dataset, "bytes": bytes}))


def sns(
    topic_arn: str,
    *,
    format: Literal["cloudevents"] | None = UNSET,
    event_type: str | None = UNSET,
    subject: str | None = UNSET,
    group: str | None = UNSET,
) -> Target:
    """A message on an SNS topic, standard or FIFO (see `SqsTarget`)."""
    return Target(
        given(
            {
                "type": "sns",
                "format": format,
                "event_type": event_type,
                "topic_arn": topic_arn,
                "subject": subject,
                "group": group,
            }
        )
    )


def spread(count: int, *, over: str | None = UNSET, overflow: Literal["late", "drop"] = UNSET) -> Spread:
    """``count`` events for each fire, due evenly ``over`` a window that begins with the fire, or all at once
    (E2). With ``overflow: late``, Sluice starts an event after the window and marks it as late; with
    ``drop``, it drops the event, with a record.
    """
    return Spread(given({"count": count, "over": over, "overflow": overflow}))


def sqs(
    queue_url: str,
    *,
    format: Literal["cloudevents"] | None = UNSET,
    event_type: str | None = UNSET,
    group: str | None = UNSET,
) -> Target:
    """A message on an SQS queue. A FIFO queue (its URL ends with ``.fifo``) keeps the order within a message
    group: ``group``, by default one for each schedule. It drops a message that is sent again within five
    minutes.
    """
    return Target(
        given({"type": "sqs", "format": format, "event_type": event_type, "queue_url": queue_url, "group": group})
    )


def step_functions(state_machine: str, *, poll_every: str | None = UNSET) -> Target:
    """An execution of a standard state machine, in the account and region of the stack. Step Functions reports
    the states of a run by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """
    return Target(given({"type": "step_functions", "state_machine": state_machine, "poll_every": poll_every}))


def time(
    expression: str | Mapping[str, Any] | None = UNSET,
    *,
    zone: str | None = UNSET,
    due_time: str | None = UNSET,
    start: str | None = UNSET,
    end: str | None = UNSET,
    repeats: int | None = UNSET,
    jitter: str | None = UNSET,
    gap: Literal["after", "skip"] = UNSET,
    overlap: Literal["first", "second", "both"] = UNSET,
    excluding: Sequence[str | Mapping[str, str]] = UNSET,
    calendar: str | None = UNSET,
) -> Trigger:
    """Fires at the instants of ``expression``, in ``zone`` (None: the schedule's), or at ``due_time`` alone.
    With both, the first fire is at ``due_time`` and the following instants count from there (T3). ``start``
    and ``end`` bound the nominal instants, inclusively; intervals count from ``start``, which is then the
    first instant. ``repeats`` is the number of fires in all. Each fire is due up to ``jitter`` after its
    nominal instant and before the next one; the delay of a fire never changes. ``gap`` and ``overlap`` are
    the rules for wall times that do not exist or exist twice (T2). ``excluding`` removes instants of the
    expression (T6). The holidays of ``calendar``, one of the schedule's namespace, are no working days of the
    expression (T30).
    """
    return Trigger(
        given(
            {
                "type": "time",
                "expression": expression,
                "zone": zone,
                "due_time": due_time,
                "start": start,
                "end": end,
                "repeats": repeats,
                "jitter": jitter,
                "gap": gap,
                "overlap": overlap,
                "excluding": excluding,
                "calendar": calendar,
            }
        )
    )


def time_window(
    start: str,
    end: str,
    *,
    zone: str | None = UNSET,
    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = UNSET,
    on_unmet: Literal["abort", "wait"] = UNSET,
) -> Constraint:
    """Within ``[start, end)`` of the day in a zone; the window may span midnight. It begins on each of ``days``
    (C3).
    """
    return Constraint(
        given({"type": "time_window", "start": start, "end": end, "zone": zone, "days": days, "on_unmet": on_unmet})
    )


def timeout(*, after: str = UNSET, then: Literal["abort", "run"] = UNSET) -> Timeout:
    """What happens to a job that is not launched within ``after`` of its creation: Sluice aborts or runs it
    (C10).
    """
    return Timeout(given({"after": after, "then": then}))


def worker(pool: str, *, arguments: Sequence[str] = UNSET, heartbeat: str = UNSET) -> Target:
    """A pool of pull workers (W5). A worker claims the run and keeps it by heartbeats, at most ``heartbeat``
    apart. The command of the worker gets ``arguments``. The pool belongs to the namespace of the workflow.
    """
    return Target(given({"type": "worker", "pool": pool, "arguments": arguments, "heartbeat": heartbeat}))


class Workflow(Named):
    """A target with default properties (runtime arguments), retries and a priority (9 is most urgent).
    ``delivery`` is the policy of deliveries to a target without a lifecycle. ``timeout`` is how long a run
    may be RUNNING; then Sluice cancels it, and it has failed (W12). ``start_timeout`` is the same for the
    time from its start request until it is RUNNING (W21). ``notify`` names the targets of notices about
    failures (W9) and missed deadlines (H5). From ``pool``, a run takes ``slots``, or the vCPUs of its
    ``resources`` (W3, W13). ``expected`` is the expected duration of a run. Of jobs with equal priority, the
    one that must start first to meet its ``deadline`` goes first (W14). A schedule may override these and
    ``retries``. Each job that runs the workflow waits for its ``approval``, whichever schedule has made it
    (C16). Its runs read partitions of the datasets ``reads``, and write partitions of those in ``produces``
    (L22).
    """

    group = "workflows"

    def description(self, value: str) -> Self:
        """Set ``description``."""
        return self._set("description", value)

    def tags(self, values: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add to ``tags``."""
        return self._merge("tags", values, more)

    def owner(self, value: str) -> Self:
        """Set ``owner``."""
        return self._set("owner", value)

    def target(self, value: Target) -> Self:
        """Set ``target``."""
        return self._set("target", value)

    def properties(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Add to ``properties``."""
        return self._merge("properties", values, more)

    def priority(self, value: int) -> Self:
        """Set ``priority``."""
        return self._set("priority", value)

    def retries(
        self,
        value: Retries = UNSET,
        /,
        *,
        attempts: int = UNSET,
        delay: str = UNSET,
        backoff: Literal["fixed", "exponential"] = UNSET,
        max_delay: str = UNSET,
        jitter: bool = UNSET,
        on: Sequence[Literal["failed", "timed_out", "lost"]] = UNSET,
    ) -> Self:
        """Set ``retries``: to a value, or to one of these fields."""
        return self._set(
            "retries",
            given_or(
                value,
                {
                    "attempts": attempts,
                    "delay": delay,
                    "backoff": backoff,
                    "max_delay": max_delay,
                    "jitter": jitter,
                    "on": on,
                },
            ),
        )

    def delivery(
        self,
        value: Delivery = UNSET,
        /,
        *,
        tries: int = UNSET,
        delay: str = UNSET,
        backoff: Backoff | None = UNSET,
        records: Literal["fire", "each"] = UNSET,
    ) -> Self:
        """Set ``delivery``: to a value, or to one of these fields."""
        return self._set(
            "delivery", given_or(value, {"tries": tries, "delay": delay, "backoff": backoff, "records": records})
        )

    def timeout(self, value: str) -> Self:
        """Set ``timeout``."""
        return self._set("timeout", value)

    def start_timeout(self, value: str | None) -> Self:
        """Set ``start_timeout``."""
        return self._set("start_timeout", value)

    def pool(self, value: str | None) -> Self:
        """Set ``pool``."""
        return self._set("pool", value)

    def slots(self, value: int | None) -> Self:
        """Set ``slots``."""
        return self._set("slots", value)

    def resources(
        self,
        value: Resources | None = UNSET,
        /,
        *,
        workers: int | None = UNSET,
        vcpu: int | None = UNSET,
        memory_gb: int | None = UNSET,
        disk_gb: int | None = UNSET,
        application: str | None = UNSET,
    ) -> Self:
        """Set ``resources``: to a value, or to one of these fields."""
        return self._set(
            "resources",
            given_or(
                value,
                {
                    "workers": workers,
                    "vcpu": vcpu,
                    "memory_gb": memory_gb,
                    "disk_gb": disk_gb,
                    "application": application,
                },
            ),
        )

    def deadline(
        self,
        value: Deadline | None = UNSET,
        /,
        *,
        start_within: str | None = UNSET,
        end_within: str | None = UNSET,
        from_: Literal["nominal", "data"] = UNSET,
    ) -> Self:
        """Set ``deadline``: to a value, or to one of these fields."""
        return self._set(
            "deadline", given_or(value, {"start_within": start_within, "end_within": end_within, "from": from_})
        )

    def expected(self, value: str | None) -> Self:
        """Set ``expected``."""
        return self._set("expected", value)

    def notify(self, *values: Notify) -> Self:
        """Set ``notify``."""
        return self._extend("notify", list(values))

    def approval(self, value: Constraint | None) -> Self:
        """Set ``approval``."""
        return self._set("approval", value)

    def reads(self, *values: str) -> Self:
        """Set ``reads``."""
        return self._set("reads", list(values))

    def produces(self, *values: str | Registered) -> Self:
        """Set ``produces``."""
        return self._set("produces", list(values))


__all__ = [
    "Dag",
    "Dataset",
    "HolidayCalendar",
    "Message",
    "Policy",
    "Pool",
    "Schedule",
    "Workflow",
    "absent",
    "all_of",
    "any_of",
    "approval",
    "around",
    "at_least",
    "athena",
    "aws_api",
    "backoff",
    "batch",
    "calendar",
    "catch_up",
    "cloudwatch_alarm",
    "concurrency",
    "dag_concurrency",
    "dataset_fresh",
    "deadline",
    "delay",
    "delivery",
    "each",
    "ecs",
    "edge",
    "elapsed",
    "emr_eks",
    "emr_serverless",
    "event",
    "event_bus",
    "fresh",
    "glue",
    "http",
    "http_probe",
    "incomplete",
    "lambda_function",
    "lambda_probe",
    "last",
    "load",
    "measured",
    "metric",
    "node",
    "notify",
    "partition",
    "per",
    "period_rule",
    "probe",
    "program_status",
    "quiet",
    "quiet_hours",
    "rate",
    "readiness",
    "registered",
    "resources",
    "retries",
    "secret_reference",
    "secret_url",
    "share",
    "since_last_run",
    "size",
    "snapshot",
    "sns",
    "spread",
    "sqs",
    "step_functions",
    "time",
    "time_window",
    "timeout",
    "worker",
]


# The schema of the API -> what makes a document of it.
MADE_BY: dict[str, tuple[Any, ...]] = {
    "AbsentTrigger": (absent,),
    "AllTrigger": (all_of,),
    "AnyOfTrigger": (any_of,),
    "Approval": (approval,),
    "Around": (around,),
    "AtLeastTrigger": (at_least,),
    "AthenaTarget": (athena,),
    "AwsApiTarget": (aws_api,),
    "Backoff": (backoff,),
    "BatchTarget": (batch,),
    "Calendar": (calendar,),
    "CatchUp": (catch_up,),
    "CloudWatchAlarmTrigger": (cloudwatch_alarm,),
    "Concurrency": (concurrency,),
    "DagConcurrency": (dag_concurrency,),
    "Dataset": (Dataset,),
    "DatasetFresh": (dataset_fresh,),
    "Deadline": (deadline,),
    "Delay": (delay,),
    "Delivery": (delivery,),
    "Each": (each,),
    "EcsTarget": (ecs,),
    "Edge": (edge,),
    "ElapsedTrigger": (elapsed,),
    "EmrEksTarget": (emr_eks,),
    "EmrServerlessTarget": (emr_serverless,),
    "EventBusTarget": (event_bus,),
    "EventTrigger": (event,),
    "Fresh": (fresh,),
    "GlueTarget": (glue,),
    "HolidayCalendar": (HolidayCalendar,),
    "HttpProbe": (http_probe,),
    "HttpTarget": (http,),
    "Incomplete": (incomplete,),
    "LambdaProbe": (lambda_probe,),
    "LambdaTarget": (lambda_function,),
    "Last": (last,),
    "Load": (load,),
    "Measured": (measured,),
    "Message": (Message,),
    "Metric": (metric,),
    "NewDag": (Dag,),
    "NewSchedule": (Schedule,),
    "Node": (node,),
    "Notify": (notify,),
    "PartitionTrigger": (
        partition,
        snapshot,
    ),
    "Per": (per,),
    "PeriodRule": (period_rule,),
    "Policy": (Policy,),
    "Pool": (Pool,),
    "Probe": (probe,),
    "ProgramStatusTrigger": (program_status,),
    "QuietHours": (quiet_hours,),
    "QuietTrigger": (quiet,),
    "Rate": (rate,),
    "Readiness": (readiness,),
    "Registered": (registered,),
    "Resources": (resources,),
    "Retries": (retries,),
    "SecretReference": (secret_reference,),
    "SecretUrl": (secret_url,),
    "Share": (share,),
    "SinceLastRun": (since_last_run,),
    "SizeTrigger": (size,),
    "SnsTarget": (sns,),
    "Spread": (spread,),
    "SqsTarget": (sqs,),
    "StepFunctionsTarget": (step_functions,),
    "TimeTrigger": (time,),
    "TimeWindow": (time_window,),
    "Timeout": (timeout,),
    "WorkerTarget": (worker,),
    "Workflow": (Workflow,),
}
