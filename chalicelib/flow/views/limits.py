"""Limits as people see them: how much is in use, by whom, and who waits in which order."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core import errors, ids, states
from chalicelib.core.instants import Instant, iso_or_none
from chalicelib.core.limits import names, permits, pools
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.pools import Pool
from chalicelib.core.names import name_in
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import RunState
from chalicelib.core.views import At, View, shown
from chalicelib.flow import facts, lookup
from chalicelib.flow.limits import queues
from chalicelib.flow.views import waiting
from chalicelib.flow.views.queues import WaiterView, waiters_view
from chalicelib.ports import Page, Ports

MAX_SHOWN = 100  # holders, and waiters
MAX_RUNS = 500  # runs that are read to find the holders of a pool
KINDS = ("workflow", "group", "pool", "policy", "rate", "application", "admission", "emr")
SCHEDULE = "schedule:"


class HolderView(View):
    """A run that holds a permit of a limit, since its claim."""

    run_id: str
    attempt: int
    schedule: str
    state: RunState
    since: At | None


class LimitView(View):
    """A limit, its use and its queue. ``in_use`` is null for a limit of starts, and ``maximum`` where only a waiting or
    active job would tell it. Holders and waiters are null in a list of all limits. ``at_least``: there are more."""

    name: str
    kind: str
    of: str
    in_use: int | None
    maximum: int | None
    unit: str
    waiting: int
    next_at: At | None
    holders: list[HolderView] | None
    waiters: list[WaiterView] | None
    at_least: bool


def of_namespace(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[LimitView]:
    """The pools and policies of a namespace, and the limits at which its jobs wait, by name. Holders and waiters are
    left out (null)."""
    lookup.require(ports, "namespace", namespace)
    maxima = _maxima_of_pools(ports, namespace)
    policies = [names.policy_limit(row.name) for row in lookup.definitions_in(ports, "policy", namespace)]
    held, more = waiting.limits_with_waiters(ports, namespace)
    every = sorted({*maxima, *policies, *held})
    wanted = [name for name in every if cursor is None or name > cursor][:limit]
    now = ports.clock.now()
    items = [_view(state, maxima.get(state.limit_name), None, now) for state in ports.jobs.limit_states(wanted)]
    for item in items:
        item["at_least"] = more
    following = wanted[-1] if wanted and wanted[-1] != every[-1] else None
    return Page(tuple(items), following)


def named(ports: Ports, namespace: str, name: str) -> list[LimitView]:
    """One limit with the runs that hold its permits and the jobs that wait. For ``schedule:<name>``, each limit of
    which the jobs of that schedule need a permit, in order. Raises ``invalid`` for any other name."""
    if name.startswith(SCHEDULE):
        asks = _asks_of_schedule(ports, _full(namespace, name.removeprefix(SCHEDULE)))
        return [_in_full(ports, namespace, ask.limit_name, ask) for ask in asks if not permits.is_unlimited(ask)]
    kind, _, owner = name.partition(":")
    if kind not in KINDS or not owner or not (kind in ("emr", "application") or owner.startswith(f"{namespace}.")):
        hint = f"such as workflow:{namespace}.app.name, pool:{namespace}.name or schedule:app.name"
        raise errors.invalid("name", f"the name of a limit of {namespace}", name, hint)
    return [_in_full(ports, namespace, name, None)]


def _full(namespace: str, schedule: str) -> str:
    full = name_in(namespace, schedule)
    if full is None:
        raise errors.invalid(
            "name", f"schedule:app.name of {namespace}", f"{SCHEDULE}{schedule}", "such as schedule:flights.clean"
        )
    return full


def _asks_of_schedule(ports: Ports, name: str, job: Job | None = None) -> tuple[PermitRequest, ...]:
    """The permits that a job of a schedule requests: of ``job``, or of one that would run now."""
    state, _ = lookup.existing(ports, name)
    now = ports.clock.now()
    plain = Job(name, state.generation, "RUNNOW#", "", "run_now", "PENDING_CONSTRAINTS", now)
    known = facts.read(ports, job or plain)
    return permits.with_fallbacks(known.asks(name.partition(".")[0]))


def _in_full(ports: Ports, namespace: str, name: str, ask: PermitRequest | None) -> LimitView:
    state = queues.state_of(ports, name)
    waiters = queues.head_of(ports, state, MAX_SHOWN)
    holders, more = _holders(ports, state, namespace)
    maximum = _maximum(ports, namespace, state, ask, [each.job_schedule for each in waiters], holders)
    view = _view(state, maximum, ask, ports.clock.now())
    first = sorted(holders, key=lambda run: run.claimed_at)[:MAX_SHOWN]
    return {
        **view,
        "holders": [shown(HolderView, run, since=iso_or_none(run.claimed_at)) for run in first],
        "waiters": waiters_view(waiters),
        "at_least": more or state.waiters > len(waiters) or len(holders) > MAX_SHOWN,
    }


def _maximum(
    ports: Ports,
    namespace: str,
    state: LimitState,
    ask: PermitRequest | None,
    waiters: Sequence[str],
    holders: Sequence[Run],
) -> tuple[int | None, str] | None:
    """How many permits a limit has, and the word for one. That of a workflow or group is in the constraints of each
    schedule. So the first waiter's counts, else that of a holder, else that of a schedule of the same name."""
    if ask is not None:
        return ask.maximum
    if names.is_pool(state.limit_name):
        return _maxima_of_pools(ports, namespace).get(state.limit_name)
    own = [state.limit_name.partition(":")[2]] if names.is_of_workflow(state.limit_name) else []
    for schedule in dict.fromkeys((*waiters[:1], *(run.schedule for run in holders[:1]), *own)):
        found = ports.rows.get(ScheduleState, schedule)
        if found is None or not found.exists:
            continue
        asks = {each.limit_name: each for each in _asks_of_schedule(ports, schedule)}
        if state.limit_name in asks:
            return asks[state.limit_name].maximum
    return None


