"""The allow-list of a namespace: which roles, targets, addresses and data its definitions may name (O10).

Example:

    execution_roles: [arn:aws:iam::123456789012:role/team-a-*]
    entry_points: [s3://team-a-code/jobs/]
    queues: [arn:aws:sqs:eu-west-1:123456789012:team-a-*]
    hosts: [hooks.example.com]
    topics: []

A field that is absent leaves its kind to the parameters of the stack. An empty list allows none. Once the installation
has several namespaces, one without a list may name by itself (O14) the things whose names hold its own:

    sluice-target-<namespace>-<word>      the last hyphen ends the name of the namespace
    sluice-target-<namespace>--<text>     the first two hyphens in a row end it

So each name belongs to one namespace at most, whichever namespaces exist, although their names may have hyphens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from chalicelib.core.access.queue_urls import OWN, queue_arn
from chalicelib.core.access.spark_keys import OF_FILES, is_harmless
from chalicelib.core.documents import Document
from chalicelib.core.errors import SluiceError, invalid

Kind = Literal[
    "execution_roles",
    "applications",
    "entry_points",
    "spark",
    "queues",
    "topics",
    "functions",
    "buses",
    "state_machines",
    "engines",
    "actions",
    "hosts",
    "secrets",
    "buckets",
    "metrics",
    "alarms",
]
MAX_PATTERNS = 100
PREFIX = "sluice-target-"
MAX_LENGTH = 512  # characters of a pattern


@dataclass(frozen=True, slots=True)
class Named:
    """A thing that a document names in a ``field``, in the form that patterns have: an ARN, an ``s3://`` address, a
    host or a name. ``got`` is the text of the document, if that differs."""

    kind: Kind
    value: str
    field: str
    got: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """What a check needs to know of an installation. ``account`` is that of the stack; empty if unknown, as in tests.
    ``queue_endpoint`` is the address of an emulator of SQS. With ``is_shared`` a namespace without a list may name only
    what holds its name, the ``application`` of the stack, and code in its folder below ``code``."""

    account: str = ""
    queue_endpoint: str = ""
    is_shared: bool = False
    application: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a list of one kind: a word for one thing, the form of a pattern, and an example. Then the comparison
    of a pattern with a value."""

    word: str
    form: str
    example: str
    fits: Callable[[str, str], bool]


def _is_arn_like(pattern: str, value: str) -> bool:
    """Whether an ARN fits a pattern. A pattern of a function or a state machine covers its versions and aliases."""
    wanted, got = pattern.split(":", 5), value.split(":", 5)
    if len(got) < 6 or wanted[2] != got[2]:
        return False
    parts = zip((wanted[1], wanted[3], wanted[4]), (got[1], got[3], got[4]), strict=True)
    if any(each not in (expected, OWN) and expected != "*" for expected, each in parts):
        return False
    whole = got[5]
    unqualified = ":".join(whole.split(":")[:2])
    return any(fnmatchcase(name, wanted[5]) for name in (whole, unqualified))


def _is_below(prefix: str, value: str) -> bool:
    """Whether an address is a prefix's own or lies below it. Hadoop expands patterns and resolves ``..``, so an address
    with either lies nowhere."""
    if re.search(r"[*?{}\[\]\\\s]", value) or {".", ".."} & set(value.split("/")):
        return False
    return value.startswith(prefix) if prefix.endswith("/") else value == prefix


def _is_host(pattern: str, value: str) -> bool:
    return value.endswith(pattern[1:]) if pattern.startswith("*.") else value == pattern


def _is_spark(pattern: str, value: str) -> bool:
    """A pattern with a wildcard covers properties that are known to load no code. Others are listed by their names."""
    return pattern == value or (is_harmless(value) and fnmatchcase(value, pattern))


_PART, _REGION, _ACCOUNT = r"arn:aws[a-z-]*", r"(?:[a-z]{2}[a-z-]+-\d|\*)", r"\d{12}"


def _arn(word: str, service: str, resource: str, example: str) -> Rule:
    """The rule of a kind with ARNs. Service, account and the beginning of the name are literal, so that no pattern fits
    the things of all accounts."""
    form = rf"{_PART}:{service}:{_REGION}:{_ACCOUNT}:{resource}[A-Za-z0-9/_+=,.@$-][A-Za-z0-9/_+=,.@$:*-]*"
    return Rule(word, form, f"arn:aws:{service}:eu-west-1:123456789012:{example}", _is_arn_like)


