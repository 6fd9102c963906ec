"""The two servers of the local cloud: ministack for AWS, and the EMR Serverless emulator."""

import json
import os
import re
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from infra.local import developer, endpoints, ports, processes
from infra.local.layout import Layout, write_private

AWS_PORT, EMR_PORT = 4566, 4570
RUN_STATE_FUNCTION = "sluice-local-run-state"
# The variables that a server gets of the caller's environment. Lambdas inherit ministack's environment; an AWS_PROFILE
# or AWS_ENDPOINT_URL of this shell would redirect them.
_INHERITED = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "PATH", "SPARK_HOME", "USER")
# Writing the state of a large test may take long; to kill ministack during the write would lose the state.
_STOP_SECONDS = 60.0
_START_SECONDS = 60.0
_LOG_BYTES = 20_000_000


class CloudError(Exception):
    """The local cloud could not be started, stopped or deployed. The message has the cause, and what to do."""


def start_aws(layout: Layout, environment: Mapping[str, str]) -> processes.Running:
    """Start ministack, or find it running. Raises `PortTaken`."""
    if running := processes.find(layout.aws_process):
        _refuse_other_port("SLUICE_PORT", environment, running)
        if developer.root_key(layout) is None:
            raise CloudError(
                "This checkout's local cloud is up, but its root key is unknown: an earlier version has started it. "
                "Run `make down`, then `make up`."
            )
        return running
    former = layout.remembered("aws-port")
    port = ports.choose("SLUICE_PORT", AWS_PORT, environment, former)
    if former not in (None, port):
        _move_state(layout, former, port)
    layout.remember("aws-port", port)
    # Lambda code that was unpacked for processes which have ended.
    shutil.rmtree(layout.home / "tmp", ignore_errors=True)
    for folder in ("aws", "s3", "tmp"):
        (layout.home / folder).mkdir(parents=True, exist_ok=True)
    settings = _base_environment(environment, developer.make_root_key(layout)) | {
        "BIND_HOST": ports.HOST,
        "GATEWAY_PORT": str(port),
        "PERSIST_STATE": "1",
        "STATE_DIR": str(layout.home / "aws"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(layout.home / "s3"),
        # Signatures are verified and policies enforced, so that a missing permission shows here, not in production.
        "AUTH": "true",
        # Processes instead of containers: no Docker is needed, and a cold start takes a second.
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": "unix:///nonexistent",
        # Off: listeners on fixed ports of services that Sluice does not use.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(layout.home / "tmp"),
        "TZ": "UTC",
    }
    _rotate(layout.aws_log)
    command = [sys.executable, "-m", "infra.local.aws"]
    return processes.start(layout.aws_process, command, port, settings, layout.aws_log, layout.root)


def _move_state(layout: Layout, former: int, port: int) -> None:
    """Let the kept state name the present port. The URLs of its queues have the former one, and a Lambda gets messages
    only of a queue whose URL is known."""
    for path in (layout.home / "aws").glob("*.json"):
        text = path.read_text()
        moved = re.sub(rf"(//(?:localhost|{re.escape(ports.HOST)}):){former}\b", rf"\g<1>{port}", text)
        if moved != text:
            write_private(path, moved)


def start_emr(layout: Layout, environment: Mapping[str, str], aws_port: int) -> processes.Running | None:
    """Start the EMR Serverless emulator, or find it running. None when this checkout has no emulator."""
    if running := processes.find(layout.emr_process):
        _refuse_other_port("SLUICE_EMR_PORT", environment, running)
        return running
    if not (layout.root / "infra/local/emr_serverless/__main__.py").exists():
        return None
    port = ports.choose("SLUICE_EMR_PORT", EMR_PORT, environment, layout.remembered("emr-port"))
    layout.remember("emr-port", port)
    settings = _base_environment(environment, developer.make_root_key(layout)) | {
        # The emulator's own settings, such as SLUICE_EMR_DRIVER=instant for tests without Spark.
        **{name: value for name, value in environment.items() if name.startswith("SLUICE_EMR_")},
        "AWS_ENDPOINT_URL": f"http://{ports.HOST}:{aws_port}",
        "SLUICE_RUN_STATE_FUNCTION": RUN_STATE_FUNCTION,
    }
    command = [
        *(sys.executable, "-m", "infra.local.emr_serverless", "--host", ports.HOST, "--port", str(port)),
        *("--state-dir", str(layout.home / "emr")),
    ]
    _rotate(layout.emr_log)
    return processes.start(layout.emr_process, command, port, settings, layout.emr_log, layout.root)


def wait_for_aws(layout: Layout, port: int) -> None:
    """Return when ministack answers. Raises `CloudError` with the end of its log if it ends or does not answer in
    time."""
    url = f"http://{ports.HOST}:{port}/_ministack/ready"
    _wait(lambda: _answers(url, "completed"), lambda: processes.find(layout.aws_process) is not None, layout, "aws")


def wait_for_emr(layout: Layout, port: int) -> None:
    """Return when the emulator answers. Raises `CloudError` as `wait_for_aws` does."""
    url = f"http://{ports.HOST}:{port}/health"
    _wait(lambda: _answers(url), lambda: processes.find(layout.emr_process) is not None, layout, "emr")


def stop(layout: Layout) -> list[str]:
    """Stop both servers; return the names of those that ran. The emulator first: it still calls ministack."""
    pairs = (("EMR Serverless", layout.emr_process), ("AWS", layout.aws_process))
    return [name for name, file in pairs if processes.stop(file, _STOP_SECONDS)]


def save_aws_state(layout: Layout) -> None:
    """Make ministack write its state now. By itself it does so only when it stops."""
    if running := processes.find(layout.aws_process):
        os.kill(running.pid, signal.SIGUSR1)


def _base_environment(environment: Mapping[str, str], root: endpoints.Key) -> dict[str, str]:
    return {name: environment[name] for name in _INHERITED if name in environment} | {
        "AWS_ACCESS_KEY_ID": root.access_key,
        "AWS_SECRET_ACCESS_KEY": root.secret_key,
        "AWS_DEFAULT_REGION": endpoints.REGION,
        # Use no profile of this machine, and query no instance role.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONUNBUFFERED": "1",
    }


def _refuse_other_port(name: str, environment: Mapping[str, str], running: processes.Running) -> None:
    port = environment.get(name, "").strip()
    if port and port != str(running.port):
        raise CloudError(
            f"{name} asks for port {port}, but this checkout's local cloud is up on port {running.port}. "
            f"Run `make down` first to move it, or unset {name}."
        )


def _rotate(log: os.PathLike[str]) -> None:
    if os.path.exists(log) and os.path.getsize(log) > _LOG_BYTES:
        os.replace(log, f"{os.fspath(log)}.1")


def _answers(url: str, status: str | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return status is None or json.load(answer).get("status") == status
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _wait(ready: Callable[[], bool], alive: Callable[[], bool], layout: Layout, name: str) -> None:
    log = layout.aws_log if name == "aws" else layout.emr_log
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if not alive() or time.monotonic() > deadline:
            what = "did not answer in time" if alive() else "ended at once"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise CloudError(f"The local {name} server {what}. The end of {log}:\n{tail}")
        time.sleep(0.05)
