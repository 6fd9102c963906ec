"""HTTP callbacks, to a real server on this machine: what arrives, what each answer means, the signature (E5, O6)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws.targets.http import HttpTarget, retry_after
from chalicelib.aws.targets.safe_http import SafeHttp
from chalicelib.aws.targets.secrets import KEPT, Secrets, parse
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from tests.support import rows
from tests.support.clock import NOON
from tests.support.http_server import QuietHandler, QuietServer, served

CONTEXT = {"run_id": "r1"}


class Server(QuietServer):
    """Gives each call the answer that the test set, and records the call."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.status, self.headers, self.body = 200, {"Content-Type": "text/plain"}, b"ok"
        self.seen: list[tuple[str, str, Mapping[str, str], bytes]] = []


class Handler(QuietHandler):
    server: Server

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_POST = do_PUT = do_GET = do_DELETE = handle_one


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with served(made):
        yield made


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """SSM and Secrets Manager."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        yield boto3.client("ssm", "us-east-1"), boto3.client("secretsmanager", "us-east-1")


class Clock:
    instant = NOON

    def now(self) -> int:
        return self.instant


def nothing() -> Any:
    raise AssertionError("expected no secret to be read")


def target(secrets: Secrets | None = None) -> HttpTarget:
    return HttpTarget(SafeHttp(allow_private=True), secrets or Secrets(nothing, nothing, lambda: NOON), lambda: NOON)


def run(url: str | Mapping[str, str], data: Mapping[str, Any] | None = None, **fields: Any) -> Run:
    made = rows.run("demo.flights.notify.1.e1", nominal_at=NOON, attempt=2)
    called = {"type": "http", "url": url, "method": "POST", "headers": {}, "timeout": "5s", "secret": None, **fields}
    return replace(made, request=replace(made.request, target=called, data=data))


def test_e5_a_callback_has_the_context_and_its_identity(server: Server) -> None:
    answer = target().start(run(f"{server.url}/hook?a=b", headers={"X-Team": "a"}), CONTEXT)
    assert answer == Started("http-200", done=True)
    [(method, path, headers, body)] = server.seen
    assert (method, path, json.loads(body)) == ("POST", "/hook?a=b", CONTEXT)
    view = {name: value for name, value in headers.items() if name.startswith(("Sluice-", "X-"))}
    assert view == {
        "Sluice-Event-Id": "demo.flights.notify.1.e1",
        "Sluice-Schedule": "demo.flights.clean",
        "Sluice-Nominal-Time": "2026-03-02T12:00:00.000Z",
        "Sluice-Due-Time": "2026-03-02T12:00:00.000Z",
        "Sluice-Attempt": "2",
        "X-Team": "a",
    }
    assert (headers["Content-Type"], headers["User-Agent"]) == ("application/json", "sluice/1")
    assert headers["Host"] == f"127.0.0.1:{server.server_port}"


def test_e5_method_and_data_are_set_by_the_user(server: Server) -> None:
    data = {"content_type": "image/png", "base64": "iVBORw=="}
    target().start(run(server.url, data, method="PUT"), CONTEXT)
    target().start(run(server.url, data, method="GET"), CONTEXT)
    (put, _, headers, body), (get, path, bare, nothing_sent) = server.seen
    assert (put, headers["Content-Type"], body) == ("PUT", "image/png", b"\x89PNG")
    assert (get, path, nothing_sent, "Content-Type" in bare) == ("GET", "/", b"", False)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, Started) for status in (200, 201, 202, 204)),
        *((status, NoAnswer) for status in (408, 425, 500, 502, 503, 504)),
        (429, NotNow),
        *((status, Never) for status in (301, 302, 307, 308, 400, 401, 403, 404, 409, 410, 422)),
    ],
)
def test_e5_each_http_status_has_its_meaning(server: Server, status: int, kind: type[Answer]) -> None:
    server.status, server.headers = status, {"Location": f"{server.url}/elsewhere"}
    server.body = b"" if status == 204 else b"why"
    answer = target().start(run(server.url), CONTEXT)
    assert isinstance(answer, kind), answer
    assert len(server.seen) == 1, "no redirect is followed"
    if kind is not Started:
        assert getattr(answer, "why", "").startswith(f"the callback answered with HTTP {status}: why")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7_000),
        (" 120 ", 120_000),
        ("Mon, 02 Mar 2026 12:00:30 GMT", 30_000),
        ("Mon, 02 Mar 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("9" * 200, None),
        (None, None),
    ],
)
def test_e6_retry_after_is_seconds_or_a_date(text: str | None, expected: int | None) -> None:
    assert retry_after(text, NOON) == expected


@pytest.mark.parametrize(("status", "kind"), [(429, NotNow), (503, NoAnswer)])
def test_e6_a_server_with_retry_after_is_called_then(server: Server, status: int, kind: type[Answer]) -> None:
    server.status, server.headers = status, {"Retry-After": "90"}
    answer = target().start(run(server.url), CONTEXT)
    assert isinstance(answer, kind)
    assert getattr(answer, "retry_after", None) == 90_000


def test_e5_an_unreachable_server_is_an_unknown_answer() -> None:
    answer = target().start(run("http://127.0.0.1:9"), CONTEXT)
    assert isinstance(answer, Never), "port 9 is refused by its looks"
    free = Server()
    free.server_close()
    assert isinstance(target().start(run(free.url), CONTEXT), NoAnswer)


def test_e5_many_callbacks_are_answered_in_their_order(server: Server) -> None:
    answers = target().start_many([(run(server.url if odd else "http://127.0.0.1:9"), CONTEXT) for odd in (1, 0, 1)])
    assert [type(answer) for answer in answers] == [Started, Never, Started]


# -- the signature -------------------------------------------------------------------------------------------------


def verified(header: str, url: str, body: bytes, keys: Mapping[str, str]) -> bool:
    """The verification that docs/targets.md describes for a consumer of the calls of `run`."""
    parts = [part.split("=", 1) for part in header.split(",")]
    at = dict(parts)["t"]
    pairs = zip((v for k, v in parts if k == "kid"), (v for k, v in parts if k == "v2"), strict=True)
    lines = [
        at,
        "demo",
        "demo.flights.clean",
        "demo.flights.notify.1.e1",
        "POST",
        url,
        hashlib.sha256(body).hexdigest(),
    ]
    for key_id, answer in pairs:
        expected = hmac.new(keys.get(key_id, "").encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
        if key_id in keys and hmac.compare_digest(expected, answer):
            return True
    return False


def test_e5_during_a_secret_rotation_either_key_verifies(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    clock = Clock()
    secrets = Secrets(lambda: ssm, lambda: manager, clock.now)
    name = "/sluice-target/hook"

    def put(*keys: tuple[str, str]) -> None:
        value = json.dumps({"keys": [{"id": key, "secret": secret} for key, secret in keys]})
        ssm.put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)

    def called() -> tuple[str, bytes]:
        assert isinstance(target(secrets).start(run(server.url, secret=name), CONTEXT), Started)
        _, _, headers, body = server.seen[-1]
        return headers["Sluice-Signature"], body

    put(("old", "aaa"))
    header, body = called()
    assert verified(header, server.url, body, {"old": "aaa"})

    put(("new", "bbb"), ("old", "aaa"))
    assert "kid=new" not in called()[0], "a key is read once in five minutes"
    clock.instant += KEPT
    header, body = called()
    assert verified(header, server.url, body, {"old": "aaa"})
    assert verified(header, server.url, body, {"new": "bbb"})
    assert not verified(header, server.url, body, {"other": "aaa"})


def test_e5_a_secret_may_be_in_secrets_manager_or_plain_text(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    arn = manager.create_secret(Name="sluice-target-hook", SecretString="plain")["ARN"]
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    assert isinstance(target(secrets).start(run(server.url, secret=arn), CONTEXT), Started)
    _, _, headers, body = server.seen[0]
    assert verified(headers["Sluice-Signature"], server.url, body, {"1": "plain"})


def test_e5_a_callback_that_must_be_signed_never_goes_unsigned(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    missing = target(secrets).start(run(server.url, secret="/sluice-target/none"), CONTEXT)
    assert missing == Never("secret /sluice-target/none cannot be read: ParameterNotFound")
    ssm.put_parameter(Name="/sluice-target/bad", Value='{"keys": []}', Type="SecureString")
    assert isinstance(target(secrets).start(run(server.url, secret="/sluice-target/bad"), CONTEXT), Never)
    assert server.seen == []


def test_e5_a_secret_whose_key_is_denied_says_what_to_grant() -> None:
    class Manager:
        def get_secret_value(self, **_: str) -> Any:
            error = {"Code": "AccessDeniedException", "Message": "Access to KMS is not allowed"}
            raise ClientError({"Error": error}, "GetSecretValue")

    read = Secrets(lambda: None, Manager, lambda: NOON).text("arn:aws:secretsmanager:eu-west-1:123456789012:secret:a")
    assert isinstance(read, Never)
    assert read.why.startswith("secret arn:aws:secretsmanager:eu-west-1:123456789012:secret:a cannot be read: Access")
    assert "what to do: allow kms:GenerateDataKey and kms:Decrypt on the key of the target" in read.why


def test_a_header_gets_its_secret_right_before_the_call(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    ssm.put_parameter(Name="/sluice-target/demo/key", Value="Bearer s3cr3t\n", Type="SecureString")
    manager.create_secret(Name="sluice-target-demo/id", SecretString="me")
    headers = {
        "Authorization": {"ssm": "/sluice-target/demo/key"},
        "X-Id": {"secrets_manager": "sluice-target-demo/id"},
        "X-Team": "a",
    }
    called = run(server.url, headers=headers)
    assert isinstance(target(secrets).start(called, CONTEXT), Started)
    _, _, sent, body = server.seen[0]
    assert (sent["Authorization"], sent["X-Id"], sent["X-Team"]) == ("Bearer s3cr3t", "me", "a")
    assert b"s3cr3t" not in body
    assert called.request.target["headers"] == headers, "the run keeps the references alone"


def test_an_answer_that_repeats_a_secret_is_masked(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    ssm.put_parameter(Name="/sluice-target/demo/key", Value="s3cr3t", Type="SecureString")
    server.status, server.body = 401, b"wrong key s3cr3t"
    answer = target(secrets).start(run(server.url, headers={"X-Key": {"ssm": "/sluice-target/demo/key"}}), CONTEXT)
    assert answer == Never("the callback answered with HTTP 401: wrong key ***")


def test_an_answer_that_repeats_a_part_of_a_header_is_masked(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    ssm.put_parameter(Name="/sluice-target/demo/key", Value="Bearer XXs3cr3tXX", Type="SecureString")
    server.status, server.body = 401, b"Bearer of nothing: wrong key XXs3cr3tXX"
    headers = {"Authorization": {"ssm": "/sluice-target/demo/key"}}
    answer = target(secrets).start(run(server.url, headers=headers), CONTEXT)
    assert answer == Never("the callback answered with HTTP 401: Bearer of nothing: wrong key ***")


@pytest.mark.parametrize("value", [" ", "a\nb", "\u00e9"])
def test_a_call_is_never_made_without_one_of_its_headers(
    server: Server, stores: tuple[Any, Any], value: str
) -> None:  # fmt: skip
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    ssm.put_parameter(Name="/sluice-target/demo/odd", Value=value, Type="SecureString")
    for name in ("/sluice-target/demo/odd", "/sluice-target/demo/none"):
        answer = target(secrets).start(run(server.url, headers={"X-Key": {"ssm": name}}), CONTEXT)
        assert isinstance(answer, Never)
        assert name in answer.why
    assert server.seen == []


KEY = {"routing_key": {"ssm": "/sluice-target/demo/key"}}


def test_e5_a_secret_field_is_put_into_the_body_at_the_call(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    ssm.put_parameter(Name="/sluice-target/demo/key", Value='k"0123456789\n', Type="SecureString")
    manager.create_secret(Name="sluice-target-demo/hook", SecretString="plain")
    server.status, server.body = 400, rb'{"got": "k\"0123456789"} k"0123456789'
    signed = {"secret": {"secrets_manager": "sluice-target-demo/hook"}, "body_secrets": KEY}
    called = run(server.url, {"content_type": "application/json", "text": '{"a": 1, "routing_key": ""}'}, **signed)
    answer = target(secrets).start(called, CONTEXT)
    [(_, _, headers, body)] = server.seen
    assert json.loads(body) == {"a": 1, "routing_key": 'k"0123456789'}
    assert verified(headers["Sluice-Signature"], server.url, body, {"1": "plain"})
    assert isinstance(answer, Never)
    assert "0123456789" not in answer.why and "***" in answer.why


@pytest.mark.parametrize("text", ["[1]", "no JSON", '"text"'])
def test_e5_a_body_without_a_place_for_a_field_is_not_sent(
    server: Server, stores: tuple[Any, Any], text: str
) -> None:  # fmt: skip
    ssm, _ = stores
    ssm.put_parameter(Name="/sluice-target/demo/key", Value="k", Type="SecureString")
    secrets = Secrets(lambda: ssm, nothing, lambda: NOON)
    called = run(server.url, {"content_type": "application/json", "text": text}, body_secrets=KEY)
    answer = target(secrets).start(called, CONTEXT)
    assert answer == Never("the data has no place for routing_key of body_secrets; expected a JSON object")
    ssm.put_parameter(Name="/sluice-target/demo/key", Value=" ", Type="SecureString", Overwrite=True)
    fresh = Secrets(lambda: ssm, nothing, lambda: NOON)
    assert target(fresh).start(called, CONTEXT) == Never("secret /sluice-target/demo/key is empty; expected a text")
    assert server.seen == []


def test_a_callback_may_be_signed_with_a_referenced_secret(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, manager = stores
    manager.create_secret(Name="sluice-target-demo/hook", SecretString="plain")
    secrets = Secrets(lambda: ssm, lambda: manager, lambda: NOON)
    reference = {"secrets_manager": "sluice-target-demo/hook"}
    assert isinstance(target(secrets).start(run(server.url, secret=reference), CONTEXT), Started)
    _, _, headers, body = server.seen[0]
    assert verified(headers["Sluice-Signature"], server.url, body, {"1": "plain"})


def _webhook(server: Server, stores: tuple[Any, Any], address: str) -> tuple[Answer, Server]:
    ssm, _ = stores
    ssm.put_parameter(Name="/sluice-target/demo/hook", Value=address, Type="SecureString", Overwrite=True)
    secrets = Secrets(lambda: ssm, nothing, lambda: NOON)
    url = {"ssm": "/sluice-target/demo/hook", "host": "127.0.0.1"}
    return target(secrets).start(run(url, secret="/sluice-target/demo/hook"), CONTEXT), server


def test_an_address_is_read_right_before_the_call(server: Server, stores: tuple[Any, Any]) -> None:
    answer, _ = _webhook(server, stores, f" {server.url}/services/T0/B0/s3cr3t?sig=x ")
    assert isinstance(answer, Started)
    [(method, path, headers, _)] = server.seen
    assert (method, path) == ("POST", "/services/T0/B0/s3cr3t?sig=x")
    assert headers["Sluice-Signature"].startswith("t=")


def test_a_probe_may_have_a_secret_address(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, _ = stores
    ssm.put_parameter(Name="/sluice-target/demo/ready", Value=f"{server.url}/ready", Type="SecureString")
    server.body = b'{"met": true}'
    asked = {"type": "http", "url": {"ssm": "/sluice-target/demo/ready", "host": "127.0.0.1"}}
    probe = target(Secrets(lambda: ssm, nothing, lambda: NOON))
    assert probe.probe({**asked, "headers": {}, "timeout": "5s", "secret": None}, {}) == b'{"met": true}'
    assert server.seen[0][:2] == ("POST", "/ready")


def test_an_answer_that_repeats_a_secret_address_is_masked(server: Server, stores: tuple[Any, Any]) -> None:
    server.status, server.body = 404, b"no hook at /services/T0/B0/s3cr3t"
    answer, _ = _webhook(server, stores, f"{server.url}/services/T0/B0/s3cr3t")
    assert isinstance(answer, Never)
    assert "s3cr3t" not in answer.why
    assert "no hook at /***" in answer.why


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        (b"Cannot POST /services/T0/B0/XXs3cr3tXX", "Cannot POST /***"),
        (b"Cannot POST /services/T0/B0/XXs3cr3tXX?thread=1&sig=a%2Bs3cr3tB", "Cannot POST /***"),
        (b"unknown token XXs3cr3tXX", "unknown token ***"),
        (b"bad signature a%2Bs3cr3tB", "bad signature ***"),
        (b"bad signature a+s3cr3tB", "bad signature ***"),
        (rb'{"path":"\/services\/T0\/B0\/XXs3cr3tXX"}', r'{"path":"\/***"}'),
    ],
)
def test_an_answer_that_repeats_a_part_of_an_address_is_masked(
    server: Server, stores: tuple[Any, Any], said: bytes, quoted: str
) -> None:
    server.status, server.body = 404, said
    answer, _ = _webhook(server, stores, f"{server.url}/services/T0/B0/XXs3cr3tXX?thread=1&sig=a%2Bs3cr3tB")
    assert answer == Never(f"the callback answered with HTTP 404: {quoted}")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://elsewhere.example.com/s3cr3t", "holds an address of another host; expected 127.0.0.1"),
        ("s3cr3t", "holds no web address; expected 127.0.0.1"),
        ("https://ada:s3cr3t@127.0.0.1/", "holds no web address; expected 127.0.0.1"),
        ("https://127.0.0.1/s3cr3t\nHost: a", "holds no web address; expected 127.0.0.1"),
    ],
)
def test_a_secret_that_is_no_address_of_its_host_is_never_called(
    server: Server, stores: tuple[Any, Any], address: str, why: str
) -> None:
    answer, _ = _webhook(server, stores, address)
    assert answer == Never(f"secret /sluice-target/demo/hook {why}")
    assert server.seen == []


def test_a_corrected_address_counts_at_once(server: Server, stores: tuple[Any, Any]) -> None:
    ssm, _ = stores
    secrets = Secrets(lambda: ssm, nothing, lambda: NOON)
    for value, called in (("s3cr3t", False), (f"{server.url}/a", True)):
        ssm.put_parameter(Name="/sluice-target/demo/hook", Value=value, Type="String", Overwrite=True)
        answer = target(secrets).start(run({"ssm": "/sluice-target/demo/hook", "host": "127.0.0.1"}), CONTEXT)
        assert isinstance(answer, Started) is called


@pytest.mark.parametrize("text", ["", "{", "{}", '{"keys": [{"id": "a"}]}', '{"keys": [{"id": "a,b", "secret": "x"}]}'])
def test_e5_an_unusable_secret_counts_as_missing(text: str) -> None:
    assert parse(text) is None


# -- probes --------------------------------------------------------------------------------------------------------


def test_c15_a_probe_calls_an_address_and_reads_its_answer(server: Server) -> None:
    server.body = b'{"met": true}'
    asked = {"type": "http", "url": server.url, "headers": {}, "timeout": "5s", "secret": None}
    assert target().probe(asked, {"job_id": "j"}) == b'{"met": true}'
    assert json.loads(server.seen[0][3]) == {"job_id": "j"}
    assert (server.seen[0][2]["Sluice-Event-Id"], server.seen[0][2]["Sluice-Schedule"]) == ("j", "")
    server.status = 500
    assert isinstance(target().probe(asked, {}), NoAnswer)
    server.status = 404
    assert isinstance(target().probe(asked, {}), Never)
