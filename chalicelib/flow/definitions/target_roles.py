"""The role with which the targets of a namespace are called: which one, and whether it has credentials now (O10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch, target_roles
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole, namespace_of
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import Answer, Never, NotNow, RunUpdate
from chalicelib.log import logger, run_fields
from chalicelib.ports import Ports, TargetAdapter

# Why roles that runs use have no credentials.
Missing = Mapping[TargetRole, NotAssumed]


def of_namespace(ports: Ports, namespace: str) -> TargetRole | None:
    """The role that the allow-list of a namespace names, as this process has read it in the last seconds."""
    row = ports.catalog.allowed_lately(namespace, ports.clock.now())
    arn = row.document.get("target_role") if row is not None else None
    return TargetRole(str(arn), namespace) if arn else None


def present(ports: Ports, run: Run) -> Run:
    """The run with the role for its next call; the same object if it has that role."""
    [found] = present_of(ports, [run])
    return found


def present_of(ports: Ports, runs: Sequence[Run]) -> list[Run]:
    """The runs with the roles for their next calls: the present ones of their namespaces. Runs that have theirs are the
    same objects. A run that an unanswered call may have started keeps the role of that call, because the target may
    know it under this role alone."""
    roles = {namespace: of_namespace(ports, namespace) for namespace in {namespace_of(run) for run in runs}}
    if not any(roles.values()) and not any(run.target_role for run in runs):
        return list(runs)
    return [_with_role(run, roles[namespace_of(run)]) for run in runs]


def _with_role(run: Run, role: TargetRole | None) -> Run:
    if not launch.surely_not_started(run) or not target_roles.uses_role(run):
        return run
    arn = role.arn if role is not None else None
    return run if arn == run.target_role else replace(run, target_role=arn)


def assume(ports: Ports, runs: Iterable[Run]) -> Missing:
    """Get credentials for the roles of these runs, and build the adapters of their targets. Both take time, better
    spent before the instant of a call. Returns the roles that have none."""
    missing: dict[TargetRole, NotAssumed] = {}
    for kind, role in dict.fromkeys((run.target_kind, target_roles.role_of(run)) for run in runs):
        if role is None:
            ports.targets.of(kind)
        elif role not in missing and (refused := ports.targets.assume(kind, role)) is not None:
            missing[role] = refused
    return missing


def instead_of_calls(ports: Ports, missing: Missing, runs: Sequence[Run]) -> list[NotNow | Never | None]:
    """For each run, the answer to a call that is not made because its role has no credentials, or because it has no
    role and its target needs one; or None."""
    refused = [
        missing.get(role) if (role := target_roles.role_of(run)) is not None else _without_role(ports, run)
        for run in runs
    ]
    return [target_roles.instead_of_call(each, run) if each else None for each, run in zip(refused, runs, strict=True)]


def _without_role(ports: Ports, run: Run) -> NotAssumed | None:
    """Why a run without a role is not called; None if its target needs none. If the namespace got its role a moment
    ago, the next call has it. Tests have no account with roles."""
    if not registry.of_run(run).needs_role or ports.settings.account == "":
        return None
    with_it = f"with which alone {run.target_kind} targets are called"
    return NotAssumed(f"namespace {namespace_of(run)} had no target role, {with_it}, when it was read", denied=True)


def adapter(ports: Ports, run: Run) -> TargetAdapter:
    """The adapter for a call whose role has credentials already (`assume`)."""
    role = target_roles.role_of(run)
    return ports.targets.of(run.target_kind) if role is None else ports.targets.of(run.target_kind, role)


def adapter_of_begun(ports: Ports, run: Run) -> TargetAdapter:
    """The adapter that polls, finds and cancels a run: with the role that called its target. If IAM does not allow that
    role any more, with the present one of the namespace, or that of the Lambda if it has none. A target that needs a
    role is never called with that of the Lambda."""
    role = target_roles.role_of(run)
    refused = _without_role(ports, run) if role is None else ports.targets.assume(run.target_kind, role)
    if refused is not None and refused.denied:
        now = of_namespace(ports, namespace_of(run))
        if now is not None and now != role:
            role, refused = now, ports.targets.assume(run.target_kind, now)
        elif now is None and not registry.of_run(run).needs_role:
            role, refused = None, None
    if refused is None:
        return ports.targets.of(run.target_kind) if role is None else ports.targets.of(run.target_kind, role)
    logger.warning("run not followed", extra={**run_fields(run), "why": refused.why})
    return _WithoutRole(refused)


class _WithoutRole:
    """The adapter of a run whose role has no credentials: nothing is learnt about the run, and it is polled again."""

    def __init__(self, refused: NotAssumed) -> None:
        self._refused = refused

    def start(self, run: Run, context: Mapping[str, object]) -> Answer:
        return target_roles.instead_of_call(self._refused, run)

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, object]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def status(self, run: Run) -> RunUpdate | None:
        return None

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [None for _ in runs]

    def find(self, run: Run) -> str | None:
        """Raises RuntimeError: that no run was found would release its permits, and it may exist."""
        raise RuntimeError(f"expected the credentials of a role to find run {run.request.name}: {self._refused.why}")

    def cancel(self, run: Run) -> None:
        """Nothing. The cancel stays on record and is repeated."""

    def run_name(self, target_id: str) -> str | None:
        return None
