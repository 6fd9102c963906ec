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
from sluice.client import LATER, Answer, Client, Document
from sluice.errors import ApiRefused, Failure, NotReachable, Problem, WrongUsage
from sluice.names import APP, NAMESPACE, path_of
from sluice.refusals import ChangedMeanwhile, NotFound, Unavailable

TAG = "cloudformation"  # the key of the tag of an app that a stack manages
KEPT = 3  # requests that the tag names, the last one at the end
PROPERTIES = ("Namespace", "App", "Document", "UpdateSchedules", "Restart", "Adopt")
OF_AWS = ("ServiceToken", "ServiceTimeout")  # properties of every custom resource
MAX_TEXT = 1_000  # characters of a reason, and of the plan: an answer has at most 4,096 bytes
RESERVE = 240  # seconds of an invocation that are left when the last try begins: it has requests of up to 30 seconds
PAUSE = 5.0  # seconds between two tries, while the API does not answer or the app changes
TRIES = 3  # of the answer to CloudFormation
ANSWER_SECONDS = 20  # that a try may take
_ID = re.compile(r"(?P<name>[^@]+)@(?P<mark>[0-9a-f]{12})(?P<stays>\.adopted)?")
_OF_TAG = re.compile(
    r"(?P<resource>.+) (?P<stack>[0-9a-f]{12}) (?P<mark>[0-9a-f]{12})(?P<stays>\.adopted)? "
    r"(?P<requests>[0-9a-f]{12}(?:,[0-9a-f]{12})*)"
)
# The status of a resource while CloudFormation waits for the answer to a request.
_OPEN = {"Create": ("CREATE_IN_PROGRESS",), "Update": ("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS")}
_SHORT = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack, by its physical id: the app, and a mark that only this creation of it has. One that
    ``stays`` existed before the stack, and outlives it."""

    name: str
    mark: str
    stays: bool = False

    @property
    def ending(self) -> str:
        return f"{self.mark}{'.adopted' if self.stays else ''}"

    @property
    def id(self) -> str:
        return f"{self.name}@{self.ending}"

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
    """The result of a request, as the answer to CloudFormation says it."""

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
        done = handled(Client.from_environment(), event, lambda: time.monotonic() < ends, waiting=Waiting(event))
    except Stale:
        return {"Status": "STALE"}
    except Exception as error:  # without an answer, the stack would wait for an hour
        traceback.print_exc()
        done = _failed(event, error if isinstance(error, Failure) else Failure(f"{type(error).__name__}: {error}"))
    answer = answer_to(event, done)
    send(str(event["ResponseURL"]), answer)
    return answer


class Waiting:
    """Whether CloudFormation still waits for the answer to a request, by the status of the resource. It waits no more
    once it has the answer, has given the request up, or has sent another one. If its API does not answer, it counts as
    waiting: what the app's tag says decides then. ``stacks`` is a client of CloudFormation."""

    def __init__(self, event: Mapping[str, Any], stacks: Any = None) -> None:
        self._event, self._stacks = event, stacks
        self._since: Any = None

    def __call__(self) -> bool:
        if self._event["RequestType"] == "Delete":  # the mark of the resource decides
            return True
        # Imported here because the zip has no botocore: it is part of Lambda's runtime.
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import get_session

        try:
            self._stacks = self._stacks or get_session().create_client("cloudformation")
            named = {"StackName": self._event["StackId"], "LogicalResourceId": self._event["LogicalResourceId"]}
            found = self._stacks.describe_stack_resource(**named)["StackResourceDetail"]
        except (BotoCoreError, ClientError) as error:
            print(json.dumps({"message": "the resource could not be read", "error": str(error)}))
            return True
        since = found.get("LastUpdatedTimestamp")
        self._since = self._since or since
        return found["ResourceStatus"] in _OPEN[self._event["RequestType"]] and since == self._since


def handled(
    client: Client,
    event: Mapping[str, Any],
    has_time: Callable[[], bool] = lambda: True,
    pause: Callable[[float], None] = time.sleep,
    waiting: Callable[[], bool] = lambda: True,
) -> Done:
    """Carry out a request, and return what became of it. It is tried again while the API cannot be reached or the app
    changes, as long as there is time. An app that was created for a request which CloudFormation has given up meanwhile
    is deleted again. Raises `Stale` if CloudFormation waits for no answer."""

    def patient(seconds: float) -> None:
        if not has_time():
            raise NotReachable("expected the deployment to end in time, got one that goes on")
        pause(seconds)

    while True:
        try:
            if event["RequestType"] == "Delete":
                return _deleted(client, event)
            if not waiting():
                raise Stale
            done = _deployed(client, event, patient)
            if event["RequestType"] == "Create" and not waiting():
                _deleted(client, {**event, "PhysicalResourceId": done.id})
                raise Stale
            return done
        except Failure as failure:
            if not (_is_passing(failure) and has_time()):
                return _failed(event, failure)
            pause(PAUSE)


def _is_passing(failure: Failure) -> bool:
    """Whether the same request may succeed later. Errors of API Gateway itself have codes such as ``http_504``."""
    if isinstance(failure, ApiRefused) and failure.code == f"http_{failure.status}":
        return failure.status in LATER
    return isinstance(failure, NotReachable | Unavailable | ChangedMeanwhile)


def drift(client: Client, event: Mapping[str, Any]) -> dict[str, Any]:
    """What a deployment would change now: ``{"drifted": bool, "plan": text}``."""
    wanted = wanted_by(event["ResourceProperties"])
    found = _found(client, wanted)
    tags = (found.body.get("tags") or {}) if found is not None else {}
    own = {TAG: tags[TAG]} if TAG in tags else {}
    report = _sent(client, wanted, own, {**wanted.query, "dry_run": True}, None)
    return {"drifted": bool(_changes(report)), "plan": plan_of(report)}


