"""``sluice worker run``: execute the runs of a pool on this machine."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from datetime import UTC, datetime
from types import FrameType
from typing import Annotated

import typer

from sluice.cli import frame
from sluice.errors import WrongUsage
from sluice.visible import visible

app = typer.Typer(no_args_is_help=True, help="Execute the runs of a pool on this machine.")


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD [{args}]...", help="The command to execute for each run.")
    ],
    pool: Annotated[str, typer.Option("--pool", "-p", metavar="[NS.]POOL", help="The pool; a short name needs -n.")],
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=1_000, metavar="N", help="How many runs at a time.")
    ] = 1,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The worker's name; by default HOST:PROCESS.")
    ] = None,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0, metavar="S", help="Seconds from SIGTERM to SIGKILL when a run is cancelled."),
    ] = 10,
    once: Annotated[bool, typer.Option("--once", help="Exit when the pool is empty.")] = False,
    aws_keys: Annotated[
        bool, typer.Option("--aws-keys", help="Let the command have the AWS credentials of this worker.")
    ] = False,
    allow_dashes: Annotated[
        bool, typer.Option("--allow-dashes", help="Let arguments of workflows begin with '-', as options do.")
    ] = False,
    namespace: frame.Namespace = None,
) -> None:
    """Claim runs of a pool, and execute a command for each of them.

    {args} in the command is replaced by the arguments of the workflow's target; SLUICE_ variables hold the other data.
    Arguments that begin with '-' are refused, unless {args} stands first or after a word --.
    SIGTERM or ctrl-C drains the worker: it finishes its active runs. A second signal ends these, too.
    """
    from sluice.worker import Plan, Worker

    full = pool if "." in pool else f"{frame.needed_namespace(namespace)}.{pool}"
    if full.count(".") != 1:
        raise WrongUsage(f"expected a pool as NAMESPACE.POOL, got {pool!r}", "--pool")
    plan = Plan(
        full, name or f"{socket.gethostname()}:{os.getpid()}", command, concurrency, grace, aws_keys, allow_dashes
    )
    worker = Worker(frame.connect(), plan, tell, once)
    _drain_on_signals(worker.stop, worker.kill)
    tell(f"worker {plan.name} claims runs of pool {full}, {concurrency} at a time")
    tell(f"done: {worker.run()} ended")


def tell(text: str, run: str | None = None) -> None:
    """Print a status line on stderr; the output of the commands goes to stdout."""
    at = datetime.now(UTC).strftime("%H:%M:%S")
    print(visible(f"{at} {f'{run}: ' if run else ''}{text}"), file=sys.stderr, flush=True)


def _drain_on_signals(stop: threading.Event, kill: threading.Event) -> None:
    def drain(number: int, stack: FrameType | None) -> None:
        del number, stack
        if stop.is_set():
            kill.set()
        stop.set()

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, drain)
