"""The HTTP servers of tests print nothing into the output of another test."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest

from tests.support.http_server import QuietHandler, QuietServer, served


class Watched(QuietServer):
    """Says when the thread of a connection has ended."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        super().__init__(handler)
        self.ended = threading.Event()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.ended.set()


class Kept(QuietHandler):
    """Keeps its connections."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


class Broken(Kept):
    def do_GET(self) -> None:
        raise ValueError("a defect of the handler")


def got(server: QuietServer) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.server_port))
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    return connection


def test_a_client_that_resets_its_connection_is_no_output(capfd: pytest.CaptureFixture[str]) -> None:
    server = Watched(Kept)
    with served(server):
        connection = got(server)
        connection.recv(1000)
        # A socket that lingers for no second is closed by a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        assert server.ended.wait(10)
    assert capfd.readouterr() == ("", "")


def test_a_defect_of_a_handler_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    server = Watched(Broken)
    with served(server):
        got(server).close()
        assert server.ended.wait(10)
    assert "a defect of the handler" in capfd.readouterr().err