def _deployed(client: Client, event: Mapping[str, Any], pause: Callable[[float], None]) -> Done:
    """Deploy the app of a create or an update."""
    wanted = wanted_by(event["ResourceProperties"])
    found = _found(client, wanted)
    tagged = _tag_of(found.body if found is not None else {})
    is_own = tagged is not None and _is_of(tagged, event)
    resource = _resource(event, wanted, found, tagged if is_own else None)
    if tagged is not None and not is_own and not wanted.adopts:
        raise _taken(wanted.name, tagged["resource"])
    requests = _requests(tagged["requests"].split(",") if tagged is not None and is_own else [], event)
    tag = f"{_resource_of(event)} {_short(event['StackId'])} {resource.ending} {','.join(requests)}"
    if found is None:
        _require_namespace(client, wanted, {TAG: tag})
    report = _sent(client, wanted, {TAG: tag}, wanted.query, None if found is None else found.etag, pause)
    return Done(resource.id, _summary(wanted.name, report), _data(wanted.name, report))


def _resource(event: Mapping[str, Any], wanted: Wanted, found: Answer | None, own: re.Match[str] | None) -> Resource:
    """The resource that a request creates or updates. ``own`` is the tag of the app if this resource of this stack has
    deployed it: then it stays the same. Raises `WrongUsage` if it would create an app that exists, unless it adopts
    it."""
    before = Resource.of(str(event.get("PhysicalResourceId") or ""))
    if before is not None and before.name == wanted.name:
        return before
    if own is not None:
        return Resource(wanted.name, own["mark"], own["stays"] is not None)
    if found is None:
        return Resource(wanted.name, _mark(event))
    if not wanted.adopts:
        raise _exists(wanted.name, found.body)
    return Resource(wanted.name, _mark(event, "adopted"), stays=True)


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
    name = resource.name if resource is not None else _named_by(event)
    if name is None:
        return Done(id_, "nothing was deployed, so nothing is deleted", {})
    if resource is not None and resource.stays:
        return Done(id_, f"app {name} existed before the stack, so it stays", {})
    try:
        found = client.request("GET", path_of(APP, name))
    except NotFound:
        return Done(id_, f"app {name} is deleted already", {})
    tagged = _tag_of(found.body)
    if tagged is None or not _is_deletable(tagged, resource, event):
        by = f"stack {tagged['resource']} deployed it" if tagged else "it was deployed without the stack"
        return Done(id_, f"app {name} stays: {by} since", {})
    with suppress(NotFound):  # another delivery of the same request has deleted it
        client.delete(path_of(APP, name), found.etag)
    return Done(id_, f"app {name} is deleted; runs that are active continue", {})


def _is_deletable(tagged: re.Match[str], resource: Resource | None, event: Mapping[str, Any]) -> bool:
    """Whether an app is that of a resource. CloudFormation gives up a create before it is answered, and makes up an id
    then: the app is that of the resource of this stack, unless that has adopted it."""
    if resource is not None:
        return tagged["mark"] == resource.mark
    return _is_of(tagged, event) and tagged["stays"] is None


def _named_by(event: Mapping[str, Any]) -> str | None:
    """The name of the app in the properties of a resource; None if they are wrong."""
    try:
        return wanted_by(event.get("ResourceProperties") or {}).name
    except WrongUsage:
        return None


def _found(client: Client, wanted: Wanted) -> Answer | None:
    """The stored app with its ETag; None if there is none."""
    try:
        return client.request("GET", wanted.path)
    except NotFound:
        return None


def _require_namespace(client: Client, wanted: Wanted, tags: Mapping[str, str]) -> None:
    """Create the namespace of an app if it does not exist, as `sluice apply` does: after a dry run."""
    path = path_of(NAMESPACE, wanted.name.partition(".")[0])
    try:
        client.get(path)
    except NotFound:
        _sent(client, wanted, tags, {**wanted.query, "dry_run": True}, None)
        client.put(path, {})


def _sent(
    client: Client,
    wanted: Wanted,
    tags: Mapping[str, str],
    query: Mapping[str, bool | None],
    etag: str | None,
    pause: Callable[[float], None] = time.sleep,
) -> Document:
    """Deploy the document with more tags, and return the report. An error names the line of its field."""
    namespace, _, app = wanted.name.partition(".")
    given = wanted.source.document
    own = given.get("tags")
    named = {"namespace": namespace, "app": app, "tags": {**own, **tags} if isinstance(own, dict) else own or tags}
    try:
        return uploads.deploy(client, wanted.path, {**given, **named}, query, pause, etag)
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


def _is_of(tagged: re.Match[str], event: Mapping[str, Any]) -> bool:
    """Whether an app was deployed by the resource of a request."""
    return (tagged["stack"], tagged["resource"]) == (_short(event["StackId"]), _resource_of(event))


def _exists(name: str, app: Mapping[str, Any]) -> WrongUsage:
    by = (app.get("deployed") or {}).get("by") or app.get("by") or "somebody"
    tagged = _tag_of(app)
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
    known, name = str(event.get("PhysicalResourceId") or ""), _named_by(event)
    before = Resource.of(known)
    if event["RequestType"] == "Delete" or name is None or (before is not None and before.name == name):
        return known or f"none-{_mark(event)}"
    return Resource(name, _mark(event)).id  # of a create, or of a replacement: CloudFormation deletes it


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
