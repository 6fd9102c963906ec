"""The names of limits: the kind of a limit, its owner, and its name in texts for users."""

from __future__ import annotations

from chalicelib.core.instants import Millis

# AWS counts StartJobRun by account and region, so the starts of all applications share one pace (E8).
EMR_STARTS = "emr:starts"


def describe(limit_name: str) -> str:
    """The name of a limit in texts for users: `rate:a.b.c:2/3600000` is ``workflow a.b.c``."""
    kind, _, name = whole(limit_name).partition(":")
    if kind == "rate":
        return f"workflow {name.partition(':')[0]}"
    if kind == "pool":
        pool, _, owner = name.partition(":")
        return f"the share of {owner} in pool {pool}" if owner else f"pool {pool}"
    if kind == "admission":
        return f"policy {name.partition(':')[0]}"
    texts = {"workflow": f"workflow {name}", "group": f"group {name}", "policy": f"policy {name}", "dag": f"DAG {name}"}
    texts["application"] = f"EMR application {name}"
    return (texts | {"emr": "the EMR start rate of this account"}).get(kind, limit_name)


def returns_permit(limit_name: str) -> bool:
    """Whether a permit of this limit is released when the run ends. Permits of a pace or a rate window never are."""
    return not (is_pace(limit_name) or is_rate_window(limit_name))


def is_rate_window(limit_name: str) -> bool:
    return limit_name.startswith("rate:")


def is_pace(limit_name: str) -> bool:
    return limit_name.startswith(("emr:", "policy:"))


def is_target_pace(limit_name: str) -> bool:
    """Whether a pace is a quota of the target, and not a policy that a user defined."""
    return limit_name.startswith("emr:")


def workflow_limit(workflow: str) -> str:
    return f"workflow:{workflow}"


def is_of_workflow(limit_name: str) -> bool:
    return limit_name.startswith("workflow:")


def numbers(limit_name: str) -> bool:
    """Whether this limit numbers its starts: the limit of a workflow does (H1)."""
    return is_of_workflow(limit_name)


def dag_limit(dag: str) -> str:
    """The limit on the runs of a DAG. Runs of an older graph of it count, too (W20)."""
    return f"dag:{dag}"


def group_limit(namespace: str, group: str) -> str:
    return f"group:{namespace}.{group}"


def rate_limit(workflow: str, rule: str) -> str:
    """``rule`` is ``<limit>/<span in ms>``. Each rule of a workflow is a limit of its own, so no rule delays
    another."""
    return f"rate:{workflow}:{rule}"


def rate_rule(limit: int, span: Millis) -> str:
    return f"{limit}/{span}"


def application_limit(application: str) -> str:
    """The limit on the concurrent runs of an EMR application (W3)."""
    return f"application:{application}"


def policy_limit(policy: str) -> str:
    return f"policy:{policy}"


def part(limit_name: str, number: int) -> str:
    """The name of a part of the queue of a policy. A part has a row and a partition of its own."""
    return f"{limit_name}/{number}"


def whole(limit_name: str) -> str:
    """The limit to which a part of a queue belongs; any other limit itself."""
    return limit_name.partition("/")[0] if limit_name.startswith("policy:") else limit_name


def number_of(limit_name: str) -> int:
    """The number of a part of a queue; 0 for a limit itself."""
    return int(limit_name.partition("/")[2] or 0) if limit_name.startswith("policy:") else 0


def is_pool(limit_name: str) -> bool:
    return limit_name.startswith("pool:")


def pool_limit(pool: str) -> str:
    """The limit of the common part of a pool, which all workflows share."""
    return f"pool:{pool}"


def share_limit(pool: str, owner: str) -> str:
    """The limit of the units of a pool that are reserved for a workflow (its full name) or a group."""
    return f"pool:{pool}:{owner}"


def admission_limit(policy: str, shared: str) -> str:
    """The limit on the jobs of a policy that may hold permits of ``shared`` while they wait for the policy's pace."""
    return f"admission:{policy}:{shared}"


def is_admission(limit_name: str) -> bool:
    """Whether jobs alone hold the slots of this limit: a job releases its slot when it starts, and no run has one."""
    return limit_name.startswith("admission:")


def is_shared(limit_name: str) -> bool:
    """Whether several workflows acquire permits of this limit."""
    return limit_name.startswith(("group:", "pool:", "application:"))


def names_starts(limit_name: str) -> bool:
    """Whether the row of this limit lists the runs that hold its slots, with the instants at which they started. The
    rows of limits that many workflows share do not: every start would pay for each KB of such a row."""
    return not limit_name.startswith(("admission:", "pool:", "application:"))


def pool_of(limit_name: str) -> str:
    """The full name of the pool to which a limit belongs, as its common part or as a share."""
    return limit_name.removeprefix("pool:").partition(":")[0]


def order_of_slots(limit_name: str) -> int:
    """The position of a slots limit in the order of limits. Limits that few jobs share come first. So no job holds a
    permit that many jobs need while it waits for one that few jobs need."""
    kinds = ("workflow", "dag", "admission", "group", "pool", "application")
    kind = limit_name.partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds)
