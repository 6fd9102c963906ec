"""The processes in which ministack runs Lambdas: the end of one leaves the others alone.

ministack ends all processes of a function after an error that its invocation of one of them raises. It does so if a
process is killed while it starts. The others then end amid their invocations, or while they start, and each of these
errors ends the rest again. On AWS each execution environment ends alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def install(lambda_runtime: Any) -> None:
    """Change this module of ministack."""
    lambda_runtime.Worker.invoke = _alone(lambda_runtime.Worker.invoke, lambda_runtime.kill_workers)


def _alone(invoke: Callable[..., dict[str, Any]], kill: Callable[[list[Any]], None]) -> Callable[..., dict[str, Any]]:
    """Let an invocation fail alone. Its process is started again at the next one."""

    @functools.wraps(invoke)
    def invoke_alone(worker: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return invoke(worker, *args, **kwargs)
        except Exception as error:  # the same answer as for a process that dies while it handles an event
            kill([worker])
            return {"status": "error", "error": str(error), "cold_start": True, "log": ""}

    return invoke_alone
