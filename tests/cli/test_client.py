"""The client: its requests, its results, its retries, and its messages without a connection."""

from __future__ import annotations

import socket

import pytest

from sluice.client import ATTEMPTS, MAX_PAUSE, Client
from sluice.errors import ApiRefused, NotReachable, WrongUsage
from sluice.refusals import NotFound
from sluice.signing import SignedHttp
from tests.cli.played_api import Played, PlayedApi

LATER = Played(503, {"error": {"code": "unavailable", "message": "busy", "field": None, "hint": None}})


@pytest.fixture
def pauses() -> list[float]:
    """Records the pauses of the client instead of making them."""
    return []


@pytest.fixture
def client(api: PlayedApi, pauses: list[float]) -> Client:
    return Client(api.url, pause=pauses.append)


def test_every_request_is_signed_for_the_api(api: PlayedApi, client: Client) -> None:
    api.play("GET", "/v1/health", {"status": "ok"})
    assert client.get("/v1/health") == {"status": "ok"}
    [request] = api.requests
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-central-1/execute-api/aws4_request" in request.headers["authorization"]


def test_the_signature_is_right_for_bodies_queries_and_odd_names(api: PlayedApi, client: Client) -> None:
    api.play("PUT", "/v1/runs/a%2Bb%20c", {"done": True})
    client.put("/v1/runs/a%2Bb%20c", {"text": "Zürich"}, {"z": "a b&c=d/+", "a": "1", "none": None, "dry_run": True})
    [request] = api.requests
    assert request.body == {"text": "Zürich"}
    assert request.query == {"z": "a b&c=d/+", "a": "1", "dry_run": "true"}


