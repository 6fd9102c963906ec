"""The Lambda behind ``Custom::SluiceApp``: an app that is deployed, changed and deleted with a CloudFormation stack.

It signs its requests with its own role, so what a stack may do is what that role may do. Its environment has
``SLUICE_API_URL``. `contrib/cloudformation/provider.yaml` deploys it. A resource has these properties:

    Namespace, App     the names of the app
    Document           the app document: YAML or JSON as text, or an object
    UpdateSchedules    "true" or "false"; without it, what the installation has set
    Restart            "true": schedules that change drop what waits
    Adopt              "true": take over an app that exists. It stays when the stack is deleted.

Lambda may deliver a request of CloudFormation again, also after a later one. So the app has a tag with the last
requests that were carried out, and each write expects the version of the app that was read. A request changes nothing
once another one has followed it, or CloudFormation has its answer.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sluice import documents, uploads
from sluice.client import Answer, Client, Document
from sluice.errors import ApiRefused, Failure, NotReachable, Problem, WrongUsage
from sluice.names import APP, NAMESPACE, path_of
from sluice.refusals import ChangedMeanwhile, NotFound, Unavailable

TAG = "cloudformation"  # the key of the tag of an app that a stack manages
KEPT = 3  # requests that the tag names, the last one at the end
PROPERTIES = ("Namespace", "App", "Document", "UpdateSchedules", "Restart", "Adopt")
OF_AWS = ("ServiceToken", "ServiceTimeout")  # properties of every custom resource
MAX_TEXT = 1_000  # characters of a reason, and of the plan: an answer has at most 4,096 bytes
RESERVE = 30  # seconds of an invocation that are kept for the answer
PAUSE = 5.0  # seconds between two tries, while the API does not answer or the app changes
TRIES = 3  # of the answer to CloudFormation
ANSWER_SECONDS = 20  # that a try may take
_ID = re.compile(r"(?P<name>[^@]+)@(?P<mark>[0-9a-f]{12})(?P<stays>\.adopted)?")
_OF_TAG = re.compile(r"(?P<resource>.+) (?P<mark>[0-9a-f]{12}) (?P<requests>[0-9a-f]{12}(?:,[0-9a-f]{12})*)")
_SHORT = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack, by its physical id: the app, and a mark that only this creation of it has. One that
    ``stays`` existed before the stack, and outlives it."""

    name: str
    mark: str
    stays: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}@{self.mark}{'.adopted' if self.stays else ''}"

    @classmethod
    def of(cls, physical_id: str) -> Resource | None:
        """The resource of a physical id; None for one that this Lambda has not made."""
        found = _ID.fullmatch(physical_id)
        return None if found is None else cls(found["name"], found["mark"], found["stays"] is not None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the properties of a resource ask for."""

    name: str
    source: documents.Source
    query: Mapping[str, bool | None]
    adopts: bool

    @property
    def path(self) -> str:
        return path_of(APP, self.name)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a request, as CloudFormation is told."""

    id: str
    reason: str
    data: Mapping[str, str]
    failed: bool = False


class Stale(Exception):
    """A later request has followed the one that was delivered again. Nothing is answered."""


def handler(event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
    """Handle a request of CloudFormation, and send it the answer. ``{"RequestType": "Drift", "ResourceProperties":
    {...}}``, sent by a user, answers what a deployment of these properties would change now, and stores nothing."""
    left = getattr(context, "get_remaining_time_in_millis", lambda: 900_000)
    ends = time.monotonic() + left() / 1000 - RESERVE
    if event["RequestType"] == "Drift":
        return drift(Client.from_environment(), event)
    try:
        if is_over(event):
            raise Stale
        done = handled(Client.from_environment(), event, lambda: time.monotonic() < ends)
    except Stale:
        return {"Status": "STALE"}
    except Exception as error:  # without an answer, the stack would wait for an hour
        traceback.print_exc()
        done = _failed(event, error if isinstance(error, Failure) else Failure(f"{type(error).__name__}: {error}"))
    answer = answer_to(event, done)
    send(str(event["ResponseURL"]), answer)
    return answer


def is_over(event: Mapping[str, Any], stacks: Any = None) -> bool:
    """Whether CloudFormation has the answer to a create or an update already. ``stacks`` is its client. If it does not
    answer, the request counts as open: what the app's tag says decides then."""
    if event["RequestType"] == "Delete":  # the mark of the resource decides
        return False
    # Imported here because the zip has no botocore: it is part of Lambda's runtime.
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import get_session

    try:
        found = (stacks or get_session().create_client("cloudformation")).describe_stack_resource(
            StackName=event["StackId"], LogicalResourceId=event["LogicalResourceId"]
        )
    except (BotoCoreError, ClientError) as error:
        print(json.dumps({"message": "the resource could not be read", "error": str(error)}))
        return False
    return not str(found["StackResourceDetail"]["ResourceStatus"]).endswith("_IN_PROGRESS")


def handled(
    client: Client,
    event: Mapping[str, Any],
    has_time: Callable[[], bool] = lambda: True,
    pause: Callable[[float], None] = time.sleep,
) -> Done:
    """Carry out a request, and return what became of it. It is tried again while the API cannot be reached or the app
    changes, as long as there is time. Raises `Stale`."""
    while True:
        try:
            return _deleted(client, event) if event["RequestType"] == "Delete" else _deployed(client, event)
        except (NotReachable, Unavailable, ChangedMeanwhile) as failure:
            if not has_time():
                return _failed(event, failure)
            pause(PAUSE)
        except Failure as failure:
            return _failed(event, failure)


def drift(client: Client, event: Mapping[str, Any]) -> dict[str, Any]:
    """What a deployment would change now: ``{"drifted": bool, "plan": text}``."""
    wanted = wanted_by(event["ResourceProperties"])
    found = _found(client, wanted)
    tags = (found.body.get("tags") or {}) if found is not None else {}
    own = {TAG: tags[TAG]} if TAG in tags else {}
    report = _sent(client, wanted, own, {**wanted.query, "dry_run": True}, None)
    return {"drifted": bool(_changes(report)), "plan": plan_of(report)}


def _deployed(client: Client, event: Mapping[str, Any]) -> Done:
    """Deploy the app of a create or an update."""
    wanted = wanted_by(event["ResourceProperties"])
    found = _found(client, wanted)
    tagged = _tag_of(found.body if found is not None else {})
    resource = _resource(event, wanted, found, tagged)
    is_own = tagged is not None and tagged["mark"] == resource.mark
    if tagged is not None and not is_own and not wanted.adopts:
        raise _taken(wanted.name, tagged["resource"])
    requests = _requests(tagged["requests"].split(",") if tagged is not None and is_own else [], event)
    if found is None:
        _require_namespace(client, wanted.name)
    tag = f"{_resource_of(event)} {resource.mark} {','.join(requests)}"
    report = _sent(client, wanted, {TAG: tag}, wanted.query, None if found is None else found.etag)
    return Done(resource.id, _summary(wanted.name, report), _data(wanted.name, report))


def _resource(event: Mapping[str, Any], wanted: Wanted, found: Answer | None, tagged: re.Match[str] | None) -> Resource:
    """The resource that a request creates, creates again, or updates. Raises `WrongUsage` if it would create an app
    that exists, unless it adopts it."""
    before = Resource.of(str(event.get("PhysicalResourceId") or ""))
    if before is not None and before.name == wanted.name:
        return before
    made, adopted = Resource(wanted.name, _mark(event)), Resource(wanted.name, _mark(event, "adopted"), stays=True)
    for each in (made, adopted):
        if tagged is not None and tagged["mark"] == each.mark:
            return each  # the request is delivered again
    if found is not None and not wanted.adopts:
        raise _exists(wanted.name, found.body, tagged)
    return made if found is None else adopted


def _requests(last: list[str], event: Mapping[str, Any]) -> list[str]:
    """The last requests with this one at the end. Raises `Stale` if another one has followed it."""
    request = _short(event["RequestId"])
    if request in last[:-1]:
        raise Stale
    return [*(each for each in last if each != request), request][-KEPT:]


def _deleted(client: Client, event: Mapping[str, Any]) -> Done:
    """Delete the app of a resource, unless something else has it by now."""
    id_ = str(event.get("PhysicalResourceId") or "")
    resource = Resource.of(id_)
    if resource is None:
        return Done(id_, "nothing was deployed, so nothing is deleted", {})
    if resource.stays:
        return Done(id_, f"app {resource.name} existed before the stack, so it stays", {})
    try:
        found = client.request("GET", path_of(APP, resource.name))
    except NotFound:
        return Done(id_, f"app {resource.name} is deleted already", {})
    tagged = _tag_of(found.body)
    if tagged is None or tagged["mark"] != resource.mark:
        by = f"stack {tagged['resource']} deployed it" if tagged else "it was deployed without the stack"
        return Done(id_, f"app {resource.name} stays: {by} since", {})
    with suppress(NotFound):  # another delivery of the same request has deleted it
        client.delete(path_of(APP, resource.name), found.etag)
    return Done(id_, f"app {resource.name} is deleted; runs that are active continue", {})


def _found(client: Client, wanted: Wanted) -> Answer | None:
    """The stored app with its ETag; None if there is none."""
    try:
        return client.request("GET", wanted.path)
    except NotFound:
        return None


def _require_namespace(client: Client, name: str) -> None:
    """Create the namespace of an app if it does not exist, as `sluice apply` does."""
    path = path_of(NAMESPACE, name.partition(".")[0])
    try:
        client.get(path)
    except NotFound:
        client.put(path, {})


def _sent(
    client: Client, wanted: Wanted, tags: Mapping[str, str], query: Mapping[str, bool | None], etag: str | None
) -> Document:
    """Deploy the document with more tags, and return the report. An error names the line of its field."""
    namespace, _, app = wanted.name.partition(".")
    given = wanted.source.document
    own = given.get("tags")
    named = {"namespace": namespace, "app": app, "tags": {**own, **tags} if isinstance(own, dict) else own or tags}
    try:
        return uploads.deploy(client, wanted.path, {**given, **named}, query, if_match=etag)
    except ApiRefused as refused:
        refused.problems = tuple(_placed(each, wanted.source) for each in refused.problems)
        raise


def _placed(problem: Problem, source: documents.Source) -> Problem:
    line = source.line_of(problem.field) if problem.field else None
    where = problem.field if line is None else f"Document, line {line}: {problem.field}"
    return Problem(problem.message, where, problem.hint, problem.code)


def wanted_by(properties: Mapping[str, Any]) -> Wanted:
    """What the properties of a resource ask for. Raises `WrongUsage` for wrong ones."""
    unknown = [name for name in properties if name not in (*PROPERTIES, *OF_AWS)]
    if unknown:
        hint = f"use {', '.join(PROPERTIES)}"
        raise WrongUsage(f"expected a property of Custom::SluiceApp, got {unknown[0]}", unknown[0], hint)
    namespace, app = (_name(properties, field) for field in ("Namespace", "App"))
    query = {"update_schedules": _flag(properties, "UpdateSchedules"), "restart": _flag(properties, "Restart") or None}
    return Wanted(f"{namespace}.{app}", _source(properties), query, bool(_flag(properties, "Adopt")))


def _name(properties: Mapping[str, Any], field: str) -> str:
    value = properties.get(field)
    if not isinstance(value, str) or not value or not re.fullmatch(r"[^./@\s]+", value):
        got = "nothing" if value is None else repr(value)
        raise WrongUsage(f"expected one name without a dot, got {got}", field, f"write `{field}: name`")
    return value


def _flag(properties: Mapping[str, Any], field: str) -> bool | None:
    """A property that is true or false. CloudFormation sends both as texts."""
    value = properties.get(field)
    text = _SHORT.get(value) if isinstance(value, bool) else value
    if text not in (None, "true", "false"):
        raise WrongUsage(f'expected "true" or "false", got {value!r}', field, "write one of the two, or leave it out")
    return None if text is None else text == "true"


def _source(properties: Mapping[str, Any]) -> documents.Source:
    value = properties.get("Document")
    if isinstance(value, str):
        return documents.text_source("Document", value)
    if isinstance(value, dict):
        return documents.Source("Document", value, None)
    got = "nothing" if value is None else type(value).__name__
    hint = "write the app document as YAML or JSON: `Document: |`, then the lines of the file"
    raise WrongUsage(f"expected an app document, got {got}", "Document", hint)


def _tag_of(app: Mapping[str, Any]) -> re.Match[str] | None:
    """The stack that has deployed an app, its mark and its last requests; None if none has."""
    return _OF_TAG.fullmatch(str((app.get("tags") or {}).get(TAG, "")))


def _exists(name: str, app: Mapping[str, Any], tagged: re.Match[str] | None) -> WrongUsage:
    by = (app.get("deployed") or {}).get("by") or app.get("by") or "somebody"
    who = f"stack {tagged['resource']}" if tagged is not None else str(by)
    hint = 'set `Adopt: "true"` to take it over, or choose another name'
    return WrongUsage(f"expected no app {name} yet, got one that {who} has deployed", "App", hint)


def _taken(name: str, resource: str) -> WrongUsage:
    hint = 'remove it from one of the two stacks, or set `Adopt: "true"` to take it over'
    return WrongUsage(f"expected app {name} as this stack has deployed it, got that of stack {resource}", "App", hint)


def _resource_of(event: Mapping[str, Any]) -> str:
    """The name of the stack and that of the resource in it: ``orders/Shop``."""
    stack = str(event["StackId"]).rpartition(":")[2].split("/")
    return f"{stack[1] if len(stack) > 1 else stack[0]}/{event['LogicalResourceId']}"


def _mark(event: Mapping[str, Any], *how: str) -> str:
    """The mark of a creation: the same for each delivery of its request, and for no other."""
    return _short(event["StackId"], event["LogicalResourceId"], event["RequestId"], *how)


def _short(*parts: Any) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:12]


def _changes(report: Mapping[str, Any]) -> dict[str, list[str]]:
    return {change: report[change] for change in ("created", "replaced", "deleted") if report.get(change)}


def _summary(name: str, report: Mapping[str, Any]) -> str:
    counts = [f"{len(parts)} {change}" for change, parts in _changes(report).items()]
    return f"{name}: {', '.join(counts) or 'nothing changes'}"


def plan_of(report: Mapping[str, Any]) -> str:
    """What a deployment changes, a line for each part, with what becomes of the work in flight."""
    effects = report.get("effects") or {}
    lines = []
    for change, parts in _changes(report).items():
        for part in parts:
            effect = effects.get(part)
            lines.append(f"{change} {part}" + (f": {effect['text']}" if effect else ""))
    return _cut("\n".join(lines))


def _data(name: str, report: Mapping[str, Any]) -> dict[str, str]:
    """The attributes that a template reads by ``Fn::GetAtt``."""
    changes = _changes(report)
    counts = {change.capitalize(): str(len(changes.get(change, ()))) for change in ("created", "replaced", "deleted")}
    return {"Name": name, **counts, "Plan": plan_of(report)}


def _failed(event: Mapping[str, Any], failure: Failure) -> Done:
    """A request that failed, with its reasons. The id of a create that failed is that of the app, because parts of it
    may be stored: CloudFormation deletes it then."""
    reasons = [
        f"{f'{each.field}: ' if each.field else ''}{each.message}{f' ({each.hint})' if each.hint else ''}"
        for each in failure.problems
    ]
    return Done(_id_of_failure(event), _cut("; ".join(reasons)), {}, failed=True)


def _id_of_failure(event: Mapping[str, Any]) -> str:
    known = event.get("PhysicalResourceId")
    if known:
        return str(known)
    try:
        return Resource(wanted_by(event["ResourceProperties"]).name, _mark(event)).id
    except WrongUsage:
        return f"none-{_mark(event)}"


def _cut(text: str) -> str:
    """A text without control characters, in at most `MAX_TEXT` bytes."""
    clean = "".join(each if each == "\n" or each.isprintable() else "?" for each in text).encode()
    return clean.decode() if len(clean) <= MAX_TEXT else clean[: MAX_TEXT - 3].decode(errors="ignore") + "..."


def answer_to(event: Mapping[str, Any], done: Done) -> dict[str, Any]:
    """The answer as CloudFormation expects it."""
    return {
        "Status": "FAILED" if done.failed else "SUCCESS",
        "Reason": done.reason,
        "PhysicalResourceId": done.id,
        **{field: event[field] for field in ("StackId", "RequestId", "LogicalResourceId")},
        "Data": dict(done.data),
    }


def send(url: str, answer: Mapping[str, Any], pause: Callable[[float], None] = time.sleep) -> None:
    """Put the answer to the address that CloudFormation has signed. Raises `NotReachable` after the last try: Lambda
    delivers the request again then, and the answer is the same."""
    content = json.dumps(answer).encode()
    print(json.dumps({"message": "answer", **answer}))
    error: Exception | None = None
    for attempt in range(TRIES):
        # The address is signed without a content type.
        request = urllib.request.Request(url, content, {"Content-Type": ""}, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):
                return
        except (urllib.error.URLError, OSError) as failed:
            error = failed
            pause(2.0**attempt)
    raise NotReachable(f"expected CloudFormation to take the answer, got {error}")
