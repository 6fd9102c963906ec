"""The permit requests of a job, and its request for units of a pool (W3). A schedule's values override its
workflow's."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.definitions.overrides import resources_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import invalid
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.names import pool_limit, share_limit
from chalicelib.core.limits.permits import PermitRequest, Slots
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.limits.pools import Pool, owner_of
from chalicelib.core.triggers import tree


def units_of(pool: Pool, workflow: Workflow, schedule: Schedule) -> int:
    """How many units of a pool a run needs: the vCPUs of its resources, or else the ``slots`` it names, or else one."""
    resources = resources_of(workflow, schedule)
    if pool.unit == "vcpu" and resources is not None and resources.sizes_workers:
        return resources.vcpus
    return schedule.slots or workflow.slots or 1


def ask_of(name: str, pool: Pool, workflow: Workflow, schedule: Schedule) -> Slots:
    """The request of this schedule's jobs for units of a pool. A job that does not fit into its share requests units of
    the common part. At the head of the share's queue it would block all jobs that fit."""
    units = units_of(pool, workflow, schedule)
    common = Slots(pool_limit(name), pool.common, units=units, unit=pool.word, aging=pool.aging_span)
    share = _share_of(name, pool, schedule)
    if share is None or share[1] < units:
        return common
    return replace(common, limit_name=share_limit(name, share[0]), limit=share[1], fallback=common)


def _share_of(name: str, pool: Pool, schedule: Schedule) -> tuple[str, int] | None:
    """The share of a schedule's jobs, and its units: that of the workflow, or else of a group; None without a share."""
    groups = [group for constraint in schedule.constraints for group in constraint.groups()]
    shares = {owner_of(key, name): share.reserved for key, share in pool.shares.items()}
    return next(((owner, shares[owner]) for owner in (schedule.workflow, *groups) if owner in shares), None)


def check_fit(name: str, pool: Pool, workflow: Workflow, schedule: Schedule, field: str) -> None:
    """Raise `SluiceError` for a job that could never start: it needs more units than its share and the common part
    have."""
    resources = resources_of(workflow, schedule)
    if (
        pool.unit == "vcpu"
        and (resources is None or not resources.sizes_workers)
        and not (schedule.slots or workflow.slots)
    ):
        hint = "give the workflow resources, such as {workers: 3, vcpu: 4}"
        raise invalid("resources", f"resources, since pool {name} counts vCPUs", None, hint)
    units, share = units_of(pool, workflow, schedule), _share_of(name, pool, schedule)
    most = max(pool.common, share[1] if share is not None else 0)
    if units > most:
        hint = f"request less, or make pool {name} larger"
        raise invalid(field, f"at most the {most} units of pool {name} that it may use", units, hint)


def asks_of(
    schedule: Schedule,
    workflow: Workflow,
    rate: StartRate,
    namespace: str,
    rates: tuple[str, ...] = (),
    counted: bool = False,
) -> tuple[PermitRequest, ...]:
    """The permits that a job of this schedule requests, in the order of limits. ``rates`` are the rules that count
    every start of the workflow. A target without a lifecycle needs no permit, unless a schedule depends on when, or how
    often, the workflow starts (``counted``)."""
    if not counted and not is_tracked(schedule, workflow):
        return ()
    asks: list[PermitRequest] = [Slots(names.workflow_limit(schedule.workflow), None)]
    asks += [ask for constraint in schedule.constraints for ask in constraint.permits(schedule.workflow, namespace)]
    counted_too = set(rates) - set(rates_of(schedule))
    asks += [permits.rate_window_of(schedule.workflow, rule, binding=False) for rule in sorted(counted_too)]
    asks += workflow.target.permits(rate, resources_of(workflow, schedule))
    return permits.in_order(_tightest(asks))


def is_tracked(schedule: Schedule, workflow: Workflow) -> bool:
    """Whether the starts of this schedule are counted: its target has a lifecycle, or its rules depend on starts."""
    return workflow.target.has_lifecycle or asks_for_starts(schedule)


def asks_for_starts(schedule: Schedule) -> bool:
    """Whether a schedule's rules depend on the starts of its workflow, by any schedule (C5, T13)."""
    elapsed = any(leaf.trigger.counts_starts for leaf in tree.leaves(schedule.trigger))
    return elapsed or bool(rates_of(schedule))


def rates_of(schedule: Schedule) -> tuple[str, ...]:
    """The rate rules of a schedule, ``<limit>/<span in ms>``."""
    return tuple(sorted({rule for constraint in schedule.constraints for rule in constraint.rates()}))


def _tightest(asks: list[PermitRequest]) -> tuple[PermitRequest, ...]:
    """One request for each limit: of two constraints on one limit the tighter holds."""
    found: dict[str, PermitRequest] = {}
    for ask in asks:
        known = found.get(ask.limit_name)
        found[ask.limit_name] = ask.tightened_by(known)
    return tuple(found.values())
