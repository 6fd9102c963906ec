"""Which runs, jobs, records and dead letters a list shows: by app, workflow, target, tag, text, time and deadline.

What a row does not say follows from the present definition of its schedule: the tags, and for jobs and records the
workflow. These definitions are read together, those of one page of rows at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.history import durations
from chalicelib.core.instants import DAY, Instant, iso
from chalicelib.core.jobs.timeout import due_by
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import DeadLetter, Record, Run
from chalicelib.core.why import Sees, Why
from chalicelib.flow import many
from chalicelib.flow.facts import Parsed
from chalicelib.flow.schedules.bulk import Tag
from chalicelib.flow.schedules.stops import of_app
from chalicelib.ports import Ports

Row = Run | Job | Record | DeadLetter
R = TypeVar("R", bound=Row)
USUAL_DAYS = 14  # of a list without a day and without a first instant
MAX_DAYS = 400  # of any list: rows expire before


@dataclass(frozen=True, slots=True)
class Chosen:
    """Conditions of a list; a row must meet all that are given. ``app`` and ``workflow`` are full names. ``state`` is
    that of a run or job, or the kind of a record. A row belongs to the span from ``since`` to before ``until``.
    ``text`` is a part of its id, its cause or its reason, in lower case."""

    app: str | None = None
    workflow: str | None = None
    target: str | None = None
    tag: Tag | None = None
    state: str | None = None
    kind: str | None = None
    text: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    late: bool = False

    def is_in_span(self, at: Instant) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def days(self, now: Instant) -> list[str]:
        """The days of the span, newest first; without a span the last two weeks."""
        last = now if self.until is None else min(now, self.until - 1)
        first = last - (USUAL_DAYS - 1) * DAY if self.since is None else max(self.since, now - MAX_DAYS * DAY)
        return [iso(at * DAY)[:10] for at in range(last // DAY, first // DAY - 1, -1)]


class Facts(NamedTuple):
    """What a row says by itself. None: the definition of its schedule says it."""

    schedule: str
    at: Instant
    state: str
    texts: tuple[str | Why, ...]
    late: bool | None
    workflow: str | None = None
    target: str | None = None
    kind: str | None = None


class _Defined(NamedTuple):
    """What the definition of a schedule says."""

    schedule: Schedule | None
    workflow: Workflow | None
    tags: Mapping[str, str]


class Chooser:
    """The choice of one request. A text is compared with what the reader may see."""

    def __init__(self, ports: Ports, wanted: Chosen, sees: Sees) -> None:
        self._ports, self._wanted, self._sees = ports, wanted, sees
        self._parsed = Parsed()
        self._known: dict[str, _Defined] = {}
        self._tags: dict[str, Mapping[str, str]] = {}

    def kept(self, rows: Sequence[R]) -> list[R]:
        """The rows that meet all conditions, in their order."""
        now = self._ports.clock.now()
        found = [(row, facts) for row in rows if self._fits(facts := facts_of(row, now))]
        asks = [facts.schedule for _, facts in found if self._needs_definition(facts)]
        if not asks:
            return [row for row, _ in found]
        self._learn(asks)
        return [row for row, facts in found if self._fits_definition(row, facts, now)]

    def schedules(self, names: Sequence[str]) -> set[str]:
        """Those of these schedules that are of the app, workflow, target and tag, and whose name has the text. None of
        them is late: only work is."""
        wanted = self._wanted
        if wanted.late:
            return set()
        self._learn(names)
        return {name for name in names if self.is_of(name) and self._is_chosen(name) and (wanted.text or "") in name}

    def is_of(self, name: str | None) -> bool:
        """Whether a schedule or an app is of the wanted app; so is what holds for all apps, which has no name."""
        app = self._wanted.app
        return app is None or name is None or f"{name}.".startswith(f"{app}.")

    def _fits(self, facts: Facts) -> bool:
        """Whether the row itself meets what it says."""
        wanted = self._wanted
        return (
            wanted.is_in_span(facts.at)
            and (wanted.app is None or facts.schedule.startswith(f"{wanted.app}."))
            and wanted.state in (None, facts.state)
            and wanted.kind in (None, facts.kind)
            and (wanted.workflow is None or facts.workflow in (None, wanted.workflow))
            and (wanted.target is None or facts.target in (None, wanted.target))
            and (not wanted.late or facts.late is not False)
            and (wanted.text is None or self._has_text(wanted.text, facts.texts))
        )

    def _has_text(self, text: str, parts: Iterable[str | Why]) -> bool:
        return any(text in (part.seen(self._sees) if isinstance(part, Why) else part).lower() for part in parts)

    def _needs_definition(self, facts: Facts) -> bool:
        wanted = self._wanted
        return (
            wanted.tag is not None
            or (wanted.workflow is not None and facts.workflow is None)
            or (wanted.target is not None and facts.target is None)
            or (wanted.late and facts.late is None)
        )

    def _fits_definition(self, row: Row, facts: Facts, now: Instant) -> bool:
        """Whether a row meets what only the definition of its schedule says. One without a definition does not."""
        if self._wanted.late and facts.late is None and not _is_late_job(row, self._known[facts.schedule], now):
            return False
        return self._is_chosen(facts.schedule, facts.workflow, facts.target)

    def _is_chosen(self, schedule: str, workflow: str | None = None, target: str | None = None) -> bool:
        """Whether the definition of a schedule has the tag, and runs the workflow and the target, if its row names no
        others."""
        defined, wanted = self._known[schedule], self._wanted
        if wanted.tag is not None:
            key, value = wanted.tag
            if key not in defined.tags or value not in (None, defined.tags[key]):
                return False
        workflow = workflow or (defined.schedule.workflow if defined.schedule is not None else None)
        target = target or (defined.workflow.target.type if defined.workflow is not None else None)
        return wanted.workflow in (None, workflow) and wanted.target in (None, target)

    def _learn(self, names: Iterable[str]) -> None:
        """Read the definitions of the schedules of these names that are not known yet."""
        new = sorted(set(names) - self._known.keys())
        known, states = many.states(self._ports, new, strong=False)
        known = many.versions(known, states, strong=False)
        schedules = {state.schedule: self._parsed.schedule(known, state) for state in states}
        wants_workflows = self._wanted.target is not None or self._wanted.late
        if wants_workflows:
            named = sorted({schedule.workflow for schedule in schedules.values() if schedule is not None})
            keys = [kinds.key(Definition, "workflow", name) for name in named]
            known = known.prefetch.read(known, keys, strong=False)
        for name in new:
            schedule = schedules.get(name)
            workflow = None
            if wants_workflows and schedule is not None:
                workflow = self._parsed.workflow(known, schedule.workflow)[0]
            self._known[name] = _Defined(schedule, workflow, self._tags_of(name, schedule))

    def _tags_of(self, name: str, schedule: Schedule | None) -> Mapping[str, str]:
        if self._wanted.tag is None or schedule is None:
            return {}
        app = name.rpartition(".")[0]
        if app not in self._tags:
            self._tags[app] = of_app(self._ports, app)
        return {**self._tags[app], **schedule.tags}


def facts_of(row: Row, now: Instant) -> Facts:
    """What a row says by itself."""
    match row:
        case Run():
            kind = row.request.target.get("type")
            said = (row.run_id, row.fired_by, row.reason)
            return Facts(row.schedule, row.claimed_at, row.state, said, durations.is_late(row, now), row.workflow, kind)
        case Job():
            return Facts(row.schedule, row.created_at, row.state, (row.job_id, row.reason), None, kind=row.kind)
        case DeadLetter():
            texts = (row.run_id, row.reason)
            return Facts(row.schedule, row.failed_at, "", texts, late=False, workflow=row.workflow, target=row.target)
        case Record():
            return Facts(row.schedule, row.recorded_at, row.kind, (row.id, row.reason), late=False)


def _is_late_job(row: Row, defined: _Defined, now: Instant) -> bool:
    """Whether the deadline for the start of a job is over."""
    if not isinstance(row, Job) or defined.schedule is None:
        return False
    start_by, _ = due_by(row, defined.schedule, defined.workflow)
    return start_by is not None and start_by < now