_ROLE = re.compile(rf"{_PART}:iam::{_ACCOUNT}:role/[\w+=,.@/-]+", re.ASCII)
_S3 = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^\s*?{}\[\]\\]*"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"

RULES: dict[Kind, Rule] = {
    "execution_roles": Rule(
        "execution role",
        rf"{_PART}:iam::{_ACCOUNT}:role/[\w+=,.@/-][\w+=,.@/*-]*",
        "arn:aws:iam::123456789012:role/team-a-*",
        _is_arn_like,
    ),
    "applications": Rule("EMR application", r"[0-9a-z]{1,64}", "00f1r2s3t4u5v6w7", str.__eq__),
    "entry_points": Rule("file of code", _S3, "s3://team-a-code/jobs/", _is_below),
    "spark": Rule("Spark property", r"spark\.[A-Za-z0-9_.*-]+", "spark.sql.*", _is_spark),
    "queues": _arn("queue", "sqs", "", "team-a-*"),
    "topics": _arn("topic", "sns", "", "team-a-*"),
    "functions": _arn("function", "lambda", "function:", "function:team-a-*"),
    "buses": _arn("event bus", "events", "event-bus/", "event-bus/team-a"),
    "state_machines": _arn("state machine", "states", "stateMachine:", "stateMachine:team-a-*"),
    "engines": Rule(
        "resource of an engine",
        rf"{_PART}:(?:athena|batch|ecs|emr-containers|glue):{_REGION}:{_ACCOUNT}:"
        r"/?[a-z-]+/[A-Za-z0-9/_+=,.@$-][A-Za-z0-9/_+=,.@$*-]*",
        "arn:aws:ecs:eu-west-1:123456789012:task-definition/team-a-*",
        _is_arn_like,
    ),
    "actions": Rule(
        "API action",
        r"[a-z0-9-]+:(?:[A-Z][A-Za-z0-9]*\*?|\*)",
        "sns:Publish",
        lambda pattern, value: fnmatchcase(value.lower(), pattern.lower()),  # publish_sms is PublishSMS, and PublishSms
    ),
    "hosts": Rule("host", rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})+", "hooks.example.com", _is_host),
    "secrets": Rule(
        "secret",
        rf"{_PART}:(?:secretsmanager:{_REGION}:{_ACCOUNT}:secret:|ssm:{_REGION}:{_ACCOUNT}:parameter/)"
        r"[A-Za-z0-9/_+=.@-][A-Za-z0-9/_+=.@*-]*",
        "arn:aws:ssm:eu-west-1:123456789012:parameter/team-a/*",
        _is_arn_like,
    ),
    "buckets": Rule("bucket and prefix", _S3, "s3://team-a-lake/raw/", _is_below),
    "metrics": Rule("metric", r"[!-)+-~][ -~]*", "AWS/SQS/*", lambda pattern, value: fnmatchcase(value, pattern)),
    "alarms": Rule("alarm", r"[^*\s][^\x00-\x1f]*", "team-a-*", lambda pattern, value: fnmatchcase(value, pattern)),
}
# The things that may belong to another account. Without a list, a namespace may name those of the stack's own.
OF_ACCOUNT: frozenset[Kind] = frozenset(
    {"queues", "topics", "functions", "buses", "state_machines", "engines", "secrets"}
)
# The things that names limit no further: a secret lies in the folder of its namespace, and a prefix has an owner.
NOT_BY_NAME: frozenset[Kind] = frozenset({"secrets", "buckets"})


def _check_pattern(kind: Kind, pattern: str) -> str:
    rule = RULES[kind]
    has_other_wildcards = "?" in pattern or "[" in pattern
    if len(pattern) > MAX_LENGTH or has_other_wildcards or not re.fullmatch(rule.form, pattern, re.ASCII):
        hint = "write out the service, the account and the beginning of the name; * stands for any text after these"
        raise invalid("", f"a pattern such as {rule.example}", pattern, hint)
    return pattern


def _of(kind: Kind) -> AfterValidator:
    return AfterValidator(partial(_check_pattern, kind))


_Length = Field(default=None, max_length=MAX_PATTERNS)


