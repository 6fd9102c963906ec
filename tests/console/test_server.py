"""The proxy of the console, over real HTTP."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluice.console.access import HEADER
from sluice.console.files import Page
from sluice.console.server import ALWAYS, Console, Settings
from sluice.signing import READ_SECONDS, SignedHttp
from tests.cli.played_api import KEY, REGION, SECRET, Played, PlayedApi, playing

TOKEN = "the-token"
SCHEDULE = "/v1/namespaces/demo/apps/flights/schedules/clean"
SCRIPT = "console.log('built')"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Browser:
    """Requests as the page sends them, each on a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, method: str, path: str, body: bytes | None = None, token: str = TOKEN, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {HEADER: token, **names})
        answer = connection.getresponse()
        received = Answer(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return received


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedApi]:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with playing() as api:
        yield api


@pytest.fixture
def page(tmp_path: Path) -> Page:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Sluice</title>")
    (tmp_path / "assets" / "app-1a2b.js").write_text(SCRIPT)
    return Page(tmp_path)


def serving(url: str, page: Page, read_only: bool = False, seconds: float = 1.0) -> Iterator[Browser]:
    server = Console(0, TOKEN, Settings(url, "demo", read_only), page, SignedHttp(url, read_seconds=seconds))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield Browser(server.access.port)
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def browser(api: PlayedApi, page: Page) -> Iterator[Browser]:
    yield from serving(api.url, page)


@pytest.fixture
def careful_browser(api: PlayedApi, page: Page) -> Iterator[Browser]:
    yield from serving(api.url, page, read_only=True)


def test_a_call_reaches_the_api_signed_and_comes_back(api: PlayedApi, browser: Browser) -> None:
    api.play("GET", SCHEDULE, Played(200, {"name": "clean"}, {"ETag": '"3"'}))
    answer = browser("GET", f"{SCHEDULE}?part=a%20b")
    assert (answer.status, answer.json) == (200, {"name": "clean"})
    assert answer.headers["Etag"] == '"3"'
    assert api.requests[0].query == {"part": "a b"}


def test_a_change_keeps_its_body_and_its_condition(api: PlayedApi, browser: Browser) -> None:
    api.play("PUT", SCHEDULE, {"version": 4})
    body = json.dumps({"trigger": "höher"}).encode()
    answer = browser("PUT", SCHEDULE, body, Content_Type="application/json", If_Match='"3"')
    assert answer.json == {"version": 4}
    assert api.requests[0].body == {"trigger": "höher"}
    assert api.requests[0].headers["if-match"] == '"3"'


def test_a_call_without_the_token_never_reaches_the_api(api: PlayedApi, browser: Browser) -> None:
    answer = browser("POST", f"{SCHEDULE}/run", b"{}", token="old")
    assert (answer.status, answer.json["error"]["code"]) == (401, "stale_token")
    assert api.requests == []


def test_a_page_elsewhere_can_neither_read_nor_post(api: PlayedApi, browser: Browser) -> None:
    for headers in ({"Origin": "http://127.0.0.1:9000"}, {"Sec_Fetch_Site": "cross-site"}):
        answer = browser("POST", f"{SCHEDULE}/run", b"{}", **headers)
        assert answer.status == 403
    preflight = browser("OPTIONS", SCHEDULE, Origin="http://evil.example", Access_Control_Request_Method="POST")
    assert preflight.status == 405
    assert not [name for name in (*answer.headers, *preflight.headers) if name.lower().startswith("access-control")]
    assert api.requests == []


@pytest.mark.parametrize("path", ["/", "/runs/x", "/console.json", SCHEDULE])
def test_a_rebound_name_gets_neither_page_nor_api(api: PlayedApi, browser: Browser, path: str) -> None:
    answer = browser("GET", path, Host="evil.example:8484")
    assert (answer.status, answer.json["error"]["code"]) == (421, "wrong_host")
    assert api.requests == []


def test_the_page_needs_no_token_and_no_call(api: PlayedApi, browser: Browser) -> None:
    for path in ("/", "/schedules/demo.flights.clean", "/runs/demo.flights.clean.1.ab12?tab=log"):
        answer = browser("GET", path, token="")
        assert answer.content.startswith(b"<!doctype html>")
        assert answer.headers["Cache-Control"] == "no-store"
    assert api.requests == []


def test_scripts_are_compressed_and_kept_by_the_browser(browser: Browser) -> None:
    plain = browser("GET", "/assets/app-1a2b.js")
    assert plain.content.decode() == SCRIPT
    assert plain.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in plain.headers["Cache-Control"]
    packed = browser("GET", "/assets/app-1a2b.js", Accept_Encoding="br, gzip")
    assert packed.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("path", ["/assets/app-0000.js", "/assets/../../server.py", "/assets/%2e%2e/%2e%2e/server.py"])
def test_a_file_that_is_not_of_the_build_is_not_found(browser: Browser, path: str) -> None:
    assert browser("GET", path).status == 404


