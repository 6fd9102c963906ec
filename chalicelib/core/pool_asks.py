"""What a job asks of its pool (W3), and what its run is to have (W13): its schedule's word before its workflow's."""

from __future__ import annotations

from chalicelib.core.constraints import Concurrency
from chalicelib.core.errors import invalid
from chalicelib.core.lines import Slots, pool_line, share_line
from chalicelib.core.model import Schedule
from chalicelib.core.pools import Pool, owner_of
from chalicelib.core.resources import Resources
from chalicelib.core.workflows import Workflow


def pool_of(workflow: Workflow, schedule: Schedule) -> str | None:
    """The full name of the pool that a schedule's jobs take from. A short one is of the namespace of the workflow."""
    if schedule.pool is not None or workflow.pool is None:
        return schedule.pool
    return workflow.pool if "." in workflow.pool else f"{schedule.workflow.partition('.')[0]}.{workflow.pool}"


def units_of(pool: Pool, workflow: Workflow, schedule: Schedule) -> int:
    """How much of a pool a run takes: of vCPUs what its resources come to, else the ``slots`` it names, else one."""
    resources = resources_of(workflow, schedule)
    if pool.unit == "vcpu" and resources is not None and resources.sizes_workers:
        return resources.vcpus
    return schedule.slots or workflow.slots or 1


def resources_of(workflow: Workflow, schedule: Schedule) -> Resources | None:
    """What a run of this schedule is to have: the workflow's, and over them, one by one, the schedule's (W13)."""
    if workflow.resources is None or schedule.resources is None:
        return schedule.resources or workflow.resources
    own = schedule.resources.model_dump(exclude_none=True)
    return Resources.model_validate({**workflow.resources.model_dump(exclude_none=True), **own})


def ask_of(name: str, pool: Pool, workflow: Workflow, schedule: Schedule) -> Slots:
    """What a job of this schedule asks of a pool. One that does not fit into its share asks the common part: at the
    head of the share's queue it would keep from it all that do."""
    units = units_of(pool, workflow, schedule)
    common = Slots(pool_line(name), pool.common, units=units, unit=pool.word)
    share = _share_of(name, pool, schedule)
    if share is None or share[1] < units:
        return common
    return Slots(share_line(name, share[0]), share[1], units=units, unit=pool.word, spare=common)


def _share_of(name: str, pool: Pool, schedule: Schedule) -> tuple[str, int] | None:
    """The share that a schedule's jobs have, and its units: that of its workflow, before that of a group it is in."""
    groups = [each.group for each in schedule.constraints if isinstance(each, Concurrency) and each.group is not None]
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