def _check_role(arn: str) -> str:
    if len(arn) > MAX_LENGTH or not _ROLE.fullmatch(arn):
        hint = "a role has one ARN, so * is not allowed; null, or no field: the roles of the Lambdas call the targets"
        example = "arn:aws:iam::123456789012:role/sluice-target-demo"
        raise invalid("", f"the ARN of an IAM role, such as {example}", arn, hint)
    return arn


class Allowed(Document):
    """The allow-list of a namespace. Only administrators of the installation change it. ``*`` stands for any text in a
    name. ``entry_points`` and ``buckets`` are ``s3://`` addresses; one that ends with ``/`` includes all below it.

    ``target_role`` is the ARN of the IAM role with which Sluice calls the targets and probes of the namespace, instead
    of with the roles of the Lambdas."""

    execution_roles: tuple[Annotated[str, _of("execution_roles")], ...] | None = _Length
    applications: tuple[Annotated[str, _of("applications")], ...] | None = _Length
    entry_points: tuple[Annotated[str, _of("entry_points")], ...] | None = _Length
    spark: tuple[Annotated[str, _of("spark")], ...] | None = _Length
    queues: tuple[Annotated[str, _of("queues")], ...] | None = _Length
    topics: tuple[Annotated[str, _of("topics")], ...] | None = _Length
    functions: tuple[Annotated[str, _of("functions")], ...] | None = _Length
    buses: tuple[Annotated[str, _of("buses")], ...] | None = _Length
    state_machines: tuple[Annotated[str, _of("state_machines")], ...] | None = _Length
    engines: tuple[Annotated[str, _of("engines")], ...] | None = _Length
    actions: tuple[Annotated[str, _of("actions")], ...] | None = _Length
    hosts: tuple[Annotated[str, _of("hosts")], ...] | None = _Length
    secrets: tuple[Annotated[str, _of("secrets")], ...] | None = _Length
    buckets: tuple[Annotated[str, _of("buckets")], ...] | None = _Length
    metrics: tuple[Annotated[str, _of("metrics")], ...] | None = _Length
    alarms: tuple[Annotated[str, _of("alarms")], ...] | None = _Length
    target_role: Annotated[str, AfterValidator(_check_role)] | None = None

    def of(self, kind: Kind) -> tuple[str, ...] | None:
        found: tuple[str, ...] | None = getattr(self, kind)
        return found


def check(named: Iterable[Named], allowed: Allowed | None, namespace: str, installation: Installation) -> None:
    """Raise ``invalid`` for the first thing that a namespace may not use. ``allowed`` is None for a namespace without a
    list."""
    for each in named:
        patterns = _patterns(each, allowed) if allowed is not None else None
        value = resolved(each, installation)
        if patterns is not None:
            if not any(RULES[each.kind].fits(pattern, value) for pattern in patterns):
                listed = ", ".join(patterns[:5]) + (f" and {len(patterns) - 5} more" if len(patterns) > 5 else "")
                raise _refused(each, namespace, f"that namespace {namespace} may use ({listed or 'none'})")
        else:
            _check_of_account(each, value, namespace, installation)
            if installation.is_shared and each.kind not in NOT_BY_NAME:
                _check_own(each, value, namespace, installation)


def unlisted(allowed: Allowed | None) -> tuple[Kind, ...]:
    """The kinds whose things names limit once the installation has several namespaces: those without a list."""
    lists = allowed or Allowed()
    by_lists = {kind for kind in RULES if lists.of(kind) is not None} | NOT_BY_NAME
    if lists.entry_points is not None:
        by_lists |= {"spark"}  # already limited to what loads no code
    return tuple(sorted(RULES.keys() - by_lists))


def _patterns(named: Named, allowed: Allowed) -> Sequence[str] | None:
    """The patterns for a thing. Where code is limited to addresses, a property that may load code must be listed, too,
    and one with addresses of code needs no more."""
    patterns = allowed.of(named.kind)
    limits_code = named.kind == "spark" and allowed.entry_points is not None and not _has_checked_value(named.value)
    return () if patterns is None and limits_code else patterns


def _has_checked_value(key: str) -> bool:
    """Whether a Spark property loads no code, or none but the files that `Named` has one by one."""
    return is_harmless(key) or key in OF_FILES


def resolved(named: Named, installation: Installation) -> str:
    """The value, with the account of the stack in the place of the mark for it. The URL of a queue of an emulator
    becomes an ARN, too."""
    value = named.value
    if named.kind == "queues" and not value.startswith("arn:"):
        value = queue_arn(value, installation.queue_endpoint)
    parts = value.split(":", 5)
    if named.kind not in OF_ACCOUNT or len(parts) < 6 or parts[4] != OWN or not installation.account:
        return value
    return ":".join([*parts[:4], installation.account, parts[5]])