def test_every_answer_forbids_frames_scripts_and_types(api: PlayedApi, browser: Browser) -> None:
    answers = [browser("GET", path) for path in ("/", "/assets/app-1a2b.js", "/assets/none.js", SCHEDULE)]
    answers.append(browser("GET", SCHEDULE, token=""))
    for answer in answers:
        assert ALWAYS.items() <= answer.headers.items()
    policy = ALWAYS["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert [answer.headers["Cache-Control"] for answer in answers[2:]] == ["no-store"] * 3


def test_errors_of_the_api_pass_unchanged(api: PlayedApi, browser: Browser) -> None:
    api.refuse("GET", SCHEDULE, 404, "not_found", "no schedule named 'demo.flights.clean'", hint="sluice get schedules")
    answer = browser("GET", SCHEDULE)
    assert answer.status == 404
    assert answer.json["error"]["hint"] == "sluice get schedules"


def test_an_error_of_the_gateway_gets_the_form_of_the_api(api: PlayedApi, browser: Browser) -> None:
    api.play("GET", SCHEDULE, Played(403, {"message": "The security token included in the request is expired"}))
    answer = browser("GET", SCHEDULE)
    assert (answer.status, answer.json["error"]["code"]) == (403, "forbidden")
    assert "expired" in answer.json["error"]["message"]
    assert "credentials" in answer.json["error"]["hint"]


def test_a_throttled_call_says_when_to_come_back(api: PlayedApi, browser: Browser) -> None:
    api.play("GET", SCHEDULE, Played(429, {"message": "Too Many Requests"}, {"Retry-After": "7"}))
    answer = browser("GET", SCHEDULE)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")


def test_a_connection_that_breaks_is_an_error_with_a_hint(api: PlayedApi, browser: Browser) -> None:
    api.play("GET", SCHEDULE, Played(hang_up=True))
    answer = browser("GET", SCHEDULE)
    assert (answer.status, answer.json["error"]["code"]) == (502, "not_reachable")
    assert answer.json["error"]["hint"]


# Times are played ten times as fast: the proxy waits 30 s, and an answer after 10 s must arrive.
TENTH = 0.1


def test_an_answer_of_ten_seconds_arrives(api: PlayedApi, page: Page) -> None:
    api.play("GET", SCHEDULE, Played(200, {"name": "clean"}, after=10 * TENTH))
    for browser in serving(api.url, page, seconds=READ_SECONDS * TENTH):
        answer = browser("GET", SCHEDULE)
        assert (answer.status, answer.json) == (200, {"name": "clean"})


def test_an_answer_that_never_comes_is_an_error_with_a_hint(api: PlayedApi, page: Page) -> None:
    api.play("GET", SCHEDULE, Played(200, {"name": "clean"}, after=2.0))
    for browser in serving(api.url, page, seconds=0.3):
        answer = browser("GET", SCHEDULE)
        assert (answer.status, answer.json["error"]["code"]) == (502, "not_reachable")
        assert answer.json["error"]["hint"]


def test_the_page_waits_longest_then_the_proxy_then_the_api() -> None:
    text = (Path(__file__).parents[2] / "console" / "src" / "api" / "client.ts").read_text(encoding="utf-8")
    [patience] = re.findall(r"const PATIENCE_MS = ([\d_]+);", text)
    assert 29 < READ_SECONDS < int(patience.replace("_", "")) / 1_000, "API Gateway answers within 29 s"


def test_an_api_that_is_down_is_an_error_with_a_hint(api: PlayedApi, page: Page) -> None:
    for browser in serving("http://127.0.0.1:1", page):
        answer = browser("GET", SCHEDULE)
        assert (answer.status, answer.json["error"]["code"]) == (502, "not_reachable")
        about = browser("GET", "/console.json")
        assert (about.status, about.json["stage"]) == (200, None)


def test_the_page_learns_what_it_shows(api: PlayedApi, careful_browser: Browser) -> None:
    who = {"arn": "arn:aws:iam::123456789012:user/ana", "account": "123456789012", "region": "eu-central-1"}
    api.play("GET", "/v1/whoami", {**who, "stage": "prod", "version": "0.1.0"})
    answer = careful_browser("GET", "/console.json")
    assert answer.json == {
        "api": api.url,
        "namespace": "demo",
        **who,
        "stage": "prod",
        "version": "0.1.0",
        "read_only": True,
    }
    assert careful_browser("GET", "/console.json", token="").status == 401


def test_a_read_only_console_changes_nothing(api: PlayedApi, careful_browser: Browser) -> None:
    answer = careful_browser("POST", f"{SCHEDULE}/run", b"{}")
    assert (answer.status, answer.json["error"]["code"]) == (403, "read_only")
    assert api.requests == []


def test_an_unread_body_is_never_the_next_request(api: PlayedApi, browser: Browser) -> None:
    inner = f"POST {SCHEDULE}/run HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\n{HEADER}: {TOKEN}\r\n\r\n".encode()
    connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=10)
    connection.request("POST", f"{SCHEDULE}/run", inner, {HEADER: "old"})
    answer = connection.getresponse()
    assert answer.status == 401
    assert answer.getheader("Connection") == "close"
    connection.close()
    assert api.requests == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Transfer_Encoding": "chunked"}, 411),
        ({"Content_Length": "-1"}, 400),
        ({"Content_Length": "20000000"}, 413),
    ],
)
def test_a_body_of_unclear_or_huge_length_is_refused(
    api: PlayedApi, browser: Browser, headers: dict[str, str], status: int
) -> None:
    assert browser("POST", f"{SCHEDULE}/run", None, **headers).status == status
    assert api.requests == []


def test_the_proxy_listens_on_this_machine_only(api: PlayedApi, page: Page) -> None:
    server = Console(0, TOKEN, Settings(api.url, None, False), page)
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()


@pytest.mark.parametrize("path", ["/", "/assets/app-1a2b.js"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_o14_the_body_of_a_request_for_a_file_is_no_request(browser: Browser, method: str, path: str) -> None:
    second = f"GET /second HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\n\r\n"
    first = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\nContent-Length: {len(second)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", browser.port), timeout=10) as connection:
        connection.sendall((first + second).encode())
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in received
