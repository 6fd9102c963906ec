"""``Custom::SluiceApp`` against the real routes: an app that lives with a stack (O13)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from chalicelib.wiring import ports
from infra import yaml_tags
from sluice import Client, cloudformation, uploads
from sluice.signing import Broken, Reply
from tests.support.http_server import QuietHandler, QuietServer, served
from tests.support.stacks import Stack
from tests.web.conftest import Api, installation
from tests.web.test_client_calls import Routes

CONTRIB = Path(__file__).parents[2] / "contrib"
SQS = {"target": {"type": "sqs", "queue_url": "https://sqs.example/target"}}
SHOP = "/v1/namespaces/demo/apps/shop"


def document(*hours: int, **more: Any) -> str:
    """An app document with a schedule for each hour."""
    schedules = {
        f"at-{hour}": {
            "workflow": "send",
            "trigger": {"type": "time", "expression": f"0 {hour} * * *"},
            "enabled": True,
        }
        for hour in hours
    }
    return yaml.safe_dump({"workflows": {"send": SQS}, "schedules": schedules, **more})


@pytest.fixture
def api() -> Iterator[Api]:
    with installation() as made:
        yield made


class Lambda:
    """The function of the custom resource. A delivery may end early: its request number ``dies_at`` is not answered,
    and nothing is sent after it."""

    def __init__(self, api: Api) -> None:
        self.api, self.routes = api, Routes(api)
        self.dies_at: int | None = None
        self.tried = 0
        self.sent: list[tuple[str, str]] = []

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        self.tried += 1
        self.sent.append((method, urlsplit(url).path))
        reply = self.routes.send(method, url, headers, content)
        if self.dies_at is not None and self.tried >= self.dies_at:
            raise Broken("expected an answer, got none")
        return reply

    def __call__(self, event: dict[str, Any]) -> cloudformation.Done:
        client = Client("http://sluice.test", self, lambda seconds: self.api.work())
        return cloudformation.handled(client, event, pause=lambda seconds: self.api.work())

    def dying(self, event: dict[str, Any], at: int) -> None:
        """Deliver a request to an invocation that ends at its request number ``at``."""
        self.dies_at, self.tried = at, 0
        client = Client("http://sluice.test", self, lambda seconds: None)
        try:
            cloudformation.handled(client, event, lambda: False, lambda seconds: None)
        except cloudformation.Stale:
            pass
        finally:
            self.dies_at = None


def stack(api: Api, name: str = "orders") -> Stack:
    return Stack(Lambda(api), name)


def hours(api: Api) -> list[str]:
    return sorted(item["name"].rpartition("-")[2] for item in api.get(f"{SHOP}/schedules")["items"])


def is_gone(api: Api) -> bool:
    return api.send("GET", SHOP).status_code == 404


def test_o13_an_app_is_created_changed_and_deleted(api: Api) -> None:
    orders = stack(api)
    assert orders.put(Namespace="demo", App="shop", Document=document(5))
    assert (orders.data["Name"], orders.data["Created"]) == ("demo.shop", "3")
    assert "created schedule demo.shop.at-5" in orders.data["Plan"].splitlines()
    assert orders.events == ["CREATE_COMPLETE: demo.shop: 3 created"]
    assert api.get(SHOP)["tags"]["cloudformation"].startswith("orders/Shop ")

    assert orders.put(Namespace="demo", App="shop", Document=document(6))
    assert orders.events[-1] == "UPDATE_COMPLETE: demo.shop: 1 created, 1 replaced, 1 deleted"
    assert hours(api) == ["6"]

    assert orders.delete()
    assert orders.events[-1] == "DELETE_COMPLETE: app demo.shop is deleted; runs that are active continue"
    assert is_gone(api)


def test_o13_a_refused_document_fails_the_stack_and_rolls_back(api: Api) -> None:
    orders = stack(api)
    wrong = document(5).replace("0 5 * * *", "0 25 * * *")
    assert not orders.put(Namespace="demo", App="shop", Document=wrong)
    failed, rolled_back = orders.events
    assert failed.startswith("CREATE_FAILED: Document, line ")
    assert "schedules.at-5.trigger.expression" in failed
    assert rolled_back == "DELETE_COMPLETE: app demo.shop is deleted already"

    assert orders.put(Namespace="demo", App="shop", Document=document(5))
    assert not orders.put(Namespace="demo", App="shop", Document=wrong)
    assert [line.partition(":")[0] for line in orders.events[-2:]] == ["UPDATE_FAILED", "UPDATE_COMPLETE"]
    assert hours(api) == ["5"]


def test_o13_values_of_an_object_are_texts_as_aws_sends_them(api: Api) -> None:
    body = yaml.safe_load(document(5))
    body["schedules"]["at-5"] |= {"priority": 7, "properties": {"depth": 3}}
    assert stack(api).put(Namespace="demo", App="shop", Document=body, Restart=False)
    stored = api.get(f"{SHOP}/schedules/at-5")
    assert (stored["priority"], stored["state"], stored["properties"]) == (7, "enabled", {"depth": "3"})


def test_o13_another_name_replaces_the_app(api: Api) -> None:
    orders = stack(api)
    assert orders.put(Namespace="demo", App="shop", Document=document(5))
    assert orders.put(Namespace="demo", App="store", Document=document(5))
    assert [line.partition(":")[0] for line in orders.events] == [
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "DELETE_COMPLETE",
    ]
    assert is_gone(api)
    assert len(api.get("/v1/namespaces/demo/apps/store/schedules")["items"]) == 1


def test_o13_an_app_of_others_is_neither_replaced_nor_deleted(api: Api) -> None:
    api.put("/v1/namespaces/demo", {})
    api.put(SHOP, yaml.safe_load(document(4)))
    orders, risk = stack(api), stack(api, "risk")
    assert not orders.put(Namespace="demo", App="shop", Document=document(5))
    assert "expected no app demo.shop yet, got one that" in orders.events[0]
    assert "set `Adopt:" in orders.events[0]
    assert orders.events[1] == "DELETE_COMPLETE: app demo.shop stays: it was deployed without the stack since"
    assert hours(api) == ["4"]

    assert orders.put(Namespace="demo", App="shop", Document=document(5), Adopt=True)
    assert not risk.put(Namespace="demo", App="shop", Document=document(6))
    assert "got one that stack orders/Shop has deployed" in risk.events[0]
    assert risk.events[1] == "DELETE_COMPLETE: app demo.shop stays: stack orders/Shop deployed it since"
    assert orders.delete()
    assert orders.events[-1] == "DELETE_COMPLETE: app demo.shop existed before the stack, so it stays"
    assert hours(api) == ["5"]


def test_o13_an_app_that_others_deployed_since_stays(api: Api) -> None:
    orders = stack(api)
    orders.put(Namespace="demo", App="shop", Document=document(5))
    api.put(SHOP, yaml.safe_load(document(7)))
    assert orders.delete()
    assert orders.events[-1] == "DELETE_COMPLETE: app demo.shop stays: it was deployed without the stack since"
    assert hours(api) == ["7"]


def test_o13_drift_is_what_a_deployment_would_change(api: Api) -> None:
    orders = stack(api)
    orders.put(Namespace="demo", App="shop", Document=document(5))
    client = Client("http://sluice.test", Routes(api))
    asked = {"RequestType": "Drift", "ResourceProperties": orders.properties}
    assert cloudformation.drift(client, asked) == {"drifted": False, "plan": ""}
    api.delete(f"{SHOP}/schedules/at-5")
    before = api.everything()
    assert cloudformation.drift(client, asked) == {"drifted": True, "plan": "created schedule demo.shop.at-5"}
    assert api.everything() == before


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"App": "shop"}, "Namespace: expected one name without a dot, got nothing"),
        ({"Namespace": "demo", "App": "a.b"}, "App: expected one name without a dot, got 'a.b'"),
        ({"Namespace": "demo", "App": "shop"}, "Document: expected an app document, got nothing"),
        ({"Namespace": "demo", "App": "shop", "Document": "- 1"}, "Document: expected an app document, got a list"),
        ({"Namespace": "demo", "App": "shop", "Document": "a: [1"}, "Document, line 1: expected YAML"),
        ({"Namespace": "demo", "App": "shop", "Document": "a: 1"}, "unknown field 'a'"),
        (
            {"Namespace": "demo", "App": "shop", "Document": "{}", "Restart": "yes"},
            'Restart: expected "true" or "false"',
        ),
        (
            {"Namespace": "demo", "App": "shop", "Documents": "{}"},
            "Documents: expected a property of Custom::SluiceApp",
        ),
        ({"Namespace": "demo", "App": "shop", "Document": "tags: 5"}, "tags"),
    ],
)
def test_o13_wrong_properties_fail_and_store_nothing(api: Api, properties: dict[str, Any], said: str) -> None:
    api.put("/v1/namespaces/demo", {})
    before = api.all_but_audit()
    orders = stack(api)
    assert not orders.put(**properties)
    assert said in orders.events[0]
    assert [line.partition(":")[0] for line in orders.events] == ["CREATE_FAILED", "DELETE_COMPLETE"]
    assert api.all_but_audit() == before


def test_o13_an_app_that_others_need_is_not_deleted(api: Api) -> None:
    orders = stack(api)
    orders.put(Namespace="demo", App="shop", Document=document(5))
    api.put(
        "/v1/namespaces/demo/apps/other",
        {
            "schedules": {
                "after": {"workflow": "demo.shop.send", "trigger": {"type": "time", "expression": "0 5 * * *"}}
            }
        },
    )
    assert not orders.delete()
    assert "got demo.shop.send used by schedule demo.other.after" in orders.events[-1]
    assert hours(api) == ["5"]


def test_o13_a_large_document_is_uploaded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(url: str, content: bytes) -> None:
        key = urlsplit(url).path.strip("/").removeprefix(f"{ports().settings.control_bucket}/")
        boto3.client("s3").put_object(Bucket=ports().settings.control_bucket, Key=key, Body=content)

    monkeypatch.setattr(uploads, "MAX_BODY", 100)
    monkeypatch.setattr(uploads, "send", put)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    follow = uploads._follow
    monkeypatch.setattr(uploads, "_follow", lambda client, path, _: follow(client, path, lambda seconds: api.work()))
    orders = stack(api)
    assert orders.put(Namespace="demo", App="shop", Document=document(5, 6))
    assert orders.put(Namespace="demo", App="shop", Document=document(6, 7))
    assert hours(api) == ["6", "7"]


@pytest.mark.parametrize("seed", range(6))
def test_o13_repeated_and_dying_deliveries_change_nothing(api: Api, seed: int) -> None:
    """Each request is delivered to invocations that die at any of their requests, then to one that answers. Any former
    request of the living resource is delivered again at any time. The app is always as the last answered request
    wanted it."""
    random = Random(seed)
    function = Lambda(api)
    orders: Stack

    def carry_out(event: dict[str, Any]) -> cloudformation.Done:
        for _ in range(random.randrange(3)):
            function.dying(event, random.randint(1, 4))
        done = function(event)
        again(event["RequestType"])
        return done

    def again(kind: str) -> None:
        """Deliver a former request once more. That of a resource that is gone has its answer."""
        former = (
            orders.sent[-4:-1]
            if kind != "Delete"
            else [each for each in orders.sent if each["RequestType"] == "Delete"]
        )
        for event in random.sample(former, min(len(former), random.randrange(3))):
            if event["StackId"] == orders.id and (kind == "Delete" or event["RequestType"] != "Create"):
                with suppress(cloudformation.Stale):
                    function(event)

    orders = Stack(carry_out)
    for step in range(8):
        wanted = sorted(random.sample(range(24), 2))
        if random.random() < 0.2:
            assert orders.delete(), orders.events
            assert is_gone(api), step
            orders = Stack(carry_out)
            continue
        wrong = random.random() < 0.2
        text = document(*wanted) + ("nonsense: 1\n" if wrong else "")
        before = None if orders.physical_id is None else hours(api)
        assert orders.put(Namespace="demo", App="shop", Document=text) is not wrong, orders.events
        if wrong:
            assert is_gone(api) if before is None else hours(api) == before
        else:
            assert hours(api) == sorted(map(str, wanted))


def test_o13_a_slow_delivery_does_not_overwrite_a_later_one(api: Api) -> None:
    """A repeated delivery reads the app, and a later request is carried out before it writes."""
    orders = stack(api)
    for hour in (5, 6):
        orders.put(Namespace="demo", App="shop", Document=document(hour))
    slow, later = Lambda(api), Stack(Lambda(api), orders.name, orders.number, orders.physical_id, orders.properties)
    send = slow.send

    def crossed(method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        if method == "PUT" and later.sent == []:
            assert later.put(Namespace="demo", App="shop", Document=document(7))
        return send(method, url, headers, content)

    slow.send = crossed  # type: ignore[method-assign]
    with pytest.raises(cloudformation.Stale):
        slow(orders.sent[-1])
    assert hours(api) == ["7"]


def test_o13_the_role_may_send_what_the_function_sends(api: Api) -> None:
    """The requests of a create, an update and a delete, and no request to another namespace."""
    template = yaml_tags.load((CONTRIB / "cloudformation/provider.yaml").read_text())
    [policy] = template["Resources"]["Role"]["Properties"]["Policies"]
    allowed = [
        each["Fn::Sub"].partition("${ApiStage}/")[2].replace("${Namespace}", "demo")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "execute-api:Invoke"
        for each in statement["Resource"]
    ]
    function = Lambda(api)
    orders = Stack(function)
    assert orders.put(Namespace="demo", App="shop", Document=document(5))
    assert orders.put(Namespace="demo", App="shop", Document=document(6))
    assert orders.delete()
    sent = {f"{method}{path}" for method, path in function.sent}
    assert {method for method, _ in function.sent} == {"GET", "PUT", "DELETE"}
    assert [each for each in sent if not any(fnmatchcase(each, pattern) for pattern in allowed)] == []
    assert not any(fnmatchcase("PUT/v1/namespaces/demo2/apps/shop", pattern) for pattern in allowed)


def test_o13_the_examples_are_deployed(api: Api) -> None:
    template = yaml_tags.load((CONTRIB / "cloudformation/shop.yaml").read_text())
    properties = template["Resources"]["Shop"]["Properties"]
    text = properties["Document"]["Fn::Sub"].replace("${Results}", "results-bucket")
    assert stack(api).put(Namespace=properties["Namespace"], App=properties["App"], Document=text)
    assert api.get(f"{SHOP}/schedules/nightly")["state"] == "enabled"
    terraform = (CONTRIB / "terraform/app.yaml").read_text()
    assert stack(api).put(Namespace="demo", App="other", Document=terraform)


class Described:
    """CloudFormation, which says the status of a resource and since when, or fails."""

    def __init__(self, *found: tuple[str, int] | None) -> None:
        self.found = list(found)

    def describe_stack_resource(self, **named: str) -> Any:
        found = self.found.pop(0)
        if found is None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStackResource")
        return {"StackResourceDetail": {"ResourceStatus": found[0], "LastUpdatedTimestamp": found[1]}}


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        ("Create", [("CREATE_IN_PROGRESS", 1)], True),
        ("Create", [("CREATE_COMPLETE", 1)], False),
        ("Create", [("CREATE_FAILED", 1)], False),
        ("Create", [("DELETE_IN_PROGRESS", 1)], False),
        ("Update", [("UPDATE_IN_PROGRESS", 1)], True),
        ("Update", [("UPDATE_COMPLETE", 1)], False),
        ("Update", [("DELETE_IN_PROGRESS", 1)], False),
        ("Update", [("UPDATE_IN_PROGRESS", 1), None, ("UPDATE_IN_PROGRESS", 1)], True),
        ("Update", [("UPDATE_IN_PROGRESS", 1), ("UPDATE_IN_PROGRESS", 2)], False),
        ("Update", [None], True),
    ],
)
def test_o13_cloudformation_waits_for_one_answer_at_a_time(kind: str, found: list[Any], expected: bool) -> None:
    event = {"RequestType": kind, "StackId": "arn", "LogicalResourceId": "Shop"}
    waiting = cloudformation.Waiting(event, Described(*found))
    assert [waiting() for _ in found][-1] is expected


def test_o13_a_create_that_was_given_up_leaves_no_app(api: Api) -> None:
    """Another resource of the stack fails while the app is deployed. CloudFormation deletes under an id of its own."""
    orders = stack(api)
    properties = {"Namespace": "demo", "App": "shop", "Document": document(5)}
    create = {**_event(orders, "Create"), "ResourceProperties": properties}
    delete = {**_event(orders, "Delete"), "ResourceProperties": properties, "PhysicalResourceId": "orders-Shop-1ABC"}
    client, answers = Client("http://sluice.test", Routes(api)), iter([True, False])
    with pytest.raises(cloudformation.Stale):  # given up while it was carried out
        cloudformation.handled(client, create, waiting=lambda: next(answers))
    assert is_gone(api)

    cloudformation.handled(client, create)  # given up after its last look
    assert cloudformation.handled(client, delete).reason == "app demo.shop is deleted; runs that are active continue"
    assert is_gone(api)
    assert cloudformation.handled(client, delete).reason == "app demo.shop is deleted already"

    api.put(SHOP, yaml.safe_load(document(4)))
    adopted = {**create, "ResourceProperties": {**properties, "Adopt": "true"}}
    assert not cloudformation.handled(client, adopted).failed
    assert "stays" in cloudformation.handled(client, delete).reason
    assert hours(api) == ["5"]


def _event(orders: Stack, kind: str) -> dict[str, Any]:
    return {"RequestType": kind, "StackId": orders.id, "LogicalResourceId": "Shop", "RequestId": kind}


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_o13_an_error_of_the_gateway_is_tried_again(api: Api, status: int) -> None:
    orders, function = stack(api), Lambda(api)
    send, refused = function.send, []

    def gateway(method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        if method in ("PUT", "DELETE") and len(refused) < 3:
            refused.append(method)
            return Reply(status, {}, b'{"message": "Endpoint request timed out"}')
        return send(method, url, headers, content)

    function.send = gateway  # type: ignore[method-assign]
    orders.carry_out = function
    for hour in (5, 6):
        refused.clear()
        assert orders.put(Namespace="demo", App="shop", Document=document(hour))
    refused.clear()
    assert orders.delete()
    assert is_gone(api)


def test_o13_a_replacement_that_failed_is_deleted(api: Api) -> None:
    orders, function = stack(api), Lambda(api)
    assert orders.put(Namespace="demo", App="shop", Document=document(5))
    event = {**_event(orders, "Update"), "PhysicalResourceId": orders.physical_id}
    event["ResourceProperties"] = {"Namespace": "demo", "App": "store", "Document": document(5)}
    function.dies_at = 3  # its PUT is carried out, and not answered
    client = Client("http://sluice.test", function, lambda seconds: None)
    done = cloudformation.handled(client, event, lambda: False, lambda seconds: None)
    assert done.failed and done.id.startswith("demo.store@")
    function.dies_at = None
    again = cloudformation.handled(client, {**event, "RequestType": "Delete", "PhysicalResourceId": done.id})
    assert api.send("GET", "/v1/namespaces/demo/apps/store").status_code == 404, again
    assert hours(api) == ["5"]


def test_o13_a_wrong_document_makes_no_namespace(api: Api) -> None:
    assert not stack(api).put(Namespace="new", App="shop", Document="nonsense: 1")
    assert api.send("GET", "/v1/namespaces/new").status_code == 404


def test_o13_the_answer_is_put_to_the_signed_address(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, str | None, Any]] = []

    class Bucket(QuietHandler):
        def do_PUT(self) -> None:
            if not taken and not getattr(self.server, "failed", False):
                self.server.failed = True  # type: ignore[attr-defined]
                self.send_error(503)
                return
            content = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Content-Type"], json.loads(content)))
            self.send_response(200)
            self.end_headers()

    made = SimpleNamespace(from_environment=lambda: Client("http://sluice.test", Routes(api)))
    monkeypatch.setattr(cloudformation, "Client", made)
    monkeypatch.setattr(cloudformation, "Waiting", lambda event: lambda: True)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with served(QuietServer(Bucket)) as bucket:
        event = {
            "RequestType": "Create",
            "ResponseURL": f"{bucket.url}/answer?Signature=x",
            "StackId": "arn:aws:cloudformation:eu-central-1:1:stack/orders/1",
            "RequestId": "r",
            "LogicalResourceId": "Shop",
            "ResourceProperties": {"Namespace": "demo", "App": "shop", "Document": document(5)},
        }
        cloudformation.handler(event, SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000))
    [(path, kind, answer)] = taken
    assert (path, kind or "", answer["Status"]) == ("/answer?Signature=x", "", "SUCCESS")
    assert answer["PhysicalResourceId"].startswith("demo.shop@")
    assert not is_gone(api)
