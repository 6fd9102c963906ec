"""An hour of an installation while its Lambdas are replaced: one version or the other handles each invocation.

Events and answers have the form that AWS gives them. Any invocation may be killed between two calls to the tables. It
may also be stopped there while another one, of either version, is carried out.
"""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from chalicelib.core import states
from chalicelib.core.instants import MINUTE, iso
from tests.faults import invariants
from tests.support import s3_notifications
from tests.support.crash import Crash
from tests.support.emr_client import JobRun
from tests.support.world import day
from tests.upgrade import documents
from tests.upgrade.account import APPLICATION, Account
from tests.upgrade.lambdas import BUS, Version
from tests.upgrade.row_books import RowBooks

NS, APP = "/v1/namespaces/demo", "/v1/namespaces/demo/apps/flights"
MAX_ROUNDS = 120
MAX_REPEATS = 20  # of one request or event whose invocation is killed


class Errors(logging.Handler):
    """The error logs of the versions, by version. No other lines are kept."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.player, self.found = "", list[tuple[str, BaseException | str]]()

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.found.append((self.player, error or record.getMessage()))


class RollingWorld:
    """Two versions of the service on the same tables. It does not use `World`, which calls the steps of the present
    code: here each invocation enters a version by its Lambdas, with the events that AWS sends.

    ``share`` returns, for a minute, the share of the invocations of the version ``new``. ``troubled``: invocations
    are killed and cross.
    """

    def __init__(
        self, account: Account, old: Version, new: Version, share: Callable[[int], float], seed: int,
        troubled: bool = True,
    ) -> None:  # fmt: skip
        self.account, self.old, self.new = account, old, new
        self.share, self.troubled = share, troubled
        self.chance = random.Random(seed)
        self.clock, self.tables = account.clock, account.tables
        self.began = self.clock.now()
        self.rows = RowBooks(self.tables, new.name)
        self.errors = Errors()
        self.played: Counter[str] = Counter()  # invocations by version
        self.crossed: Counter[str] = Counter()  # invocations during another one, by both versions
        self.deaths = 0
        self.refusals: Counter[str] = Counter()
        self.at_switches: list[tuple[int, int, int]] = []
        self.read_alike: set[str] = set()  # classes of rows that both versions have read alike
        self.uploads = self.requests = 0
        self.orders: set[str] = set()  # accepted, by any version
        self.pings: set[str] = set()
        self.partitions: set[int] = set()
        self._calls_left = self._writes_left = None  # until the invocation is stopped, or killed
        self._depth = 0

    # -- the simulated hour --------------------------------------------------------------------------------------

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Keep the errors of the versions, and print none of their lines."""
        logger = logging.getLogger("sluice")
        handlers, level = logger.handlers, logger.level
        logger.handlers = [self.errors]
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.handlers = handlers
            logger.setLevel(level)

    def hour(self, minutes: int = 60) -> None:
        """Deploy an app, and simulate an hour of it, or a part of one."""
        assert self.ask("PUT", NS, {}), self.refusals
        assert self.ask("PUT", APP, documents.app()), self.refusals
        self.goes_on(minutes)

    def goes_on(self, until: int) -> None:
        """Simulate until this many minutes have passed."""
        for minute in range(self.minute, until):
            for _ in range(self.chance.choice((1, 2, 2, 3))):
                self.something()
                self.work()
            self.holds()
            if self.share(minute) != self.share(minute + 1):
                self.at_switches.append(self.active())
            self.pass_minute()

    def something(self) -> None:
        kinds = (
            [self.order] * 6 + [self.ping] * 3 + [self.partition] * 4 + [self.weather] * 3 + [self.emr_moves] * 5
            + [self.run_now, self.backfill, self.pause, self.resume, self.resume, self.update, self.resize]
            + [self.cancel_run, self.redrive, self.claim, self.dag_run]
        )  # fmt: skip
        self.chance.choice(kinds)()

    def pass_minute(self) -> None:
        end = (self.clock.now() // MINUTE + 1) * MINUTE
        while self.clock.now() < end:
            coming = [at for queue in self.account.sqs.queues.values() if (at := queue.next()) is not None]
            self.clock.wait_until(min([end, *(at for at in coming if at > self.clock.now())]))
            self.work()
        self.invoke(lambda version: version.tick())
        self.work()

    def work(self) -> None:
        """Deliver the visible messages, and those that follow from them."""
        for _ in range(MAX_ROUNDS):
            if not any([self.deliver("objects"), self.deliver("custom"), self.deliver("hints")]):
                return
        raise AssertionError(f"expected quiet within {MAX_ROUNDS} rounds of messages")

    def deliver(self, name: str) -> bool:
        """Deliver one batch of a queue's messages to one invocation. Returns False if there is none."""
        queue = self.account.queue(name)
        found = queue.receive(self.clock.now())
        if not found:
            return False
        event = queue.event(found)
        handle = {"objects": Version.objects, "custom": Version.custom, "hints": Version.hints}[name]
        answer = self.invoke(lambda version: handle(version, event))
        if answer is not None:
            queue.answered(found, {each["itemIdentifier"] for each in answer["batchItemFailures"]})
        return True

    # -- invocations ---------------------------------------------------------------------------------------------

    def invoke(self, act: Callable[[Version], Any]) -> Any:
        """Let one of the versions run the invocation. Returns None if its Lambda was killed or failed."""
        version = self.new if self.chance.random() < self.share(self.minute) else self.old
        self.played[version.name] += 1
        if self._depth:
            self.crossed[f"{version.name} in {self.rows.player}"] += 1
        outer = (self._calls_left, self._writes_left, self.tables.before_call, self.tables.after_write)
        players = (self.rows.player, self.errors.player)
        self.rows.player = self.errors.player = version.name
        self._depth += 1
        self._calls_left = self.chance.randint(1, 15) if self._is_now(0.25) else None
        self._writes_left = self.chance.randint(1, 5) if self._is_now(0.05) else None
        self.tables.before_call, self.tables.after_write = self._before_call, self._after_write
        try:
            return act(version)
        except Crash:
            self.deaths += 1
        except Exception as error:  # the invocation failed as a whole
            self.errors.found.append((version.name, error))
        finally:
            self._depth -= 1
            self._calls_left, self._writes_left, self.tables.before_call, self.tables.after_write = outer
            self.rows.player, self.errors.player = players
        return None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request of a client, which is repeated if it gets no answer. Returns the answer, None if it
        is a refusal.
        """
        self.requests += 1
        key = {"Idempotency_Key": f"request-{self.requests}"} if method == "POST" else {}
        for _ in range(MAX_REPEATS):
            answer = self.invoke(lambda version: version.request(method, path, body, **key, **headers))
            if answer is not None and answer[0] < 500:
                if answer[0] >= 300:
                    self.refusals[f"{method} {path.removeprefix(NS)}: {answer[1]['error']}"] += 1
                return answer[1] if answer[0] < 300 else None
        raise AssertionError(f"expected an answer to {method} {path}, got {answer} {self.errors.found[-1:]}")

    def _is_now(self, chance: float) -> bool:
        return self.troubled and self._depth == 1 and self.chance.random() < chance

    def _before_call(self) -> None:
        if self._calls_left is None:
            return
        self._calls_left -= 1
        if self._calls_left == 0:
            self._calls_left = None
            crossing = self.chance.choice((self._hints, self._tick, self.something, self.something))
            crossing()

    def _hints(self) -> None:
        self.deliver("hints")

    def _tick(self) -> None:
        self.invoke(lambda version: version.tick())

    def _after_write(self) -> None:
        if self._writes_left is not None:
            self._writes_left -= 1
            if self._writes_left <= 0:
                self._writes_left = None
                raise Crash

    # -- what happens --------------------------------------------------------------------------------------------

    def order(self, name: str = "order") -> None:
        """Send a custom event. Some are delivered twice, or come over the API."""
        known = self.orders if name == "order" else self.pings
        event_id = f"{name}-{len(known) + 1}"
        known.add(event_id)
        if self.chance.random() < 0.3:
            body = {"events": [{"type": name, "id": event_id, "payload": {"n": len(known)}, "timestamp": self._now()}]}
            assert self.ask("POST", f"{NS}/events", body), f"an event was refused: {dict(self.refusals)}"
            return
        event = {
            **BUS, "id": event_id, "detail-type": name, "source": "sluice/demo", "time": self._now(),
            "detail": {"n": len(known)},
        }  # fmt: skip
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            self.account.queue("custom").send(json.dumps(event), self.clock.now())

    def ping(self) -> None:
        self.order("ping")

    def partition(self) -> None:
        """Deliver a new partition, or one that exists already."""
        number = self.chance.randint(1, len(self.partitions) + 2)
        self.partitions.add(number)
        self._notify(day(number))

    def weather(self) -> None:
        self._notify(day(self.chance.randint(1, 9), "weather", f"{self.chance.randint(1, 3)}.csv"))

    def emr_moves(self) -> None:
        """Some job runs begin or end. Their event comes never, once or twice."""
        for run in self.account.emr.living():
            if self.chance.random() < 0.35:
                state = "RUNNING" if run.state == "SUBMITTED" else self.chance.choice(("SUCCESS", "SUCCESS", "FAILED"))
                self.emr_says(run, state, self.chance.choice((0, 1, 1, 2)))

    def emr_says(self, run: JobRun, state: str, times: int = 1) -> None:
        run.state = state
        at = self._now()
        for _ in range(times):
            self._until_done(lambda version: version.run_state(run.id, APPLICATION, state, at))

    def run_now(self) -> None:
        self.ask("POST", self._schedule(documents.DISTURBED) + "/run", {"properties": {"n": self.requests}})

    def dag_run(self) -> None:
        self.ask("POST", f"{APP}/dags/daily/run", {})

    def backfill(self) -> None:
        body = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:21:00Z", "concurrency": 1}
        self.ask("POST", self._schedule(("clock",)) + "/backfills", body)

    def pause(self) -> None:
        self.ask("POST", self._schedule(documents.NAMES) + "/pause", {"mode": self.chance.choice(("hold", "backlog"))})

    def resume(self) -> None:
        self.ask("POST", self._schedule(documents.NAMES) + "/resume")

    def update(self) -> None:
        name = self.chance.choice(documents.DISTURBED)
        document = {**documents.app()["schedules"][name], "priority": self.chance.randint(1, 9), "on_update": "carry"}
        del document["enabled"]
        self.ask("PUT", f"{APP}/schedules/{name}", document)

    def resize(self) -> None:
        self.ask("PUT", f"{NS}/pools/p", {"size": self.chance.randint(3, 5)})

    def cancel_run(self) -> None:
        living = [
            run
            for run in invariants.Stock(self.account.books).runs
            if not states.is_terminal(run.state) and run.schedule.rpartition(".")[2] in documents.DISTURBED
        ]
        if living:
            self.ask("POST", f"/v1/runs/{self.chance.choice(living).run_id}/cancel")

    def redrive(self, refuses: int | None = None) -> None:
        """Redrive the messages that the queue refused for good. Sometimes the queue refuses another one."""
        self.ask("POST", f"{NS}/dead-letters/redrive", {"schedule": "flights.pings"})
        self.account.sqs.refuses = self.chance.choice((0, 1, 1)) if refuses is None else refuses

    def claim(self) -> None:
        """A pull worker claims a run, sends one heartbeat, and reports; another version may answer each request."""
        answer = self.ask("POST", "/v1/workers/demo.w/claim", {"worker": "w1"})
        for lease in (answer or {}).get("leases", ()):
            if self.chance.random() < 0.5:
                self.ask("POST", f"/v1/leases/{lease['lease']}/heartbeat", {"worker": "w1"})
            self.ask("POST", f"/v1/leases/{lease['lease']}/report", {"worker": "w1", "state": "succeeded"})

    # -- what must hold ------------------------------------------------------------------------------------------

    def holds(self) -> invariants.Stock:
        """Check the tables, between any two invocations."""
        made = {run.id: SimpleNamespace(name=run.name) for run in self.account.emr.runs}
        self.account.books.targets = SimpleNamespace(emr=SimpleNamespace(runs=made))
        assert self.rows.lost == [], f"attributes of newer code that older code erased: {self.rows.lost}"
        return invariants.check(self.account.books)

    def active(self) -> tuple[int, int, int]:
        """The numbers of active runs, waiting jobs and waiters."""
        stock = self.holds()
        living = [run for run in stock.runs if not states.is_terminal(run.state)]
        return len(living), len([job for job in stock.jobs if not job.closed]), len(stock.waiters)

    def rest(self) -> None:
        """Let all work end, with the present versions."""
        self.troubled = False
        self.ask("PUT", f"{NS}/pools/p", {"size": 6})
        for _ in range(2):  # a schedule may have been paused after failures
            for name in documents.NAMES:
                self.ask("POST", f"{APP}/schedules/{name}/resume")
            self.redrive(refuses=0)
            self.runs_end()
        invariants.check_awake(self.account.books)
        for name in documents.NAMES:
            self.ask("POST", f"{APP}/schedules/{name}/disable")
        self.ask("POST", f"{APP}/dags/daily/disable")
        self.runs_end(most_left=0)
        self.holds()
        invariants.check_rest(self.account.books, one_clock=False)

    def runs_end(self, most_left: int = 2) -> None:
        """Time passes and job runs succeed, until nothing queues and few runs are active. Repeating
        schedules continue.
        """
        for _ in range(MAX_ROUNDS):
            self.pass_minute()
            self.claim()
            for run in self.account.emr.living():
                self.emr_says(run, "SUCCESS")
            self.work()
            stock = invariants.Stock(self.account.books)
            living = [run for run in stock.runs if not states.is_terminal(run.state)]
            if len(living) <= most_left and not stock.waiters:
                return
        raise AssertionError(f"expected an end within {MAX_ROUNDS} rounds, got {living} {stock.waiters}")

    @property
    def minute(self) -> int:
        return (self.clock.now() - self.began) // MINUTE

    def _schedule(self, names: tuple[str, ...]) -> str:
        return f"{APP}/schedules/{self.chance.choice(names)}"

    def _notify(self, key: str) -> None:
        self.uploads += 1
        body = json.loads(s3_notifications.by_s3(s3_notifications.record("lake-bucket", key, 60, f"e{self.uploads}")))
        body["Records"][0]["eventTime"] = self._now()
        for _ in range(self.chance.choice((1, 1, 2))):
            self.account.queue("objects").send(json.dumps(body), self.clock.now())

    def _until_done(self, act: Callable[[Version], Any]) -> None:
        """An asynchronous invocation, which Lambda repeats if it fails."""
        for _ in range(MAX_REPEATS):
            if self.invoke(act) is not None:
                return
        raise AssertionError(f"expected an invocation that lives, got {self.errors.found[-1:]}")

    def _now(self) -> str:
        return iso(self.clock.now())
