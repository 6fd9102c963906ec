"""Signed requests without botocore: the same signature, and only where botocore has nothing to find out."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sluice.client import Client
from sluice.errors import NotReachable
from sluice.plain_http import Keys, keys_of, signed
from tests.cli.played_api import KEY, REGION, SECRET, Played, PlayedApi
from tests.support.http_server import QuietHandler, QuietServer, served

HOST = "https://a1b2.execute-api.eu-central-1.amazonaws.com"
BOTH = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CONFIG_FILE": "/dev/null"}


@pytest.mark.parametrize("token", [None, "token/+=="])
@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("GET", "/api/v1/namespaces", None),
        ("GET", "/api/v1/runs/a%2Bb%20c~d?limit=100&cursor=a%3D%2Fb&limit-a=2", None),
        ("POST", "/api/v1/namespaces/demo/events", '{"text": "Zürich"}'.encode()),
    ],
)
def test_the_signature_is_that_of_botocore(method: str, path: str, content: bytes | None, token: str | None) -> None:
    headers = {"Accept": "application/json", "Idempotency-Key": "a  b"}
    request = AWSRequest(method=method, url=HOST + path, headers=headers, data=content)
    SigV4Auth(Credentials(KEY, SECRET, token), "execute-api", REGION).add_auth(request)
    at = datetime.datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
    ours = signed(Keys(KEY, SECRET, token), REGION, method, HOST + path, headers, content, at)
    assert ours["Authorization"] == request.headers["Authorization"]


@pytest.mark.parametrize(
    "more",
    [
        {"AWS_PROFILE": "work"},
        {"HTTPS_PROXY": "http://proxy:3128"},
        {"https_proxy": "http://proxy:3128"},
        {"AWS_SECRET_ACCESS_KEY": ""},
    ],
)
def test_botocore_is_used_for_profiles_and_proxies(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert keys_of(HOST, BOTH) == Keys("a", "b")
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    assert keys_of(HOST, {**BOTH, **more}) is None


def test_a_host_that_goes_past_the_proxy_needs_no_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "localhost,.amazonaws.com"}
    for name, value in {**proxy, "no_proxy": proxy["NO_PROXY"]}.items():
        monkeypatch.setenv(name, value)
    assert keys_of(HOST, {**BOTH, **proxy}) == Keys("a", "b")


def test_a_bundle_in_the_config_file_needs_botocore(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[default]\nca_bundle = /etc/own.pem\n")
    assert keys_of(HOST, {**BOTH, "AWS_CONFIG_FILE": str(config)}) is None


def test_keys_are_not_in_the_text_of_an_error() -> None:
    assert "secret" not in repr(Keys("key", "secret", "secret token"))


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of an HTTPS server with a certificate of its own, and the file of this certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, private = tmp_path / "own.pem", tmp_path / "key.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    server = QuietServer(Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with served(server):
        yield f"https://localhost:{server.server_port}", file


@pytest.mark.parametrize("profile", ["", "default"])
def test_an_unknown_certificate_is_not_trusted(
    tls: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """With a profile, botocore sends the request; both ways decide alike."""
    address, file = tls
    config = tmp_path / "config"
    config.write_text("[default]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", profile)
    if not profile:
        monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with pytest.raises(NotReachable, match="expected a trusted connection to https://localhost"):
        Client(address).get("/v1/health")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(file))
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert Client(address).get("/v1/health") == {}


def test_a_kept_connection_that_was_closed_is_made_again(api: PlayedApi) -> None:
    api.play("POST", "/v1/x", Played(200, {}, {"Connection": "close"}), {})
    client = Client(api.url)
    assert [client.post("/v1/x"), client.post("/v1/x")] == [{}, {}]
    assert len(api.requests) == 2
