"""What a job asks of its pool (W3), and what its run is to have (W13): its schedule's word before its workflow's."""

from __future__ import annotations

from chalicelib.core.definitions.overrides import resources_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import invalid
from chalicelib.core.limits import names, permits, rate_window
from chalicelib.core.limits.names import pool_limit, share_limit
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.limits.pools import Pool, owner_of
from chalicelib.core.limits.slots import Slots
from chalicelib.core.triggers import tree


def units_of(pool: Pool, workflow: Workflow, schedule: Schedule) -> int:
    """How much of a pool a run takes: of vCPUs what its resources come to, else the ``slots`` it names, else one."""
    resources = resources_of(workflow, schedule)
    if pool.unit == "vcpu" and resources is not None and resources.sizes_workers:
        return resources.vcpus
    return schedule.slots or workflow.slots or 1


def ask_of(name: str, pool: Pool, workflow: Workflow, schedule: Schedule) -> Slots:
    """What a job of this schedule asks of a pool. One that does not fit into its share asks the common part: at the
    head of the share's queue it would keep from it all that do."""
    units = units_of(pool, workflow, schedule)
    common = Slots(pool_limit(name), pool.common, units=units, unit=pool.word)
    share = _share_of(name, pool, schedule)
    if share is None or share[1] < units:
        return common
    return Slots(share_limit(name, share[0]), share[1], units=units, unit=pool.word, fallback=common)


def _share_of(name: str, pool: Pool, schedule: Schedule) -> tuple[str, int] | None:
    """The share that a schedule's jobs have, and its units: that of its workflow, before that of a group it is in."""
    groups = [group for each in schedule.constraints for group in each.groups()]
    shares = {owner_of(key, name): share.reserved for key, share in pool.shares.items()}
    return next(((owner, shares[owner]) for owner in (schedule.workflow, *groups) if owner in shares), None)


def check_fit(name: str, pool: Pool, workflow: Workflow, schedule: Schedule, field: str) -> None:
    """Refuse what could never start: it takes more than its share, and than the common part, has at best."""
    resources = resources_of(workflow, schedule)
    if (
        pool.unit == "vcpu"
        and (resources is None or not resources.sizes_workers)
        and not (schedule.slots or workflow.slots)
    ):
        hint = "give the workflow resources, such as {workers: 3, vcpu: 4}"
        raise invalid("resources", f"resources, for pool {name} counts vCPUs", None, hint)
    units, share = units_of(pool, workflow, schedule), _share_of(name, pool, schedule)
    most = max(pool.common, share[1] if share is not None else 0)
    if units > most:
        hint = f"take less, or make pool {name} larger"
        raise invalid(field, f"at most the {most} units of pool {name} that it may use", units, hint)


def asks_of(
    schedule: Schedule,
    workflow: Workflow,
    rate: StartRate,
    namespace: str,
    rates: tuple[str, ...] = (),
    counted: bool = False,
) -> tuple[PermitRequest, ...]:
    """The lines that a job of this schedule goes through, in their order. ``rates`` are the rules of the workflow that
    count every start. A target without a lifecycle needs no line unless a schedule asks when, or how often, it starts
    (``counted``)."""
    if not counted and not is_tracked(schedule, workflow):
        return ()
    asks: list[PermitRequest] = [Slots(names.workflow_limit(schedule.workflow), None)]
    asks += [ask for each in schedule.constraints for ask in each.permits(schedule.workflow, namespace)]
    counted_too = set(rates) - set(rates_of(schedule))
    asks += [rate_window.rate_window_of(schedule.workflow, rule, binding=False) for rule in sorted(counted_too)]
    asks += workflow.target.permits(rate, resources_of(workflow, schedule))
    return permits.in_order(_tightest(asks))


def is_tracked(schedule: Schedule, workflow: Workflow) -> bool:
    """Whether the starts of this schedule are counted: its target has runs to follow, or its rules ask for it."""
    return workflow.target.has_lifecycle or asks_for_starts(schedule)


def asks_for_starts(schedule: Schedule) -> bool:
    """Whether a schedule's rules depend on the starts of its workflow, whoever causes them (C5, T13)."""
    elapsed = any(leaf.trigger.counts_starts for leaf in tree.leaves(schedule.trigger))
    return elapsed or bool(rates_of(schedule))


def rates_of(schedule: Schedule) -> tuple[str, ...]:
    """The rules by which the starts of its workflow are to be counted."""
    return tuple(sorted({rule for each in schedule.constraints for rule in each.rates()}))


def _tightest(asks: list[PermitRequest]) -> tuple[PermitRequest, ...]:
    """Two constraints on one limit: the tighter one holds, for a limit is asked once."""
    found: dict[str, PermitRequest] = {}
    for ask in asks:
        known = found.get(ask.limit_name)
        found[ask.limit_name] = _both(known, ask) if isinstance(known, Slots) and isinstance(ask, Slots) else ask
    return tuple(found.values())


def _both(one: Slots, other: Slots) -> Slots:
    """Of two gaps the wider is held by the claim; an `any` counts whatever the other does, and failed runs besides."""
    limits = [each.limit for each in (one, other) if each.limit is not None]
    gaps = [each.gap for each in (one, other) if each.gap is not None]
    return Slots(one.limit_name, min(limits, default=None), max(gaps, default=None), one.any_run or other.any_run)
