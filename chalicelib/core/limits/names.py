"""The names of lines: what kind one is, what it belongs to, and how people call it."""

from __future__ import annotations

from chalicelib.core.instants import Millis

# AWS counts StartJobRun by account and region, so the starts of all applications share one pace (E8). Earlier versions
# had a line for each application, `emr:<application>`, and runs that they claimed still name it.
EMR_STARTS = "emr:starts"


def describe(limit_name: str) -> str:
    kind, _, name = limit_name.partition(":")
    if kind == "rate":
        return f"workflow {name.partition(':')[0]}"
    if kind == "pool":
        pool, _, owner = name.partition(":")
        return f"the share of {owner} in pool {pool}" if owner else f"pool {pool}"
    if kind == "admission":
        return f"policy {name.partition(':')[0]}"
    words = {"workflow": f"workflow {name}", "group": f"group {name}", "policy": f"policy {name}"}
    words["application"] = f"EMR application {name}"
    return (words | {"emr": "the EMR start rate of this account"}).get(kind, limit_name)


def returns_permit(limit_name: str) -> bool:
    """Whether a permit of this line comes back when the run ends. Those of a pace and of a log are spent."""
    return not (is_pace(limit_name) or is_rate_window(limit_name))


def is_rate_window(limit_name: str) -> bool:
    return limit_name.startswith("rate:")


def is_pace(limit_name: str) -> bool:
    return limit_name.startswith(("emr:", "policy:"))


def is_target_pace(limit_name: str) -> bool:
    """Whether a pace is what the target itself demands, and not a policy of ours."""
    return limit_name.startswith("emr:")


def workflow_limit(workflow: str) -> str:
    return f"workflow:{workflow}"


def is_of_workflow(limit_name: str) -> bool:
    return limit_name.startswith("workflow:")


def numbers(limit_name: str) -> bool:
    """Whether this line numbers its starts: that of a workflow does (H1)."""
    return is_of_workflow(limit_name)


def group_limit(namespace: str, group: str) -> str:
    return f"group:{namespace}.{group}"


def rate_limit(workflow: str, rule: str) -> str:
    """``rule`` is ``<limit>/<span in ms>``: each rule of a workflow has a line of its own, so none holds another up."""
    return f"rate:{workflow}:{rule}"


def rate_rule(limit: int, span: Millis) -> str:
    return f"{limit}/{span}"


def application_limit(application: str) -> str:
    """The runs that an EMR application has at a time (W3)."""
    return f"application:{application}"


def policy_limit(policy: str) -> str:
    return f"policy:{policy}"


def is_pool(limit_name: str) -> bool:
    return limit_name.startswith("pool:")


def pool_limit(pool: str) -> str:
    """The part of a pool that all share."""
    return f"pool:{pool}"


def share_limit(pool: str, owner: str) -> str:
    """What of a pool is reserved for a workflow (its full name) or a group."""
    return f"pool:{pool}:{owner}"


def admission_limit(policy: str, shared: str) -> str:
    """Those who are the next at a policy, of all that take of a line which others share."""
    return f"admission:{policy}:{shared}"


def is_admission(limit_name: str) -> bool:
    """Whether its slots are those of jobs: they come back when a job starts, and no run has any."""
    return limit_name.startswith("admission:")


def is_shared(limit_name: str) -> bool:
    """Whether other workflows take of it, too."""
    return limit_name.startswith(("group:", "pool:", "application:"))


def names_starts(limit_name: str) -> bool:
    """Whether a line of slots names the runs that hold them, and when these started. Lines that many workflows take of
    do not: each KB of such a row would cost every start."""
    return not limit_name.startswith(("admission:", "pool:", "application:"))


def pool_of(limit_name: str) -> str:
    """The full name of the pool that a line is of, or is a share of."""
    return limit_name.removeprefix("pool:").partition(":")[0]


def order_of_slots(limit_name: str) -> int:
    """Where slots come in the order of lines: what a job has to itself before what it shares with ever more others, so
    that nobody keeps what many share while waiting for what few do."""
    kinds = ("workflow", "admission", "group", "pool", "application")
    kind = limit_name.partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds)
