"""`make up`, `make down`, `make reset`: the local cloud of one checkout.

    python -m infra.local.cloud up | down | reset

Tests call `ensure_up()`. All commands are idempotent: a server that runs unchanged is left alone.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session
from rich.console import Console
from rich.table import Table

from infra import system_app
from infra.local import developer, landing, ports, processes, rollout, services
from infra.local.console_line import console_line
from infra.local.endpoints import Endpoints, LocalSession
from infra.local.layout import Layout

_WARMING_SECONDS = 30.0


@dataclass(frozen=True)
class Up:
    """A running local cloud: its addresses, whether this call started it, and what the deployment changed."""

    endpoints: Endpoints
    started: bool
    stack: str
    emulator: bool


def up(layout: Layout | None = None) -> Up:
    """Start what is not running, deploy what has changed, and return when the API answers.

    Raises `services.CloudError`, `ports.PortTaken` or `ValueError`, each with what to do.
    """
    layout = layout or Layout()
    with layout.exclusively():
        started = processes.find(layout.aws_process) is None
        aws = services.start_aws(layout, os.environ)
        aws_url = f"http://{ports.HOST}:{aws.port}"
        emr = services.start_emr(layout, os.environ, aws.port)
        emr_url = f"http://{ports.HOST}:{emr.port}" if emr else None
        services.wait_for_aws(layout, aws.port)
        if emr:
            services.wait_for_emr(layout, emr.port)
        root = developer.make_root_key(layout)
        session = LocalSession(aws_url, root)
        application = rollout.emr_application(emr_url, root)
        landing.ensure(session.client("s3"))
        user = developer.keys(layout, session.client("iam"))
        outcome = rollout.roll_out(layout, session, rollout.parameters(aws_url, emr_url, application))
        emr_or_default = emr_url or f"http://{ports.HOST}:{services.EMR_PORT}"
        endpoints = Endpoints(aws_url, emr_or_default, user.access_key, user.secret_key, outcome.outputs)
        _wait_for_api(endpoints, layout)
        endpoints.write(layout.endpoints)
        if emr:
            _install_system_app(layout, endpoints)
    return Up(endpoints, started, outcome.action, emr is not None)


def ensure_up() -> Endpoints:
    """The local cloud of this checkout, started and deployed if necessary. For tests, demo and benchmarks."""
    return up().endpoints


def is_up(layout: Layout | None = None) -> bool:
    """Whether this checkout's local cloud is running."""
    return processes.find((layout or Layout()).aws_process) is not None


def down(layout: Layout | None = None) -> list[str]:
    """Stop the servers and keep their data; return the names of those that ran."""
    layout = layout or Layout()
    with layout.exclusively():
        stopped = services.stop(layout)
        layout.endpoints.unlink(missing_ok=True)
    return stopped


def reset(layout: Layout | None = None) -> None:
    """Stop the servers and remove their data."""
    layout = layout or Layout()
    with layout.exclusively():
        services.stop(layout)
        layout.clear()


def signed(endpoints: Endpoints, method: str, path: str, *, secret_key: str | None = None) -> tuple[int, bytes]:
    """Send one signed request to the API; return status and body. `path` begins with `/v1`."""
    request = AWSRequest(method, endpoints.api_url + path)
    credentials = Credentials(endpoints.access_key, secret_key or endpoints.secret_key)
    SigV4Auth(credentials, "execute-api", endpoints.region).add_auth(request)
    answer = URLLib3Session(timeout=35).send(request.prepare())
    return answer.status_code, answer.content


def _wait_for_api(endpoints: Endpoints, layout: Layout) -> None:
    """Call the API until it answers. The first call starts the Lambda's process, so that no user waits for it."""
    deadline = time.monotonic() + _WARMING_SECONDS
    while True:
        status, body = signed(endpoints, "GET", "/v1/health")
        if status == 200:
            return
        if time.monotonic() > deadline or status >= 500:
            text = body.decode(errors="replace")[:300]
            raise services.CloudError(
                f"GET /v1/health answers {status}: {text}\nThe servers stay up. The usual cause: app.py or chalicelib/ "
                f"does not import: the reason is in {layout.aws_log}. Correct it and run `make up` again."
            )
        time.sleep(0.2)


def _install_system_app(layout: Layout, endpoints: Endpoints) -> None:
    """Install Sluice's own app with the command that installs it in AWS; nothing is sent if neither has changed."""
    wanted = [system_app.fingerprint(), layout.remembered("deployed"), endpoints.outputs]
    if layout.remembered("system_app") == wanted:
        return
    command = [sys.executable, "-m", "infra.system_app", rollout.STAGE]
    done = subprocess.run(
        command, cwd=layout.root, env=os.environ | endpoints.environment(), capture_output=True, text=True
    )
    if done.returncode != 0:
        raise services.CloudError(f"Sluice's own app could not be deployed: {done.stderr.strip()}")
    layout.remember("system_app", wanted)


def _say_up(console: Console, result: Up, seconds: float) -> None:
    messages = {
        (True, "created"): "The local cloud is up, with a new stack",
        (True, "updated"): "The local cloud is up again; the code has changed, and the stack was updated",
        (True, "unchanged"): "The local cloud is up again, unchanged",
        (False, "created"): "The local cloud was up; the stack is new",
        (False, "updated"): "The local cloud was up; the code has changed, and the stack was updated",
        (False, "unchanged"): "The local cloud is up already, and the code is unchanged",
    }[result.started, result.stack]
    table = Table("name", "value", title=f"{messages} ({seconds:.1f} s)", title_justify="left")
    for name, value in result.endpoints.environment().items():
        shown = "(in .local/endpoints.env)" if name == "AWS_SECRET_ACCESS_KEY" else value
        table.add_row(name, shown, style="bold" if name == "SLUICE_API_URL" else "")
    for name in ("LakeBucket", "ControlBucket", "CatalogTable", "JobsTable", "RunsTable"):
        table.add_row(name, result.endpoints.outputs[name])
    console.print(table)
    if not result.emulator:
        console.print("EMR Serverless is not emulated: infra/local/emr_serverless is missing. Job runs cannot start.")
    console.print(
        "The local cloud runs code for every program that has the key in .local/endpoints.env. Keep that file private.",
        style="yellow", highlight=False, soft_wrap=True,
    )  # fmt: skip
    console.print("source .local/endpoints.env   # for this shell", highlight=False)
    console.print(f"{console_line()}   # the web console", highlight=False, soft_wrap=True)


def main(argv: list[str] | None = None) -> int:
    """Command line of `make up`, `make down` and `make reset`. Exit code 1 with one message when it fails."""
    arguments = sys.argv[1:] if argv is None else argv
    console, errors = Console(width=max(Console().width, 120)), Console(stderr=True)
    if len(arguments) != 1 or arguments[0] not in ("up", "down", "reset"):
        errors.print("usage: python -m infra.local.cloud up | down | reset", markup=False)
        return 2
    begun = time.monotonic()
    try:
        if arguments[0] == "up":
            _say_up(console, up(), time.monotonic() - begun)
        elif arguments[0] == "down":
            stopped = down()
            console.print(f"Stopped: {', '.join(stopped)}. The state is kept." if stopped else "Nothing was running.")
        else:
            reset()
            console.print("The local cloud is stopped and its state removed.")
    except (services.CloudError, ports.PortTaken, ValueError) as error:
        errors.print(f"{arguments[0]}: {error}", style="red", highlight=False, markup=False)
        return 1
    except KeyboardInterrupt:
        errors.print(f"{arguments[0]}: interrupted. Run it again to finish.", style="red")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
