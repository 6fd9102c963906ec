"""Limits as people see them: how much is in use, by whom, and who waits in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chalicelib.core import errors, ids, states
from chalicelib.core.constraints.constraint import Constraint
from chalicelib.core.instants import Instant, iso_or_none
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names, permits, pools
from chalicelib.core.limits.permits import Pace, PermitRequest, Slots
from chalicelib.core.limits.policies import Policy
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
from chalicelib.flow.views import lists
from chalicelib.flow.views.queues import MAX_COUNTED, WaiterView, waiters_view
from chalicelib.ports import Page, Ports

MAX_SHOWN = 100  # holders, and waiters, of a limit in full
MAX_HOLDERS = 20  # runs of each limit in an explanation
MAX_RUNS = 500  # runs that are read to find the holders of a pool
KINDS = ("workflow", "dag", "group", "pool", "policy", "rate", "application", "admission", "emr")
SCHEDULE = "schedule:"


class HolderView(View):
    """A run that holds a permit of a limit, since its claim."""

    run_id: str
    attempt: int
    schedule: str
    state: RunState
    since: At | None


class LimitView(View):
    """A limit, its use and its queue. ``rule`` says what it allows; it and ``maximum`` are null where only a schedule
    would tell it and none was read. ``in_use`` of a rate are its starts that count now. It is null for a pace, of which
    ``next_at`` is when the next start may begin. Holders and waiters are null in a list of all limits. ``at_least``:
    there are more."""

    name: str
    kind: str
    of: str
    rule: str | None
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
    asks = own_asks(ports, namespace)
    held, more = lists.limits_among(ports.wakes.soonest("jobs", 0, lists.EVER, lists.MAX_KEYS), namespace)
    every = sorted({*asks, *held})
    wanted = [name for name in every if cursor is None or name > cursor][:limit]
    items = listed(ports, wanted, asks | asks_of_emr(ports))
    for item in items:
        item["at_least"] = more
    following = wanted[-1] if wanted and wanted[-1] != every[-1] else None
    return Page(tuple(items), following)


def listed(ports: Ports, wanted: Sequence[str], asks: Mapping[str, PermitRequest]) -> list[LimitView]:
    """The views of these limits, without holders and waiters. ``asks`` has a request of those that are known."""
    now = ports.clock.now()
    return [
        _view(state, queues.waiting(ports, state, MAX_SHOWN), asks.get(state.limit_name) or _of_name(state), now)
        for state in ports.jobs.limit_states(wanted)
    ]


def own_asks(ports: Ports, namespace: str) -> dict[str, PermitRequest]:
    """A request for each limit that a document of the namespace defines: for those of its pools, and its policies."""
    asks: dict[str, PermitRequest] = {}
    for row in lookup.definitions_in(ports, "pool", namespace):
        pool = Pool.model_validate(row.document)
        asks |= {name: Slots(name, units, unit=pool.word) for name, units in pools.limits_of(row.name, pool).items()}
    for row in lookup.definitions_in(ports, "policy", namespace):
        asks[names.policy_limit(row.name)] = Policy.model_validate(row.document).pace(row.name)
    return asks


def asks_of_emr(ports: Ports) -> dict[str, PermitRequest]:
    """A request for each limit of EMR that the installation has: the runs of its applications, and their starts."""
    settings = ports.settings
    asks: dict[str, PermitRequest] = {}
    for application, most in settings.emr_run_limits:
        name = names.application_limit(application)
        asks[name] = Slots(name, most)
    asks[names.EMR_STARTS] = Pace(names.EMR_STARTS, settings.start_spacing, settings.start_burst)
    return asks


def _of_name(state: LimitState) -> PermitRequest | None:
    """The request that the name of a rate tells; None for any other limit."""
    kind, _, rest = state.limit_name.partition(":")
    workflow, _, rule = rest.rpartition(":")
    return permits.rate_window_of(workflow, rule, binding=True) if kind == "rate" else None


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


def _asks_of_schedule(ports: Ports, name: str) -> tuple[PermitRequest, ...]:
    """The permits that a job of a schedule would request now."""
    state, _ = lookup.existing(ports, name)
    known = facts.read(ports, begun_now(state, ports.clock.now()))
    return permits.with_fallbacks(known.asks(name.partition(".")[0]))


def begun_now(state: ScheduleState, now: Instant) -> Job:
    """A job that a schedule would have if it ran now, to see what it would wait for. It is not stored."""
    return Job(state.schedule, state.generation, "RUNNOW#", "", "run_now", "PENDING_CONSTRAINTS", now)


def _in_full(ports: Ports, namespace: str, name: str, ask: PermitRequest | None) -> LimitView:
    state = queues.state_of(ports, name)
    waiters = queues.head_of(ports, state, MAX_SHOWN)
    holders, more = _holders(ports, state, namespace)
    known = ask or _ask_of(ports, namespace, state, [each.job_schedule for each in waiters], holders)
    view = _view(state, queues.waiting(ports, state, MAX_COUNTED), known, ports.clock.now())
    first = sorted(holders, key=lambda run: run.claimed_at)[:MAX_SHOWN]
    return {
        **view,
        "holders": [shown(HolderView, run, since=iso_or_none(run.claimed_at)) for run in first],
        "waiters": waiters_view(waiters),
        "at_least": more or state.waiters > len(waiters) or len(holders) > MAX_SHOWN,
    }


def _ask_of(
    ports: Ports, namespace: str, state: LimitState, waiters: Sequence[str], holders: Sequence[Run]
) -> PermitRequest | None:
    """A request for a limit, which says how many permits it has. That for a workflow or group is in the constraints of
    each schedule. So the first waiter's counts, else that of a holder, else that of a schedule of the same name."""
    fixed = (own_asks(ports, namespace) | asks_of_emr(ports)).get(state.limit_name) or _of_name(state)
    if fixed is not None or names.is_pool(state.limit_name):
        return fixed
    kind, _, owner = state.limit_name.partition(":")
    own = {"workflow": [owner], "dag": [ids.dag_start(owner)]}.get(kind, [])
    for schedule in dict.fromkeys((*waiters[:1], *(run.schedule for run in holders[:1]), *own)):
        found = ports.rows.get(ScheduleState, schedule)
        if found is None or not found.exists:
            continue
        asks = {each.limit_name: each for each in _asks_of_schedule(ports, schedule)}
        if state.limit_name in asks:
            return asks[state.limit_name]
    return None


