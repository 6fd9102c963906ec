"""All settings of an installation in one record, with their reasons. `wiring` reads them from the environment once."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.access.queue_urls import queue_arn
from chalicelib.core.targets.bills import LIST, Prices

# The root user and federated users are allowed, too: `make deploy` names who deploys. Roles have no path here.
_ADMINISTRATOR = re.compile(
    r"arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:(root|(user|federated-user)/[\w+=.@/-][\w+=.@/*-]*|role/[\w+=.@-][\w+=.@*-]*)",
    re.ASCII,
)

_PERSONAL_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=.@-][\w+=.@*-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """The names of tables, buckets and queues, and every tunable."""

    catalog_table: str
    jobs_table: str
    runs_table: str
    hints_queue_url: str
    lake_bucket: str
    control_bucket: str
    emr_application_id: str
    emr_job_role_arn: str
    # Further applications and roles that workflows may name. IAM lets the Lambdas use only these and the stack's own.
    emr_application_ids: tuple[str, ...] = ()
    emr_role_arns: tuple[str, ...] = ()
    # The queue of hints for many rows, whose messages have an invocation each. Empty: the queue of all hints.
    burst_hints_queue_url: str = ""
    # How many runs an EMR application may have at a time. Others queue in Sluice, by priority, instead of in EMR. An
    # application that is not named has no such limit.
    emr_run_limits: tuple[tuple[str, int], ...] = ()
    # Shards of each wake index. A shard takes about 1,000 writes a second, and costs a tick one query per table.
    wake_shards: int = 4
    # Shards of the history indexes, for the same reason.
    history_shards: int = 4
    # AWS allows 1 StartJobRun a second with a burst of 25 by default, adjustable for the account. Five are left to
    # users and other tools.
    start_rate_per_second: float = 1.0
    start_burst: int = 20
    # Two ticks and a margin, so that no fire is late if one tick is late or missing.
    horizon_seconds: int = 135
    # A longer list of events is stored as a manifest in S3 instead of in the context (T17).
    inline_events: int = 200
    # Whether a deployment changes schedules if its request has no ``update_schedules`` (L8).
    update_schedules: bool = True
    # Whether a tick without work sends a hint without rows, so that the next job does not wait for a cold start.
    keep_warm: bool = False
    # For how many days runs and records are kept, 90 to 180 (H1).
    history_days: int = 180
    # For how many days audit records are kept in the table.
    audit_days: int = 400
    # The bucket to which audit records are exported; empty for none.
    audit_bucket: str = ""
    # The quotas of namespaces that have none of their own (O9).
    quota_schedules: int = 100_000
    quota_fires_per_second: float = 1_000
    quota_documents: int = 200_000
    quota_requests_per_second: float = 500
    quota_waiting_jobs: int = 50_000
    # Buckets besides the lake whose notifications of new objects reach this installation through EventBridge (T20).
    watched_buckets: tuple[str, ...] = ()
    # Whether callbacks may use private addresses and plain http: only on a laptop, with the local cloud.
    http_allow_private: bool = False
    # How long a claim of a pull worker may wait for work, 0 to 20 s. The Lambda is billed for that time.
    worker_wait_seconds: float = 0
    # After how many seconds a worker claims again if it got nothing and did not wait.
    worker_retry_seconds: float = 5
    # What follows if the signer of a request lacks the right to make it: ``off``, ``observe`` (log it), ``enforce``.
    authorization: str = "off"
    # Patterns of the ARNs of users and roles that administer the installation: they create namespaces (O5).
    administrators: tuple[str, ...] = ()
    # Patterns of the ARNs of roles whose sessions are persons, such as those of IAM Identity Center. The sessions of
    # any other role are one person: none of them approves what another has arranged (C16).
    personal_roles: tuple[str, ...] = ()
    # Patterns of the ARNs of roles that allow-lists may name for calls of targets (O10). IAM lets the Lambdas assume
    # these alone.
    target_role_arns: tuple[str, ...] = ()
    # Other accounts whose users and roles API Gateway lets call the API, as far as they are members (O5).
    caller_accounts: tuple[str, ...] = ()
    # The account of the stack. Targets of other accounts need an allow-list that names them (O10). Empty in tests.
    account: str = ""
    # The address of an emulator of SQS, whose queues have other URLs than those of AWS. Empty in production.
    queue_endpoint: str = ""
    # The beginning of the namespaces of jobs in OpenLineage; empty: no events are sent (H6).
    lineage: str = ""
    # Where they are sent: one of an endpoint, with the name of the secret for its header ``Authorization``; a queue, by
    # its ARN; a folder of S3, ``bucket/prefix/``.
    lineage_endpoint: str = ""
    lineage_secret: str = ""
    lineage_queue_arn: str = ""
    lineage_folder: str = ""
    # The queue for those that were not taken, and the namespaces whose runs are reported; empty: all.
    lineage_letters_url: str = ""
    lineage_namespaces: tuple[str, ...] = ()
    # List prices of EMR Serverless, in dollars; `core/runs/costs.py` has their date and region. Yours may differ (H1).
    price_vcpu_hour: float = LIST.vcpu_hour
    price_memory_gb_hour: float = LIST.memory_gb_hour
    price_storage_gb_hour: float = LIST.storage_gb_hour

    @property
    def prices(self) -> Prices:
        return Prices(self.price_vcpu_hour, self.price_memory_gb_hour, self.price_storage_gb_hour)

    @property
    def partition(self) -> str:
        """The partition of AWS in which the stack is, such as ``aws-cn``."""
        found = queue_arn(self.hints_queue_url).split(":")
        return found[1] if found[0] == "arn" else "aws"

    @property
    def notified_buckets(self) -> tuple[str, ...]:
        """The buckets whose notifications reach this installation, each once, the lake first."""
        return tuple(dict.fromkeys((self.lake_bucket, *self.watched_buckets)))

    @property
    def all_emr_applications(self) -> tuple[str, ...]:
        """The stack's own application, and the others that workflows may name."""
        return tuple(dict.fromkeys(name for name in (self.emr_application_id, *self.emr_application_ids) if name))

    @property
    def all_emr_roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arn for arn in (self.emr_job_role_arn, *self.emr_role_arns) if arn))

    @property
    def start_spacing(self) -> int:
        """The ms between two starts at the start rate."""
        return round(1000 / self.start_rate_per_second)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings from variables ``SLUICE_<FIELD>``. Raises RuntimeError for missing ones, and RuntimeError or
        ValueError for malformed ones."""
        env = os.environ if environment is None else environment
        optional: dict[str, Callable[[str], Any]] = {
            "burst_hints_queue_url": str,
            "emr_application_ids": _names,
            "emr_role_arns": _names,
            "emr_run_limits": _run_limits,
            "wake_shards": int,
            "history_shards": int,
            "start_rate_per_second": float,
            "start_burst": int,
            "horizon_seconds": int,
            "inline_events": int,
            "keep_warm": _switch("SLUICE_KEEP_WARM"),
            "history_days": _between("SLUICE_HISTORY_DAYS", 90, 180),
            "audit_bucket": str,
            "audit_days": _between("SLUICE_AUDIT_DAYS", 1, 3_650),
            "quota_schedules": _between("SLUICE_QUOTA_SCHEDULES", 0, 10_000_000),
            "quota_fires_per_second": _rate("SLUICE_QUOTA_FIRES_PER_SECOND", 0, 1_000_000),
            "quota_documents": _between("SLUICE_QUOTA_DOCUMENTS", 0, 10_000_000),
            "quota_requests_per_second": _rate("SLUICE_QUOTA_REQUESTS_PER_SECOND", 1, 100_000),
            "quota_waiting_jobs": _between("SLUICE_QUOTA_WAITING_JOBS", 0, 50_000),
            "update_schedules": _switch("SLUICE_UPDATE_SCHEDULES"),
            "http_allow_private": _switch("SLUICE_HTTP_ALLOW_PRIVATE"),
            "worker_wait_seconds": float,
            "worker_retry_seconds": float,
            "price_vcpu_hour": float,
            "price_memory_gb_hour": float,
            "price_storage_gb_hour": float,
            "watched_buckets": _names,
            "authorization": _one_of("SLUICE_AUTHORIZATION", "off", "observe", "enforce"),
            "administrators": _administrators,
            "personal_roles": _personal_roles,
            "target_role_arns": _names,
            "caller_accounts": _names,
            "account": str,
            "lineage": str,
            "lineage_endpoint": str,
            "lineage_secret": str,
            "lineage_queue_arn": str,
            "lineage_folder": str,
            "lineage_letters_url": str,
            "lineage_namespaces": _names,
        }
        tuned: dict[str, Any] = {
            name: cast(env[key]) for name, cast in optional.items() if (key := f"SLUICE_{name.upper()}") in env
        }
        required = ("catalog_table", "jobs_table", "runs_table", "hints_queue_url", "lake_bucket", "control_bucket")
        missing = [f"SLUICE_{name.upper()}" for name in required if f"SLUICE_{name.upper()}" not in env]
        if missing:
            raise RuntimeError(f"expected {', '.join(missing)} in the environment; the template sets them")
        return cls(
            catalog_table=env["SLUICE_CATALOG_TABLE"],
            jobs_table=env["SLUICE_JOBS_TABLE"],
            runs_table=env["SLUICE_RUNS_TABLE"],
            hints_queue_url=env["SLUICE_HINTS_QUEUE_URL"],
            lake_bucket=env["SLUICE_LAKE_BUCKET"],
            control_bucket=env["SLUICE_CONTROL_BUCKET"],
            emr_application_id=env.get("SLUICE_EMR_APPLICATION_ID", ""),
            emr_job_role_arn=env.get("SLUICE_EMR_JOB_ROLE_ARN", ""),
            # The names that the clients of AWS read.
            queue_endpoint=env.get("AWS_ENDPOINT_URL_SQS") or env.get("AWS_ENDPOINT_URL", ""),
            **tuned,
        )


def _names(text: str) -> tuple[str, ...]:
    """The names in a list that CloudFormation has joined by commas. An empty parameter gives no name."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _administrators(text: str) -> tuple[str, ...]:
    """The patterns in a list of ARNs. Raises RuntimeError for one without a literal account and the beginning of a
    name: it would make everybody an administrator."""
    found = _names(text)
    for pattern in found:
        if not _ADMINISTRATOR.fullmatch(pattern):
            hint = "name a user or role of one account, such as arn:aws:iam::123456789012:role/platform-*"
            raise RuntimeError(
                f"expected ARNs of IAM users and roles in SLUICE_ADMINISTRATORS, got {pattern!r}; {hint}"
            )
    return found


