"""What the shell offers for a word: kinds and fixed values from here, names and ids from the API.

The API is asked with short timeouts. If it does not answer, there is nothing to offer, and nothing is printed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from sluice import states
from sluice.cli import filters

WITHIN = 2.0  # seconds for all requests of one completion
CONNECT_SECONDS, READ_SECONDS = 0.5, 1.5
MAX_APPS = 5  # apps whose parts are listed; the name of an app is offered for the others
JOB_STATES = ("PENDING_TRIGGER", "PENDING_CONSTRAINTS", "PENDING_LAUNCH")
RUN_STATES = ("STARTING", "RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED")
FIRST = 100  # how many items of a list are read

# Fixed values, by the last word of the command and the name of the parameter; None stands for any command.
VALUES: dict[tuple[str | None, str], tuple[str, ...]] = {
    ("runs", "--state"): RUN_STATES,
    ("jobs", "--state"): JOB_STATES,
    ("backfill", "--state"): filters.OF_ROUNDS,
    ("reprocess", "--state"): filters.OF_ROUNDS,
    (None, "--state"): states.STATES,
    ("put", "--target"): (),  # of a message: a document
    (None, "--target"): filters.TARGETS,
    (None, "--waits-for"): states.HOLDS,
    (None, "--mode"): tuple(states.MODES),
    (None, "FROM"): ("crontab", "eventbridge", "airflow", "cdap"),
    ("fires", "--state"): states.OF_EVENTS,
    ("records", "--kind"): ("aborted", "expired", "skipped", "dropped", "coalesced", "late"),
    ("report", "--sort"): ("name", "cost", "failed", "late", "slow", "runs"),
}
# The kind of a name, by the group or command and the name of the parameter. The other names are those of schedules.
KINDS_OF_NAMES = {
    ("message", "NAME"): "message",
    ("dags", "NAME"): "dag",
    ("datasets", "NAME"): "dataset",
    (None, "DATASET"): "dataset",
    (None, "--dataset"): "dataset",
    (None, "--workflow"): "workflow",
    (None, "--upto"): "workflow",
    (None, "--pool"): "pool",
    (None, "--namespace"): "namespace",
    (None, "NAMESPACE"): "namespace",
    (None, "--app"): "app",
    (None, "--schedule"): "schedule",
    (None, "NAME"): "schedule",
    ("logs", "ID|SCHEDULE"): "schedule",
}
# Which list has the ids of a command's argument, and under which field.
JOBS, RUNS = ("jobs", "job_id"), ("runs", "run_id")
IDS = {("jobs", "JOB"): JOBS, ("job", "ID"): JOBS, ("runs", "ID"): RUNS, ("run", "ID"): RUNS}
IDS |= {("logs", "ID|SCHEDULE"): RUNS}


def offered(context: Any, param: Any, incomplete: str) -> list[str]:
    """What may follow ``incomplete``."""
    try:
        found = sorted({word for word in _words(context, _name(param), incomplete) if word.startswith(incomplete)})
    except Exception:  # an answer that never came, or a setting that is missing: a shell has no place for errors
        return []
    return found


def _name(param: Any) -> str:
    """The metavar of an argument such as KIND, or the long name of an option."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name)
    return next((name for name in param.opts if name.startswith("--")), "")


def _words(context: Any, name: str, incomplete: str) -> Iterator[str]:
    commands = _commands(context)
    for command in (*reversed(commands), None):
        if (command, name) in VALUES:
            yield from VALUES[command, name]
            return
    if name == "KIND":
        from sluice.names import KINDS

        yield from (kind.collection for kind in KINDS)
        yield from (kind.name for kind in KINDS if kind.name.startswith(incomplete) and incomplete)
        return
    for command in commands:
        if (command, name) in IDS:
            yield from _ids(context, *IDS[command, name])
            break
    kind = context.params.get("kind") if name == "NAME" else None
    for command in (*commands, None):
        kind = kind or KINDS_OF_NAMES.get((command, name))
    if kind:
        yield from _Names(context, incomplete).of(kind)


def _commands(context: Any) -> list[str]:
    """The words of the command after ``sluice``, such as ``why`` and ``schedule``."""
    found: list[str] = []
    while context.parent is not None:
        found.insert(0, str(context.info_name))
        context = context.parent
    return found


def _ids(context: Any, collection: str, field: str) -> Iterator[str]:
    from sluice.client import segment

    names = _Names(context, "")
    if names.namespace:
        path = f"/v1/namespaces/{segment(names.namespace)}/{collection}"
        yield from (str(item[field]) for item in names.page(path))


class _Names:
    """Full names of definitions, and short ones where -n and -a give the rest."""

    def __init__(self, context: Any, incomplete: str) -> None:
        from sluice import names
        from sluice.client import Client, url_of
        from sluice.signing import SignedHttp

        self._incomplete = incomplete
        given = context.params
        app = given.get("app") or given.get("app_name")
        self.namespace, self._app = names.place(given.get("namespace") or os.environ.get("SLUICE_NAMESPACE"), app)
        url = url_of(os.environ)
        http = SignedHttp(url, connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS)
        self._client = Client(url, http, pause=lambda seconds: None)
        self._end = time.monotonic() + WITHIN

    def page(self, path: str) -> list[Any]:
        """The first page of a list; nothing once the time is over."""
        if time.monotonic() > self._end:
            return []
        return list(self._client.get(path, {"limit": FIRST})["items"])

    def of(self, word: str) -> Iterator[str]:
        from sluice import names

        kind = names.kind_of(word)
        if kind is names.NAMESPACE:
            yield from self._listed(kind, [])
            return
        typed = self._incomplete.split(".")
        for namespace in self._namespaces(typed):
            if len(kind.parts) == 2:
                for full in self._listed(kind, [namespace]):
                    yield from self._spelled(full, namespace)
                continue
            apps = [self._app] if self._app else self._apps(namespace, typed)
            for app in apps[:MAX_APPS]:
                for full in self._listed(kind, [namespace, app]):
                    yield from self._spelled(full, namespace, app)
            yield from (f"{namespace}.{app}." for app in apps[MAX_APPS:])

    def _namespaces(self, typed: list[str]) -> list[str]:
        if self.namespace:
            return [self.namespace]
        if len(typed) > 1:
            return typed[:1]
        from sluice import names

        return [name for name in self._listed(names.NAMESPACE, []) if name.startswith(typed[0])]

    def _apps(self, namespace: str, typed: list[str]) -> list[str]:
        from sluice import names

        found = [full.rpartition(".")[2] for full in self._listed(names.APP, [namespace])]
        if len(typed) < 2 or typed[0] != namespace:
            return found
        exact = len(typed) > 2
        return [app for app in found if (app == typed[1] if exact else app.startswith(typed[1]))]

    def _listed(self, kind: Any, parents: list[str]) -> Iterator[str]:
        from sluice import names

        for item in self.page(names.collection_path(kind, parents)):
            name = str(item["name"])
            if not names.is_internal(name):
                yield name

    def _spelled(self, full: str, namespace: str, app: str | None = None) -> Iterator[str]:
        """The full name, or the shorter one that the options complete."""
        yield full
        if self.namespace == namespace:
            yield full.removeprefix(f"{namespace}.")
            if app is not None and self._app == app:
                yield full.removeprefix(f"{namespace}.{app}.")
