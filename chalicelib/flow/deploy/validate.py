"""Validate a deployment as a whole, against the catalog as it will be afterwards (L8, L17)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definition_kinds import plural
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.prefixes import path_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import Problems, SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.permits import rates_of
from chalicelib.core.limits import names
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState, Subscription, Version
from chalicelib.core.schedules import effect, lifecycle, past
from chalicelib.core.why import Mention, Why, plain
from chalicelib.flow import calendars, lookup, many
from chalicelib.flow.dags import actions
from chalicelib.flow.definitions import addresses, buckets, of_kind, prefixes, references, store
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.deploy.plan import AS_SENT, Part, Plan
from chalicelib.flow.limits import pools
from chalicelib.ports import Kind, Over, Page, Ports

MAX_PROBLEMS = 100  # parts with problems after which no further part is checked: each may take milliseconds


def check(ports: Ports, plan: Plan) -> None:
    """Raise SluiceError now for any error that would stop the deployment halfway: in sizes, prefixes, references and
    removals. The error has the problems of the document, up to `MAX_PROBLEMS`."""
    problems = Problems()
    for part in plan.of("schedule", *AS_SENT, "untouched"):
        with problems.caught(_field(part)):
            _ = plan.resolved(ports, part) if part.schedule is not None else None
    problems.end()  # bounds that leave no instant; without instants nothing else can be checked
    stored, ports = ports, many.rows_of(ports, [part.name for part in plan.of("schedule", "replaced")])
    once = ReadOnce(ports.rows), ReadOnce(ports.catalog), ReadOnce(ports.jobs)
    ports = replace(ports, rows=once[0], catalog=once[1], jobs=once[2])
    counted, planned = CountedRates(ports.jobs), PlannedCatalog(ports, plan)
    seen = replace(ports, rows=planned, catalog=planned, jobs=counted)
    _check_prefixes(ports, plan, problems)
    removed = {part.name for part in plan.of("workflow", "deleted")}
    for part in plan.parts:
        try:
            _check_part(ports, seen, plan, part, removed)
        except SluiceError as error:
            problems.add(_in_document(part, error))
        counted.add(_rates_of(ports, plan, part))
        if len(problems) >= MAX_PROBLEMS:
            break
    _check_starters(stored, seen, plan, problems)
    if not problems:  # a removal may follow from a name that is wrong
        with problems.caught():
            check_removals(ports, plan, "keep it in the document, or change these first")
    problems.end()


def _check_part(ports: Ports, seen: Ports, plan: Plan, part: Part, removed: Collection[str]) -> None:
    if part.document is not None:
        store.check_size(part.document)
    if part.document is not None and part.kind == "dataset" and part.action != "kept":
        buckets.check(ports, part.name.partition(".")[0], part.document)
    if part.document is not None and part.kind == "workflow":
        addresses.check_workflow(ports, part.name.partition(".")[0], part.document)
        pools.check_workflow(seen, part.name, part.document)
        _check_datasets(seen, part, part.document)
    if part.schedule is not None:
        _check_schedule(seen, part, plan.resolved(ports, part), removed)
    if part.dag is not None:
        _check_dag(seen, part, part.dag, removed)


def _check_datasets(seen: Ports, part: Part, document: Mapping[str, Any]) -> None:
    """Check the datasets of a workflow. As for schedules, a cycle is a problem of the workflows that change."""
    if not (document.get("reads") or document.get("produces")):
        return
    try:
        references.check_workflow(seen, part.name, Workflow.model_validate(document))
    except SluiceError as error:
        if error.code != "cycle" or part.action != "kept":
            raise


def _check_starters(stored: Ports, seen: Ports, plan: Plan, problems: Problems) -> None:
    """Check the schedules of other apps that run the workflows of a document. Those of its own are checked as parts."""
    for part in plan.of("workflow", "created", "replaced"):
        if part.document is not None and part.document.get("produces"):
            with problems.caught(_field(part)):
                workflow = Workflow.model_validate(part.document)
                references.check_starters(stored, part.name, workflow, plan.app, seen)


def _in_document(part: Part, error: SluiceError) -> SluiceError:
    """The error of a part, with the path of its field in the document of the app."""
    if ids.is_of_message(part.name):  # the default target, which is a field of the app
        return error.renamed(lambda field: f"default_{field}")
    return error.under(_field(part)) if part.kind != "app" else error


def _check_schedule(seen: Ports, part: Part, new: Schedule, removed: Collection[str]) -> None:
    """Check that a schedule names no removed workflow and, if it will be stored, that its references will exist."""
    body = new.model_dump(mode="json")
    missing = sorted(store.named(body) & set(removed))
    if missing:
        _check_kept(missing[0], removed, "workflow" if new.workflow in missing else "trigger")
    if part.action in AS_SENT:
        store.check_size(body)
        problems = Problems()
        with problems.caught():
            _check_references(seen, part, new)
        with problems.caught():
            _check_past(seen, part, new)
        problems.end()


def _check_references(seen: Ports, part: Part, new: Schedule) -> None:
    """Check the references of a schedule. A cycle is a problem of the schedules that change. It is named there alone,
    and an app that has had one for long stays deployable."""
    try:
        references.check(seen, part.name, new)
    except SluiceError as error:
        if error.code != "cycle" or part.action != "kept":
            raise


def _check_past(seen: Ports, part: Part, new: Schedule) -> None:
    """Check that a schedule that changes is not over already. One that stays as it is may be."""
    if part.action == "kept" or part.schedule is None:
        return
    alive = seen.rows.get(ScheduleState, part.name) if part.action == "replaced" else None
    before = None if effect.begins(alive, part.schedule.enabled) else lookup.definition_of(seen, alive)
    past.check(calendars.read(seen, new), seen.clock.now(), before)


def _check_dag(seen: Ports, part: Part, sent: NewDag, removed: Collection[str]) -> None:
    """The same check for a DAG."""
    dag, made = sent.definition(), part.compiled
    for node, schedule in made.nodes.items():
        _check_kept(schedule.workflow, removed, f"nodes.{node}.workflow")
    if part.action in AS_SENT:
        store.check_size(actions.body_of(dag))
        actions.check(seen, dag, made)
        if part.action != "kept":
            actions.check_past(seen, dag, made, sent.enabled)


def _check_kept(workflow: str, removed: Collection[str], field: str) -> None:
    if workflow in removed:
        hint = "add it to the workflows of the document: what an app's document does not name is deleted"
        got = Mention(repr(workflow), "reference", workflow)
        raise SluiceError(
            "unknown_reference", plain("expected a workflow that the document names, got ", got), field, hint
        )


def _check_prefixes(ports: Ports, plan: Plan, problems: Problems) -> None:
    """Check that each dataset may have its prefix when it is put: after the earlier datasets of the document."""
    planned = PlannedPrefixes(ports)
    for part in plan.parts:
        if part.kind != "dataset" or part.document is None:
            continue
        stored = ports.rows.get(Definition, "dataset", part.name)
        before = of_kind.place_of(stored.document) if stored is not None else None
        place = of_kind.place_of(part.document)
        with problems.caught(_field(part)):
            if stored is not None:
                of_kind.check_format(ports, part.name, part.document, stored.document)
        if place == before:
            continue
        with problems.caught(_field(part)):
            prefixes.check(replace(ports, catalog=planned), part.name, place)
        planned.move(part.name, place, before)


def check_removals(ports: Ports, plan: Plan, hint: str, messages_too: bool = False) -> None:
    """Raise ``in_use`` if another app, an untouched schedule or a message refers to a workflow that will be deleted.
    With ``messages_too`` the messages of the app are deleted as well, so they do not count."""
    left = referrers_of_removed(ports, plan, messages_too)
    for name in sorted(left):
        got = f"the default target of {plan.app}" if ids.is_of_message(name) else name
        raise store.in_use("workflow", got, left[name], hint)


def referrers_of_removed(ports: Ports, plan: Plan, messages_too: bool = False) -> dict[str, list[Why]]:
    """What still refers to the workflows that a plan deletes, by their names."""
    removed = [part.name for part in plan.of("workflow", "deleted")]
    decided = {part.name for part in plan.parts if part.kind == "schedule" and part.action != "untouched"}
    decided |= {name for part in plan.of("dag", *AS_SENT, "deleted") for name in actions.owned(ports, part.name)}
    return store.referrers(ports, removed, but=decided | ({plan.app} if messages_too else set()))


def _field(part: Part) -> str:
    return f"{plural(part.kind)}.{part.name.rpartition('.')[2]}"


class ReadOnce(Over):
    """A table whose rows are read once: a repeated read has the answer of the first. The parts of one document share
    most of what they refer to."""

    def __init__(self, table: Any) -> None:
        super().__init__(table)
        self._answers: dict[tuple[Any, ...], Any] = {}

    def __getattr__(self, attribute: str) -> Any:
        read = super().__getattr__(attribute)

        def once(*arguments: Any, **named: Any) -> Any:
            asked = (attribute, arguments, *sorted(named.items()))
            if asked not in self._answers:
                self._answers[asked] = read(*arguments, **named)
            return self._answers[asked]

        return once


def _rates_of(ports: Ports, plan: Plan, part: Part) -> dict[str, tuple[str, ...]]:
    """The rates that a part adds to the limits of workflows."""
    if part.action not in AS_SENT:
        return {}
    made = [plan.resolved(ports, part)] if part.schedule is not None else []
    made += _compiled(part, plan.made_at).values() if part.dag is not None else ()
    found: dict[str, tuple[str, ...]] = {}
    for schedule in made:
        limit_name = names.workflow_limit(schedule.workflow)
        found[limit_name] = (*found.get(limit_name, ()), *rates_of(schedule))
    return found


class PlannedPrefixes(Over):
    """The catalog with the prefixes that the datasets of a plan have by then."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports.catalog)
        self._stored = ports.rows
        self._rows: dict[Place, PrefixRow] = {}

    def move(self, dataset: str, place: Place, before: Place | None) -> None:
        """Let a dataset have a prefix in place of that before. A row without a dataset and without an owner is none."""
        if before is not None and self._at(before).dataset == dataset:
            self._rows[before] = replace(self._at(before), dataset="")
        self._rows[place] = replace(self._at(place), dataset=dataset)

    def prefixes_around(self, bucket: str, prefix: str) -> tuple[PrefixRow, ...]:
        rows = {row.prefix: row for row in self._below.prefixes_around(bucket, prefix)}
        places = (Place(bucket, folder) for folder in path_of(prefix))
        rows |= {place.prefix: self._rows[place] for place in places if place in self._rows}
        return tuple(sorted((row for row in rows.values() if row.namespace), key=lambda row: len(row.prefix)))

    def _at(self, place: Place) -> PrefixRow:
        known = self._rows.get(place) or self._stored.get(PrefixRow, *place)
        return known if known is not None else PrefixRow(*place, "")