def _personal_roles(text: str) -> tuple[str, ...]:
    """The patterns in a list of ARNs of roles. Raises RuntimeError for one without a literal account and the beginning
    of a name: the sessions of a role that several persons choose names in would approve each other."""
    found = _names(text)
    for pattern in found:
        if not _PERSONAL_ROLE.fullmatch(pattern):
            hint = "name roles of one account, without path, such as arn:aws:iam::123456789012:role/AWSReservedSSO_*"
            raise RuntimeError(f"expected ARNs of IAM roles in SLUICE_PERSONAL_ROLES, got {pattern!r}; {hint}")
    return found


def _run_limits(text: str) -> tuple[tuple[str, int], ...]:
    """The limits in a list of ``<application>=<runs>``, separated by commas. The last one of an application counts."""
    limits: dict[str, int] = {}
    for part in _names(text):
        application, _, runs = part.partition("=")
        if not (application and runs.isdecimal() and int(runs) > 0):
            raise RuntimeError(f"expected <application>=<runs> in SLUICE_EMR_RUN_LIMITS, got {part!r}")
        limits[application] = int(runs)
    return tuple(limits.items())


def _between(name: str, least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise RuntimeError(f"expected {least:,} to {most:,} in {name}, got {text!r}")
        return int(text)

    return read


def _rate(name: str, least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not least <= rate <= most:  # also for NaN
            raise RuntimeError(f"expected {least:,} to {most:,} in {name}, got {text!r}")
        return rate

    return read


def _one_of(name: str, *words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise RuntimeError(f"expected one of {', '.join(words)} in {name}, got {text!r}")
        return text

    return read


def _switch(name: str) -> Callable[[str], bool]:
    """A reader of ``true`` or ``false``. It raises RuntimeError for any other word, because the protection of schedules
    and networks must not depend on a guess."""

    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise RuntimeError(f"expected true or false in {name}, got {text!r}")
        return text == "true"

    return read
