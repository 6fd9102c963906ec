"""The emulator as one object: all parts, behind an HTTP server."""

from __future__ import annotations

import fcntl
import json
import logging
import socket
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Self

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from infra.local.callers import Callers
from infra.local.guard import HOSTS, Guard, before_wsgi
from infra.local.permissions import Place
from infra.local.throttle import Switch

from .applications import Applications
from .aws import LambdaInvoker, client, credentials
from .driver import Driver, InstantDriver
from .events import StateChanges
from .job_runs import JobRuns
from .ledger import Ledger
from .permissions import Permissions, statements_of
from .scheduler import Scheduler
from .settings import BadSetting, Settings
from .spark_driver import SparkDriver
from .store import Store
from .throttle import Throttle
from .wire import flask_app

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

# Seconds between two checks of the HTTP server whether to stop.
_POLL_S = 0.05
_HEALTH = "/health"


class Emulator:
    """An EMR Serverless at `url`, from `start` to `stop`. Raises BadSetting when its port is taken.

    with Emulator(Settings(port=0, driver="instant", state_dir=directory)) as emulator:
        boto3.client("emr-serverless", endpoint_url=emulator.url)
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        own = credentials()
        self._state_lock = _lock_state(settings)
        self._listener = _listen(settings)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://{settings.host}:{self.port}"
        self.state_dir = settings.state_dir
        self._store = Store(settings.state_dir / "emr.sqlite")
        deliver = LambdaInvoker(settings) if settings.run_state_function else None
        self._events = StateChanges(deliver, settings.account_id, settings.region, settings.drop_events)
        ledger = Ledger(self._store, self._events)
        self._scheduler = Scheduler(
            ledger, _driver(settings), settings.max_running, settings.max_vcpus, settings.minute_s
        )
        applications = Applications(ledger, settings.account_id, settings.region)
        throttle = Throttle(settings.rates, Switch(settings.state_dir.parent / "throttle.json"))
        job_runs = JobRuns(ledger, applications, self._scheduler, throttle, settings.account_id)
        app = self._with_health(flask_app(applications, job_runs, _permissions(settings, own["AWS_ACCESS_KEY_ID"])))
        self._server = _serve(self._listener, before_wsgi(app, _guard(settings, self.port, own)))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="http", daemon=True)

    def start(self) -> Self:
        self._scheduler.start()
        self._thread.start()
        log.info(
            "EMR Serverless is at %s: driver %s, %d runs at once, state in %s",
            self.url, self._settings.driver, self._settings.max_running, self._settings.state_dir,
        )  # fmt: skip
        return self

    def stop(self) -> None:
        """Answer no more requests and end all Spark processes; the next start restarts unfinished runs."""
        self._server.shutdown()
        self._server.server_close()
        self._listener.close()
        self._scheduler.close()
        self._events.close()
        self._store.close()
        self._state_lock.close()
        log.info("EMR Serverless at %s has stopped", self.url)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _with_health(self, app: WSGIApplication) -> WSGIApplication:
        def route(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if environ.get("PATH_INFO") != _HEALTH:
                return app(environ, start_response)
            health = {"status": "ok", "driver": self._settings.driver, **self._scheduler.counts()}
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(health).encode()]

        return route


class _QuietHandler(WSGIRequestHandler):
    """A handler without a log line per request: the log is for state changes."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


def _lock_state(settings: Settings) -> IO[bytes]:
    """Lock the state directory for this process; the system releases the lock when the process ends."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    holder = (settings.state_dir / "lock").open("wb")
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder.close()
        raise BadSetting(
            f"expected a state directory of its own, got {settings.state_dir}, which another emulator uses: stop that "
            "one, or choose another with --state-dir or SLUICE_EMR_STATE_DIR"
        ) from None
    return holder


def _listen(settings: Settings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), backlog=256)
    except OSError as error:
        raise BadSetting(
            f"expected to listen on {settings.host}:{settings.port}, got {error.strerror or error}: stop what uses "
            "the port, or choose another with --port or SLUICE_EMR_PORT (0 takes a free one)"
        ) from error


def _serve(listener: socket.socket, app: WSGIApplication) -> BaseWSGIServer:
    host, port = listener.getsockname()[:2]
    return make_server(host, port, app, threaded=True, request_handler=_QuietHandler, fd=listener.fileno())


def _guard(settings: Settings, port: int, own: Mapping[str, str]) -> Guard:
    """Accepts the emulator's own key, and those of the local cloud of which it is part."""
    callers = Callers(settings.state_dir.parent / "callers.json")

    def secret_of(access_key: str) -> str | None:
        if access_key == own["AWS_ACCESS_KEY_ID"]:
            return own["AWS_SECRET_ACCESS_KEY"]
        found = callers.get(access_key) if settings.endpoint_url else None
        return found.secret if found else None

    return Guard(port, secret_of, _HEALTH, (*HOSTS, settings.host.lower()))


def _permissions(settings: Settings, root_key: str) -> Permissions | None:
    """The permissions of roles, if the emulator is part of a local cloud."""
    if not settings.endpoint_url:
        return None
    place = Place(settings.region, settings.account_id)
    return Permissions(statements_of(client("iam", settings)), settings.state_dir.parent, place, root_key)


def _driver(settings: Settings) -> Driver:
    if settings.driver == "instant":
        return InstantDriver(settings.instant_ms / 1000)
    try:
        return SparkDriver(settings)
    except LookupError as error:
        raise BadSetting(str(error)) from error


def configure_log() -> None:
    """Write log lines to standard output, each with its instant."""
    handler: logging.Handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger(__package__)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