def _view(state: LimitState, waiting: int, ask: PermitRequest | None, now: Instant) -> LimitView:
    is_slots = names.returns_permit(state.limit_name)
    most, unit = ask.maximum if ask is not None else (None, "runs" if is_slots else "starts")
    next_at = max(state.head, now) if names.is_pace(state.limit_name) else None
    in_use = state.active if is_slots else None
    if ask is not None:
        next_at = ask.next_entry_at(state, now)
        in_use = state.active if is_slots else ask.used(state, now)
    return {
        "name": state.limit_name,
        "kind": state.limit_name.partition(":")[0],
        "of": names.describe(state.limit_name),
        "rule": permits.rule(ask) if ask is not None else None,
        "in_use": in_use,
        "maximum": most,
        "unit": unit,
        "waiting": waiting,
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
    found = _runs_at(ports, state, namespace)
    active = [run for run in found if not states.is_terminal(run.state) and state.limit_name in run.permits]
    units = sum(run.units if names.is_pool(state.limit_name) else 1 for run in active)
    return active, units < state.active


def _runs_at(ports: Ports, state: LimitState, namespace: str) -> Sequence[Run]:
    """The runs among which the holders of a limit are."""
    if names.names_starts(state.limit_name):
        return ports.runs.several([ids.attempt_of(holder) for holder in sorted(state.starts)])
    return lists.active_runs(ports, namespace, MAX_RUNS)[0]


class UseView(View):
    """The permits of a limit that are taken, of how many, and by which runs."""

    used: int | None
    max: int | None
    held_by: list[str] | None


class UseOfLimitView(UseView):
    """A limit that may make a job wait. ``rule`` says what it allows, ``waiting`` counts its queue, and ``waits_here``
    is whether this job is in it."""

    name: str
    text: str
    rule: str
    waiting: int
    waits_here: bool


NONE: UseView = {"used": None, "max": None, "held_by": None}


def use_by_constraint(constraint: Constraint, job: Job, known: Facts, now: Instant) -> UseView:
    """The use of the limit of a constraint; only nulls if it has none, or only counts."""
    workflow = known.schedule.workflow if known.schedule is not None else ""
    asks = tuple(constraint.permits(workflow, job.schedule.partition(".")[0]))
    return _use(asks[0], known.limit_state(asks[0].limit_name), now) if asks else NONE


def use_by_job(
    ports: Ports, job: Job, known: Facts, asks: Iterable[PermitRequest], now: Instant
) -> list[UseOfLimitView]:  # fmt: skip
    """The use of each limit that may make a job wait, in the order in which the job acquires permits."""
    bounds = [ask for ask in permits.with_fallbacks(tuple(asks)) if not permits.is_unlimited(ask)]
    return [
        {
            "name": ask.limit_name,
            "text": names.describe(ask.limit_name),
            "rule": permits.rule(ask),
            **_use(ask, state, now),
            "waiting": queues.waiting(ports, state, MAX_COUNTED),
            "waits_here": job.queued_in is not None and names.whole(job.queued_in) == ask.limit_name,
        }
        for ask, state in ((ask, known.limit_state(ask.limit_name)) for ask in bounds)
    ]


def _use(ask: PermitRequest, state: LimitState, now: Instant) -> UseView:
    """The use of a limit, from a request of it and its state. ``held_by`` is None if the limit does not list the runs
    that hold its permits."""
    used, (maximum, _) = ask.used(state, now), ask.maximum
    if used is None:
        return NONE
    return {"used": used, "max": maximum, "held_by": None if ask.records_claim else _holding(state)}


def _holding(state: LimitState) -> list[str] | None:
    """The runs that hold slots of a limit, the longest first; None if the limit does not list them."""
    if not names.names_starts(state.limit_name):
        return None
    first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return [ids.attempt_of(holder)[0] for holder, _ in first[:MAX_HOLDERS]]