def test_a_wrong_key_is_refused_with_what_to_check(
    api: PlayedApi, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(ApiRefused) as refused:
        Client(api.url).get("/v1/health")
    assert (refused.value.status, refused.value.code) == (403, "forbidden")
    assert "signature we calculated" in refused.value.message
    assert "region" in str(refused.value.hint)


def test_missing_credentials_are_wrong_usage(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(WrongUsage, match="AWS credentials"):
        Client(api.url)


def test_an_unknown_profile_is_wrong_usage(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(WrongUsage, match="nobody"):
        Client(api.url)


def test_a_missing_region_is_wrong_usage(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(WrongUsage, match="region"):
        Client(api.url)


def test_the_host_of_an_api_gateway_contains_its_region() -> None:
    http = SignedHttp("https://a1b2.execute-api.ap-south-1.amazonaws.com/api", {"AWS_REGION": "eu-central-1"})
    assert http.region == "ap-south-1"


@pytest.mark.parametrize("url", ["", "127.0.0.1:4566", "s3://bucket", "http://"])
def test_an_invalid_address_is_wrong_usage(url: str) -> None:
    with pytest.raises(WrongUsage) as wrong:
        Client.from_environment({"SLUICE_API_URL": url})
    assert wrong.value.field == "SLUICE_API_URL"


@pytest.mark.parametrize("end", ["/", "/v1", "/v1/"])
def test_an_address_may_end_with_a_slash(api: PlayedApi, end: str) -> None:
    api.play("GET", "/v1/health", {"status": "ok"})
    assert Client(api.url + end).get("/v1/health") == {"status": "ok"}


def test_pages_follow_the_cursor_to_the_end(api: PlayedApi, client: Client) -> None:
    api.lists["/v1/namespaces"] = [{"name": f"n{number}"} for number in range(250)]
    pages = list(client.pages("/v1/namespaces"))
    assert [len(page["items"]) for page in pages] == [100, 100, 50]
    assert client.listing("/v1/namespaces")["next_cursor"] is None


def test_a_limited_list_says_where_the_rest_begins(api: PlayedApi, client: Client) -> None:
    api.lists["/v1/namespaces"] = [{"name": f"n{number}"} for number in range(250)]
    answer = client.listing("/v1/namespaces", most=120)
    assert (len(answer["items"]), answer["next_cursor"]) == (120, "120")
    assert [request.query["limit"] for request in api.requests] == ["100", "20"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_an_idempotent_request_is_repeated_later(
    api: PlayedApi, client: Client, pauses: list[float], method: str
) -> None:
    api.play(method, "/v1/namespaces/demo", LATER, Played(429, {"message": "Too Many Requests"}), {"name": "demo"})
    assert client.request(method, "/v1/namespaces/demo").body == {"name": "demo"}
    assert len(pauses) == 2
    assert pauses[0] < pauses[1]


def test_the_client_gives_up_after_some_attempts(api: PlayedApi, client: Client, pauses: list[float]) -> None:
    api.play("GET", "/v1/health", LATER)
    with pytest.raises(ApiRefused, match="busy"):
        client.get("/v1/health")
    assert len(api.requests) == ATTEMPTS
    assert len(pauses) == ATTEMPTS - 1


def test_the_client_waits_as_long_as_the_server_asks_to_a_limit(
    api: PlayedApi, client: Client, pauses: list[float]
) -> None:
    asks = [Played(429, {"message": "slow down"}, {"Retry-After": seconds}) for seconds in ("2", "3600")]
    api.play("GET", "/v1/health", *asks, {"status": "ok"})
    client.get("/v1/health")
    assert pauses == [2.0, MAX_PAUSE]


def test_a_post_is_sent_once(api: PlayedApi, client: Client, pauses: list[float]) -> None:
    api.play("POST", "/v1/enable", LATER)
    with pytest.raises(ApiRefused):
        client.post("/v1/enable")
    assert len(api.requests) == 1


def test_a_post_with_a_key_is_repeated_under_the_same_key(api: PlayedApi, client: Client) -> None:
    api.play("POST", "/v1/run", LATER, {"job_id": "j"})
    assert client.post("/v1/run", key="k1") == {"job_id": "j"}
    assert [request.headers["idempotency-key"] for request in api.requests] == ["k1", "k1"]


def test_a_conditional_put_is_sent_once_with_its_version(api: PlayedApi, client: Client) -> None:
    api.play("GET", "/v1/namespaces/demo", Played(200, {"name": "demo"}, {"ETag": '"3"'}))
    etag = client.request("GET", "/v1/namespaces/demo").etag
    api.refuse("PUT", "/v1/namespaces/demo", 412, "changed_meanwhile", "namespace demo was changed by somebody else")
    with pytest.raises(ApiRefused) as refused:
        client.put("/v1/namespaces/demo", {}, if_match=etag)
    assert refused.value.code == "changed_meanwhile"
    assert [request.headers.get("if-match") for request in api.sent("PUT", "/v1/namespaces/demo")] == ['"3"']


def test_a_broken_connection_is_made_again(api: PlayedApi, client: Client, pauses: list[float]) -> None:
    api.play("GET", "/v1/health", Played(hang_up=True), {"status": "ok"})
    assert client.get("/v1/health") == {"status": "ok"}
    assert len(pauses) == 1


GONE = Played(404, {"error": {"code": "not_found", "message": "no such thing", "field": None, "hint": None}})


@pytest.mark.parametrize("lost", [Played(hang_up=True), LATER])
def test_a_delete_repeated_after_a_lost_answer_is_done(api: PlayedApi, client: Client, lost: Played) -> None:
    api.play("DELETE", "/v1/namespaces/demo", lost, GONE)
    assert client.delete("/v1/namespaces/demo") == {}
    assert len(api.requests) == 2


@pytest.mark.parametrize("before", [[], [Played(429, {"message": "Too Many Requests"})]])
def test_a_delete_of_nothing_is_refused(api: PlayedApi, client: Client, before: list[Played]) -> None:
    api.play("DELETE", "/v1/namespaces/demo", *before, GONE)
    with pytest.raises(NotFound):
        client.delete("/v1/namespaces/demo")


def test_a_post_that_finds_nothing_after_a_lost_answer_fails(api: PlayedApi, client: Client) -> None:
    api.play("POST", "/v1/jobs/j/cancel", Played(hang_up=True), GONE)
    with pytest.raises(NotFound):
        client.post("/v1/jobs/j/cancel", repeatable=True)


def test_a_post_with_a_broken_connection_is_not_repeated(api: PlayedApi, client: Client) -> None:
    api.play("POST", "/v1/run", Played(hang_up=True))
    with pytest.raises(NotReachable, match="closed the connection") as lost:
        client.post("/v1/run")
    assert "check before you repeat it" in str(lost.value.hint)
    assert len(api.requests) == 1


def test_a_refused_connection_is_not_reachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(NotReachable, match="expected an API at http://127"):
        Client(url).get("/v1/health")


def test_a_server_without_an_answer_is_not_reachable() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotReachable, match="in time"):
            Client(url, SignedHttp(url, read_seconds=0.1)).get("/v1/health")


def test_an_answer_of_another_service_is_not_reachable(api: PlayedApi, client: Client) -> None:
    api.play("GET", "/v1/health", Played(200, b"<html>hello</html>", {"Content-Type": "text/html"}))
    with pytest.raises(NotReachable, match="got text/html"):
        client.get("/v1/health")


def test_a_refusal_keeps_its_code_field_and_hint(api: PlayedApi, client: Client) -> None:
    api.refuse("PUT", "/v1/x", 400, "invalid", "expected a name, got ''", field="schedules.a", hint="name it")
    with pytest.raises(ApiRefused) as refused:
        client.put("/v1/x", {})
    error = refused.value
    assert (error.status, error.code, error.field, error.hint) == (400, "invalid", "schedules.a", "name it")


@pytest.mark.parametrize(
    ("played", "code", "message"),
    [
        (Played(404, {"message": "no such stage"}), "http_404", "no such stage"),
        (Played(413, b"<html>"), "http_413", "POST /v1/x was answered with HTTP 413"),
        (Played(502, {"message": "Internal server error"}), "http_502", "Internal server error"),
    ],
)
def test_an_answer_of_a_proxy_is_put_into_the_same_shape(
    api: PlayedApi, client: Client, played: Played, code: str, message: str
) -> None:
    api.play("POST", "/v1/x", played)
    with pytest.raises(ApiRefused) as refused:
        client.post("/v1/x")
    assert (refused.value.code, refused.value.message) == (code, message)


def test_no_content_is_an_empty_document(api: PlayedApi, client: Client) -> None:
    api.play("DELETE", "/v1/x", Played(204, b""))
    assert client.delete("/v1/x") == {}