def _maxima_of_pools(ports: Ports, namespace: str) -> dict[str, tuple[int | None, str]]:
    """The limits of all pools of a namespace: the units that each has, and their unit."""
    found: dict[str, tuple[int | None, str]] = {}
    for row in lookup.definitions_in(ports, "pool", namespace):
        pool = Pool.model_validate(row.document)
        found |= {name: (units, pool.unit) for name, units in pools.limits_of(row.name, pool).items()}
    return found


def _view(
    state: LimitState, maximum: tuple[int | None, str] | None, ask: PermitRequest | None, now: Instant
) -> LimitView:
    is_slots = names.returns_permit(state.limit_name)
    most, unit = maximum if maximum is not None else (None, "runs" if is_slots else "starts")
    next_at = max(state.head, now) if names.is_pace(state.limit_name) else None
    if ask is not None:
        next_at = ask.next_entry_at(state, now)
    return {
        "name": state.limit_name,
        "kind": state.limit_name.partition(":")[0],
        "of": names.describe(state.limit_name),
        "in_use": state.active if is_slots else None,
        "maximum": most,
        "unit": unit,
        "waiting": state.waiters,
        "next_at": iso_or_none(next_at),
        "holders": None,
        "waiters": None,
        "at_least": False,
    }


def _holders(ports: Ports, state: LimitState, namespace: str) -> tuple[list[Run], bool]:
    """The runs that hold permits of a limit, and whether there may be more. The row of a workflow or group names them;
    those of a pool are found among the runs in progress."""
    if not names.returns_permit(state.limit_name) or names.is_admission(state.limit_name) or not state.active:
        return [], False
    if names.names_starts(state.limit_name):
        named_runs = [ids.attempt_of(holder) for holder in sorted(state.starts)]
        found = ports.runs.several(named_runs)
    else:
        waking = ports.wakes.soonest("runs", 0, waiting.EVER, waiting.MAX_KEYS)
        of_runs = [ref for ref, _ in waking.refs if ref.kind == "run" and ref.parts[0].startswith(f"{namespace}.")]
        found = ports.runs.several([(ref.parts[0], int(ref.parts[1])) for ref in of_runs[:MAX_RUNS]])
    active = [run for run in found if not states.is_terminal(run.state) and state.limit_name in run.permits]
    units = sum(run.units if names.is_pool(state.limit_name) else 1 for run in active)
    return active, units < state.active