def _check_of_account(named: Named, value: str, namespace: str, installation: Installation) -> None:
    """Raise ``invalid`` for a thing that is not surely of the stack's account, and for a secret outside the folder of
    its namespace."""
    parts = value.split(":", 5)
    if named.kind in OF_ACCOUNT and installation.account and (len(parts) < 6 or parts[4] != installation.account):
        what = f"of the account {installation.account}"
        if named.kind == "queues":
            what += ", by the URL that SQS gives it (https://sqs.<region>.amazonaws.com/<account>/<name>)"
        raise _refused(named, namespace, what)
    if named.kind == "secrets" and not is_of_namespace(value, namespace):
        folders = f"/sluice-target/{namespace}/... or sluice-target-{namespace}/..."
        raise _refused(named, namespace, f"of namespace {namespace}, {folders}")


def _check_own(named: Named, value: str, namespace: str, installation: Installation) -> None:
    """Raise ``invalid`` for what a namespace may not name by itself in an installation with several namespaces."""
    folder = f"{installation.code}{namespace}/"
    match named.kind:
        case "applications":
            fits, what = value == installation.application, f"of the stack ({installation.application or 'none'})"
        case "entry_points":
            fits, what = _is_below(folder, value), f"of namespace {namespace}, below {folder}"
        case "spark":
            fits, what = _has_checked_value(value), "that is known to load no code"
        case "hosts" | "actions":
            fits, what = False, f"that the allow-list of namespace {namespace} names"
        case kind:
            fits, what = owner_of(name_of(kind, value)) == namespace, _own_name(namespace)
            fits &= kind != "execution_roles" or value.split(":", 5)[4] == installation.account
    if not fits:
        hint = f"the installation has several namespaces; {_hint(named.kind, namespace)}"
        raise _refused(named, namespace, what, hint)


def _own_name(namespace: str) -> str:
    start = f"{PREFIX}{namespace}"
    return f"of namespace {namespace}, named {start}-<one word> or {start}--<any text>"


def owner_of(name: str) -> str:
    """The namespace that the name of a thing holds; empty for none."""
    if not name.startswith(PREFIX):
        return ""
    rest = name.removeprefix(PREFIX)
    return rest.partition("--")[0] if "--" in rest else rest.rpartition("-")[0]


def name_of(kind: str, value: str) -> str:
    """The name of a thing in the form that patterns have, without type, path, version or alias."""
    if kind == "metrics":
        return value.partition("/")[0]  # the metric namespace, or its first part
    resource = value.split(":", 5)[-1] if value.startswith("arn:") else value
    match kind:
        case "functions" | "state_machines":
            return resource.partition(":")[2].partition(":")[0]
        case "buses":
            return resource.removeprefix("event-bus/")
        case "execution_roles" | "engines":
            return resource.rpartition("/")[2]
    return resource


def is_of_namespace(secret: str, namespace: str) -> bool:
    """Whether the name in the ARN of a secret or a parameter begins with the folder of a namespace. The folder is
    compared whole, so that no namespace reaches the secrets of one with a longer name."""
    _, _, service, _, _, name = secret.split(":", 5)
    if service == "ssm":
        return name.startswith(f"parameter/sluice-target/{namespace}/")
    return name.startswith(f"secret:sluice-target-{namespace}/")


def _refused(named: Named, namespace: str, what: str, hint: str = "") -> SluiceError:
    word = RULES[named.kind].word
    article = "an" if word[0] in "aeioAE" else "a"
    return invalid(
        named.field, f"{article} {word} {what}", named.got or named.value, hint or _hint(named.kind, namespace)
    )


def _hint(kind: Kind, namespace: str) -> str:
    return f"an administrator of the installation can add it to {kind}: sluice allowed {namespace}"


def host_of(url: str) -> str:
    """The host of a URL, as patterns have it."""
    return (urlsplit(url).hostname or "").rstrip(".").lower()


def own_arn(service: str, resource: str) -> str:
    """The ARN of a thing of the stack's own account and region, of which a document has the name alone."""
    return f"arn:{OWN}:{service}:{OWN}:{OWN}:{resource}"
