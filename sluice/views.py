"""The reads of a console for programs: what ran when, what triggers what, and what one partition has led to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from sluice import client as transport
from sluice import names
from sluice.client import Document, segment
from sluice.errors import WrongUsage

MAX_NAMES = 100  # names in one request


def instant_of(moment: datetime, field: str) -> str:
    """An instant as the API takes it. Raises `WrongUsage` without an offset, because its zone would be a guess."""
    if moment.tzinfo is None:
        raise WrongUsage(f"expected an instant with its offset, got {moment.isoformat()}", field, "add tzinfo=UTC")
    return moment.isoformat()


class Views(transport.Client):
    """Each method returns the document of the API; docs/api.md has its fields."""

    def timeline(
        self,
        namespace: str,
        since: datetime | None = None,
        until: datetime | None = None,
        schedule: str | None = None,
        workflow: str | None = None,
        limit: int | None = None,
        ids: bool = False,
    ) -> Document:
        """The attempts of a namespace that were claimed in a span, by default the last hour, in columns."""
        query = {
            "from": _instant(since, "since"),
            "to": _instant(until, "until"),
            "schedule": schedule,
            "workflow": workflow,
        }
        return self.get(f"{_namespace(namespace)}/timeline", {**query, "limit": limit, "ids": "true" if ids else None})

    def outcomes(self, namespace: str) -> Document:
        """How the newest 500 attempts of a namespace have ended, and the last eight that failed."""
        return self.get(f"{_namespace(namespace)}/outcomes")

    def graph(
        self,
        namespace: str,
        around: str | None = None,
        up: int | None = None,
        down: int | None = None,
        limit: int | None = None,
    ) -> Document:
        """How schedules, workflows and datasets trigger each other; ``around`` is such as ``dataset:demo.flights``."""
        query: transport.Query = {"around": around, "up": up, "down": down, "limit": limit}
        return self.get(f"{_namespace(namespace)}/graph", query)

    def lineage(self, run_id: str, up: int | None = None, down: int | None = None) -> Document:
        """What led to a run, and what followed from it."""
        return self.get(f"/v1/runs/{segment(run_id)}/lineage", {"up": up, "down": down})

    def days(
        self, schedule: str, since: date | None = None, until: date | None = None, zone: str | None = None
    ) -> Document:
        """How many runs and records of each state a schedule has on each day, both days included."""
        query = {"from": _day(since), "to": _day(until), "zone": zone}
        return self.get(f"{names.path_of(names.SCHEDULE, names.full_name(names.SCHEDULE, schedule))}/days", query)

    def partition(self, dataset: str, *values: str | int) -> Document:
        """One partition of a dataset by its values, ready or not: who waits for it, and which runs it has led to."""
        path = names.path_of(names.DATASET, names.full_name(names.DATASET, dataset))
        return self.get(f"{path}/partition", {"values": "/".join(str(value) for value in values)})

    def change(
        self,
        action: str,
        schedules: Sequence[str],
        mode: str | None = None,
        timeouts: str | None = None,
        dry_run: bool = False,
    ) -> Document:
        """Enable, disable, pause or resume schedules (full names), a hundred of one app in a request. Returns the names
        in ``changed`` and ``unchanged``, and ``failed`` with the error of each."""
        how = {"mode": mode, "timeouts": timeouts, "dry_run": dry_run or None}
        how = {field: value for field, value in how.items() if value is not None}
        done: dict[str, list[object]] = {"changed": [], "unchanged": [], "failed": []}
        full = list(dict.fromkeys(names.full_name(names.SCHEDULE, name) for name in schedules))
        for app in dict.fromkeys(name.rpartition(".")[0] for name in full):
            own = [name for name in full if name.rpartition(".")[0] == app]
            for start in range(0, len(own), MAX_NAMES):
                body = {"action": action, "names": own[start : start + MAX_NAMES], **how}
                report = self.post(f"{names.path_of(names.APP, app)}/bulk", body, repeatable=True)
                for what, found in done.items():
                    found += report[what]
        return done


def _namespace(name: str) -> str:
    return names.path_of(names.NAMESPACE, names.full_name(names.NAMESPACE, name))


def _instant(moment: datetime | None, field: str) -> str | None:
    return None if moment is None else instant_of(moment, field)


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