class CountedRates(Over):
    """The table of jobs, in which each limit of a workflow also has the rates of the parts that were checked before."""

    def __init__(self, jobs: Any) -> None:
        super().__init__(jobs)
        self._added: dict[str, set[str]] = {}

    def add(self, rates: Mapping[str, Collection[str]]) -> None:
        for limit_name, added in rates.items():
            self._added.setdefault(limit_name, set()).update(added)

    def limit_state(self, limit_name: str) -> LimitState:
        state: LimitState = self._below.limit_state(limit_name)
        added = self._added.get(limit_name, set()) - set(state.rates)
        return replace(state, rates=(*state.rates, *sorted(added))) if added else state


class PlannedCatalog(Over):
    """The catalog as it will be after a plan is carried out: with the definitions that the plan puts, and without those
    that it deletes. Everything else is read from the real catalog. Implements `ports.Rows`, too."""

    def __init__(self, ports: Ports, plan: Plan) -> None:
        super().__init__(ports.catalog)
        self._stored, now = ports.rows, ports.clock.now()
        self._gone: set[tuple[str, str]] = {(part.kind, part.name) for part in plan.parts if part.action == "deleted"}
        self._gone |= {("schedule", name) for part in plan.of("dag", "deleted") for name in part.becomes}
        self._rows: dict[tuple[str, str], Definition] = {
            (part.kind, part.name): Definition(part.kind, part.name, part.document, 0, now)
            for part in plan.parts
            if part.kind != "schedule" and part.document is not None
        }
        self._schedules = {part.name: plan.resolved(ports, part) for part in plan.of("schedule", *AS_SENT)}
        for part in plan.of("dag", *AS_SENT):
            self._schedules |= _compiled(part, now)
        self._index: dict[str, list[Subscription]] = {}
        # Disabled ones too: what a deployment accepts, a later enable must not refuse.
        for name, schedule in self._schedules.items():
            for row in lifecycle.subscriptions(ScheduleState(name, 0, 0, "enabled", now), schedule, 0):
                self._index.setdefault(row.event_key, []).append(row)

    def get(self, row: type[Any], *values: Any) -> Any:
        if row is Definition:
            return None if values in self._gone else self._rows.get(values) or self._stored.get(row, *values)
        if row is ScheduleState:
            return self._schedule_state(*values)
        if row is Version and values[1] == 0 and (own := self._schedules.get(values[0])) is not None:
            return Version(values[0], 0, own.model_dump(mode="json"), 0)
        return self._stored.get(row, *values)

    def of(self, ref: Ref) -> Any:
        return self._stored.of(ref)

    def definitions(self, kind: Kind, parent: str, limit: int, cursor: str | None) -> Page[Definition]:
        page = self._below.definitions(kind, parent, limit, cursor)
        known = self._rows.keys() | self._gone
        own = [row for (of, name), row in self._rows.items() if (of, name.rpartition(".")[0]) == (kind, parent)]
        kept = [row for row in page.items if (kind, row.name) not in known]
        return Page((*kept, *(own if cursor is None else ())), page.cursor)

    def subscriptions(self, event_key: str, limit: int, cursor: str | None) -> Page[Subscription]:
        """The subscriptions after the plan, without those of schedules that it puts or deletes. It includes the new
        ones of the schedules that it puts, as if all were enabled."""
        page = self._below.subscriptions(event_key, limit, cursor)
        kept = [row for row in page.items if row.schedule not in self._schedules]
        kept = [row for row in kept if ("schedule", row.schedule) not in self._gone]
        own = self._index.get(event_key, []) if cursor is None else []
        return Page((*kept, *own), page.cursor)

    def _schedule_state(self, schedule: str) -> ScheduleState | None:
        if ("schedule", schedule) in self._gone:
            return None
        current = self._stored.get(ScheduleState, schedule)
        missing = schedule in self._schedules and (current is None or not current.exists)
        return ScheduleState(schedule, 0, 0, "disabled", 0) if missing else current


def _compiled(part: Part, now: Instant) -> dict[str, Schedule]:
    """The schedules of a DAG that was sent, with full names, and with instants in place of spans."""
    namespace, app, _ = part.name.split(".")
    return {name: schedule.resolved(namespace, app, now) for name, schedule in part.compiled.schedules.items()}
