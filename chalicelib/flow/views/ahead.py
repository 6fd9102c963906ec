"""The fires of all schedules of a namespace in a span of time, from their timers and from prepared fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.core.fires import upcoming
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.states import Mode
from chalicelib.core.views import At, FromAt, View
from chalicelib.flow import many
from chalicelib.flow.facts import Parsed
from chalicelib.flow.views import lists
from chalicelib.ports import Ports, Soonest

MAX_TIMERS = 2_000  # that one request reads, each with the state and the definition of its schedule
MAX_FIRES = 2_000  # of an answer, about 300 kB
MIN_TIMERS = 50  # that a request for few fires reads, if there are so many
MAX_COMPUTED = 20_000  # fires that one request computes


class FireView(View):
    """A fire to come. ``skipped``: a user asked to skip it."""

    schedule: str
    nominal_at: At
    due_at: At
    skipped: bool
    state: Mode


class FiresView(FromAt):
    """The fires in a span, by when they are due. With ``at_least`` fires after ``complete_to`` may be missing."""

    to: At
    at_least: bool
    complete_to: At
    items: list[FireView]


def between(ports: Ports, namespace: str, since: Instant, until: Instant, limit: int = MAX_FIRES) -> FiresView:
    """The first ``limit`` fires that are due from ``since`` to ``until``, ordered by when they are due.

    A timer has a ``wake_at`` before its next fire. So the timers that wake by ``until``, and the fires that were
    prepared already, are all that may fire. With ``at_least`` fires after ``complete_to`` may be missing."""
    timers, complete = _timers(ports, namespace, until, min(MAX_TIMERS, max(MIN_TIMERS, 2 * limit)))
    prepared, no_others = _prepared(ports, namespace, since, until, limit)
    named = {timer.schedule for timer in timers} | {name for name, _, _ in prepared}
    known, states = _states(ports, named)
    computed, end = _computed(known, states, timers, since, until)
    found = computed | {(at, due, name) for name, at, due in prepared if name in states}
    complete = min(complete, no_others, end)
    ordered = sorted((due, nominal, name) for nominal, due, name in found if since <= due <= until)
    complete = min(complete, until, *(due for due, _, _ in ordered[limit : limit + 1]))
    return {
        "from": iso(since),
        "to": iso(until),
        "at_least": complete < until or len(ordered) > limit,
        "complete_to": iso(complete),
        "items": [_view(states[name], nominal, due) for due, nominal, name in ordered[:limit]],
    }


def _timers(ports: Ports, namespace: str, until: Instant, most: int) -> tuple[list[Timer], Instant]:
    """The first timers of a namespace that wake by ``until``, and the instant up to which no other one wakes. The index
    holds the timers of all namespaces, so more of its keys are read than timers."""
    waking, own = _waking(ports, namespace, until, min(MAX_TIMERS, 4 * most))
    if waking.complete_to is not None and len(own) <= most < MAX_TIMERS:
        waking, own = _waking(ports, namespace, until, MAX_TIMERS)
    complete = waking.complete_to if waking.complete_to is not None else lists.EVER
    complete = min([complete, *(at for _, at in own[most : most + 1])])
    names = [name for name, _ in own[:most]]
    return many.rows(ports, Timer, ((name,) for name in names), strong=False), complete


def _waking(
    ports: Ports, namespace: str, until: Instant, keys: int
) -> tuple[Soonest, list[tuple[str, Instant]]]:  # fmt: skip
    """The first keys of the index, and the timers of a namespace among them with their instants."""
    waking = ports.wakes.soonest("catalog", 0, until, keys)
    timers = ((ref.parts[0], at) for ref, at in waking.refs if ref.kind == "timer")
    return waking, [(name, at) for name, at in timers if name.startswith(f"{namespace}.")]


def _prepared(
    ports: Ports, namespace: str, since: Instant, until: Instant, most: int
) -> tuple[list[tuple[str, Instant, Instant]], Instant]:
    """The first fires that were prepared: schedule, nominal instant, and when they are due; and the instant up to which
    these are all. Timers have passed them."""
    ahead = min(until, ports.clock.now() + 2 * ports.settings.horizon_seconds * 1000)
    waking = ports.wakes.soonest("jobs", since, ahead, MAX_FIRES)
    fires = [(ref, at) for ref, at in waking.refs if ref.kind == "job" and sort_keys.is_fire(ref.parts[2])]
    own = [(ref, at) for ref, at in fires if ref.parts[0].startswith(f"{namespace}.")]
    jobs = lists.of_refs(ports, [ref for ref, _ in own[:most]])
    found = [
        (job.schedule, job.nominal_at if job.nominal_at is not None else job.due_at, job.due_at)
        for job in jobs
        if job.due_at is not None
    ]
    complete = waking.complete_to if waking.complete_to is not None else lists.EVER
    return found, min([complete, *(at for _, at in own[most : most + 1])])


def _states(ports: Ports, names: set[str]) -> tuple[Ports, dict[str, ScheduleState]]:
    known, found = many.states(ports, sorted(names), strong=False)
    living = [state for state in found if state.exists]
    return many.versions(known, living, strong=False), {state.schedule: state for state in living}


def _computed(
    ports: Ports, states: Mapping[str, ScheduleState], timers: Sequence[Timer], since: Instant, until: Instant
) -> tuple[set[tuple[Instant, Instant, str]], Instant]:
    """The fires of timers from ``since`` to ``until``: the nominal instant of each, when it is due, and its schedule;
    and the instant up to which they are complete."""
    parsed, complete = Parsed(), lists.EVER
    share = max(2, MAX_COMPUTED // max(1, len(timers)))
    found: set[tuple[Instant, Instant, str]] = set()
    for timer in timers:
        schedule = parsed.schedule(ports, states.get(timer.schedule))
        if schedule is None:
            continue
        fires = upcoming.fires(schedule, since - 1, share, timer, until=until)
        found |= {(fire.nominal, fire.due, timer.schedule) for fire in fires}
        if len(fires) == share:
            complete = min(complete, fires[-1].due)
    return found, complete


def _view(state: ScheduleState, nominal: Instant, due: Instant) -> FireView:
    return {
        "schedule": state.schedule,
        "nominal_at": iso(nominal),
        "due_at": iso(due),
        "skipped": nominal in state.skips,
        "state": state.mode,
    }
