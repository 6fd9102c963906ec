"""The API of this checkout behind a real HTTP server, for workers in processes of their own."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chalicelib import handlers, wiring
from tests.support.http_server import QuietHandler, QuietServer, served
from tests.web.conftest import Api, installation, settle_in


class ShiftedClock:
    """The real time plus an offset that a test sets. A waiting request releases the lock for other requests."""

    def __init__(self, lock: Any) -> None:
        self._lock, self.prefetch = lock, 0

    def now(self) -> int:
        return time.time_ns() // 1_000_000 + self.prefetch

    def wait_until(self, instant: int) -> None:
        while self.now() < instant:
            self._lock.release()
            time.sleep(0.05)
            self._lock.acquire()


class Served:
    """``api`` is the service without HTTP. Requests are handled one at a time, because moto's transactions are not
    atomic between threads.
    """

    def __init__(self, api: Api, lock: Any, clock: ShiftedClock) -> None:
        self.api, self.lock, self.clock = api, lock, clock
        self.url = ""
        self.down = threading.Event()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if self.down.is_set():
            return 503, b"{}"
        with self.lock, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            reply = self.api.client.http.request(method, path, headers=headers, body=body)
            return reply.status_code, reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()

    def run(self, run_id: str) -> dict[str, Any]:
        with self.lock:
            view: dict[str, Any] = self.api.get(f"/v1/runs/{run_id}")
            return view

    def comes_to(self, run_id: str, *states: str) -> dict[str, Any]:
        """Wait for a run to reach one of these states."""
        return self.until(lambda: view if (view := self.run(run_id))["state"] in states else None, f"{states}")

    def until(self, poll: Callable[[], Any], what: str) -> Any:
        for _ in range(600):
            if found := poll():
                return found
            time.sleep(0.05)
        raise AssertionError(f"expected {what} within half a minute")

    def passes(self, seconds: int) -> None:
        """Let this much time pass, with a tick at the end of each minute."""
        for span in [60] * (seconds // 60) + [seconds % 60]:
            self.clock.prefetch += span * 1000
            with self.lock:
                handlers.tick()
                self.api.work()


@contextmanager
def serving(fixed: Any = None) -> Iterator[Served]:
    """The service with the app of `settle_in`. ``fixed`` is a clock in place of the real time."""
    lock = threading.RLock()
    clock = fixed or ShiftedClock(lock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "SystemClock", lambda: clock)
        patch.setenv("SLUICE_WORKER_RETRY_SECONDS", "0.2")
        with installation() as api:
            service = Served(api, lock, clock)
            settle_in(api)
            with served(QuietServer(_handler(service))) as server:
                service.url = server.url
                yield service


def _handler(service: Served) -> type[QuietHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = service.answer(self.command, self.path, dict(self.headers), body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do

    return Handler
