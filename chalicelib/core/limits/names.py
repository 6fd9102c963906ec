"""The names of lines: what kind one is, what it belongs to, and how people call it."""

from __future__ import annotations

from chalicelib.core.instants import Millis

# AWS counts StartJobRun by account and region, so the starts of all applications share one pace (E8). Earlier versions
# had a line for each application, `emr:<application>`, and runs that they claimed still name it.
EMR_STARTS = "emr:starts"


def describe(line: str) -> str:
    kind, _, name = line.partition(":")
    if kind == "rate":
        return f"workflow {name.partition(':')[0]}"
    if kind == "pool":
        pool, _, owner = name.partition(":")
        return f"the share of {owner} in pool {pool}" if owner else f"pool {pool}"
    if kind == "turn":
        return f"policy {name.partition(':')[0]}"
    words = {"workflow": f"workflow {name}", "group": f"group {name}", "policy": f"policy {name}"}
    words["application"] = f"EMR application {name}"
    return (words | {"emr": "the EMR start rate of this account"}).get(kind, line)


def returns_permit(line: str) -> bool:
    """Whether a permit of this line comes back when the run ends. Those of a pace and of a log are spent."""
    return not (is_pace(line) or is_rate_window(line))


def is_rate_window(line: str) -> bool:
    return line.startswith("rate:")


def is_pace(line: str) -> bool:
    return line.startswith(("emr:", "policy:"))


def is_target_pace(line: str) -> bool:
    """Whether a pace is what the target itself demands, and not a policy of ours."""
    return line.startswith("emr:")


def workflow_limit(workflow: str) -> str:
    return f"workflow:{workflow}"


def is_of_workflow(line: str) -> bool:
    return line.startswith("workflow:")


def numbers(line: str) -> bool:
    """Whether this line numbers its starts: that of a workflow does (H1)."""
    return is_of_workflow(line)


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


def is_pool(line: str) -> bool:
    return line.startswith("pool:")


def pool_limit(pool: str) -> str:
    """The part of a pool that all share."""
    return f"pool:{pool}"


def share_limit(pool: str, owner: str) -> str:
    """What of a pool is reserved for a workflow (its full name) or a group."""
    return f"pool:{pool}:{owner}"


def turn_limit(policy: str, shared: str) -> str:
    """Those who are the next at a policy, of all that take of a line which others share."""
    return f"turn:{policy}:{shared}"


def is_turn(line: str) -> bool:
    """Whether its slots are those of jobs: they come back when a job starts, and no run has any."""
    return line.startswith("turn:")


def is_shared(line: str) -> bool:
    """Whether other workflows take of it, too."""
    return line.startswith(("group:", "pool:", "application:"))


def names_starts(line: str) -> bool:
    """Whether a line of slots names the runs that hold them, and when these started. Lines that many workflows take of
    do not: each KB of such a row would cost every start."""
    return not line.startswith(("turn:", "pool:", "application:"))


def pool_of(line: str) -> str:
    """The full name of the pool that a line is of, or is a share of."""
    return line.removeprefix("pool:").partition(":")[0]


def order_of_slots(line: str) -> int:
    """Where slots come in the order of lines: what a job has to itself before what it shares with ever more others, so
    that nobody keeps what many share while waiting for what few do."""
    kinds = ("workflow", "turn", "group", "pool", "application")
    kind = line.partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds)
