"""A callback cannot reach the inside of the network: which addresses are refused, and when they are resolved (O6). The
servers are real; the test resolves the names.
"""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chalicelib.aws.targets import safe_http
from chalicelib.aws.targets.safe_http import MAX_BODY, NotReached, Reply, SafeHttp, Unsafe, is_public

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """A socket on this machine that answers each connection with the same bytes, then hangs up or just waits."""

    def __init__(self, answer: bytes = OK, tls: ssl.SSLContext | None = None, hang: bool = False) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.requests: list[bytes] = []
        self._answer, self._tls, self._done = answer, tls, threading.Event()
        self._hang = hang
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
                with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as stream:
                    self.requests.append(stream.recv(65_536))
                    stream.sendall(self._answer)
                    if self._hang:
                        self._done.wait()
            except OSError:
                if self._socket.fileno() < 0:
                    return

    def close(self) -> None:
        self._done.set()
        self._socket.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(*arguments: object, **options: object) -> Server:
        made.append(Server(*arguments, **options))
        return made[-1]

    yield start
    for server in made:
        server.close()


class Names:
    """A resolver that gives these answers one after the other, and repeats the last one."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def get(http: SafeHttp, url: str, seconds: float = 5.0) -> Reply:
    return http.send("GET", url, {}, None, seconds)


INSIDE = [
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "169.254.170.2", "100.64.0.1", "100.127.255.255", "192.0.0.1", "198.18.0.1", "192.0.2.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "2002:a00:1::", "2002:7f00:1::"),
    *("64:ff9b::a00:1", "64:ff9b::169.254.169.254", "2001:0:4136:e378:8000:63bf:80ff:fffe"),
]
OUTSIDE = [
    "1.1.1.1",
    "52.95.110.1",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", INSIDE)
def test_o6_an_internal_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_o6_an_external_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", INSIDE)
def test_o6_a_name_that_resolves_to_internal_address_is_refused(address: str) -> None:
    with pytest.raises(Unsafe, match="which is not a public address"):
        get(SafeHttp(resolve=Names([address])), "https://example.com/")


def test_o6_one_internal_address_among_others_is_refused() -> None:
    with pytest.raises(Unsafe, match=r"resolves to 10\.0\.0\.1"):
        get(SafeHttp(resolve=Names(["1.1.1.1", "10.0.0.1"])), "https://example.com/")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:7f00:1]", "localhost"]
)
def test_o6_all_spellings_of_an_internal_address_are_refused(host: str) -> None:
    with pytest.raises((Unsafe, NotReached)):
        get(SafeHttp(), f"https://{host}/")


def test_o6_plain_http_is_allowed_only_on_a_laptop(serve: Callable[..., Server]) -> None:
    server = serve()
    with pytest.raises(Unsafe, match="expected an https URL, got http"):
        get(SafeHttp(resolve=Names(["1.1.1.1"])), "http://example.com/")
    laptop = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]))
    assert get(laptop, f"http://example.com:{server.port}/").body == b"ok"


@pytest.mark.parametrize(
    "url", ["https://a:b@example.com/", "https://example.com:22/", "ftp://example.com/", "https://"]
)
def test_o6_an_address_is_checked_again_when_it_is_called(url: str) -> None:
    with pytest.raises(Unsafe):
        get(SafeHttp(resolve=Names(["1.1.1.1"])), url)


def test_o6_a_name_is_resolved_once_and_later_answer_is_ignored(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the name is public when it is checked, and internal when it is called. A second resolution would
    reach the inside.
    """
    server = serve()
    called: list[object] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        called.append(address)
        raise ConnectionRefusedError

    names = Names(["1.1.1.1"], ["127.0.0.1"])
    monkeypatch.setattr(safe_http.socket, "create_connection", connect)
    with pytest.raises(NotReached):
        get(SafeHttp(resolve=names), f"https://example.com:{server.port}/")
    assert names.asked == ["example.com"]
    assert called == [("1.1.1.1", server.port)]
    assert server.requests == []


def certificate(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for one name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "both.pem").write_bytes(private + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


def test_o6_checked_address_is_called_under_its_verified_name(serve: Callable[..., Server], tmp_path: Path) -> None:
    tls, trust = certificate("hooks.example.com", tmp_path)
    server = serve(OK, tls)
    asked: list[str | None] = []
    tls.sni_callback = lambda _, name, __: asked.append(name)

    http = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]), trust=trust)
    reply = get(http, f"https://hooks.example.com:{server.port}/x?y=z")

    assert (reply.status, reply.body, asked) == (200, b"ok", ["hooks.example.com"])
    [request] = server.requests
    assert request.startswith(b"GET /x?y=z HTTP/1.1\r\nHost: hooks.example.com:%d\r\n" % server.port)
    with pytest.raises(NotReached, match="could not be reached"):
        get(http, f"https://other.example.com:{server.port}/")
    with pytest.raises(NotReached, match="CERTIFICATE_VERIFY_FAILED"):
        get(SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"])), f"https://hooks.example.com:{server.port}/")


def test_o6_no_redirect_is_followed(serve: Callable[..., Server]) -> None:
    inside = serve()
    away = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % inside.port
    server = serve(away)
    http = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]))
    assert get(http, f"http://example.com:{server.port}/").status == 302
    assert inside.requests == []


def test_o6_an_answer_is_read_only_up_to_its_limit(serve: Callable[..., Server]) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (3 * MAX_BODY))
    http = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]))
    assert len(get(http, f"http://example.com:{server.port}/").body) == MAX_BODY


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"HTTP/1.1 200 OK\r\nX: "],
)
def test_o6_an_endless_answer_of_a_server_is_cut_by_a_timeout(serve: Callable[..., Server], answer: bytes) -> None:
    server = serve(answer, hang=True)
    http = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]))
    with pytest.raises(NotReached, match=r"no complete answer within 0\.2 s"):
        get(http, f"http://example.com:{server.port}/", 0.2)


@pytest.mark.parametrize("answer", [b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"])
def test_o6_an_invalid_answer_is_an_unknown_answer(serve: Callable[..., Server], answer: bytes) -> None:
    server = serve(answer)
    http = SafeHttp(allow_private=True, resolve=Names(["127.0.0.1"]))
    with pytest.raises(NotReached):
        get(http, f"http://example.com:{server.port}/")


def test_o6_the_next_address_is_tried_if_first_is_unreachable(serve: Callable[..., Server]) -> None:
    server = serve()
    http = SafeHttp(allow_private=True, resolve=Names(["::1", "127.0.0.1"]))
    assert get(http, f"http://example.com:{server.port}/").body == b"ok"


def test_o6_a_name_not_found_or_not_answered_is_unknown_answer() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    stuck = threading.Event()
    with pytest.raises(NotReached, match="Name or service not known"):
        get(SafeHttp(resolve=unknown), "https://none.example/")
    with pytest.raises(NotReached, match="has no address"):
        get(SafeHttp(resolve=Names([])), "https://none.example/")
    with pytest.raises(NotReached, match=r"no answer within 0\.1 s"):
        get(SafeHttp(resolve=lambda *_: [str(stuck.wait())]), "https://slow.example/", 0.1)
    stuck.set()


def test_o6_the_real_resolver_resolves_a_known_name() -> None:
    found = safe_http.resolve("localhost", 443)
    assert found
    assert all(ipaddress.ip_address(address).is_loopback for address in found)
