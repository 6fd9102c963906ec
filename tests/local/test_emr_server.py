"""The process: restarts, signals, settings, health."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from infra.local.emr_serverless import BadSetting, Settings, settings
from tests.local.conftest import Emulators, client, eventually

REPOSITORY = Path(__file__).parents[2]
Serve = Callable[..., tuple[subprocess.Popen[bytes], str]]


def command(tmp_path: Path, port: str = "0", *more: str) -> list[str]:
    line = [sys.executable, "-m", "infra.local.emr_serverless", "--port", port, "--driver", "instant"]
    return [*line, "--state-dir", str(tmp_path / "state"), *more]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start the emulator as a process with these flags. Returns the process and its address."""
    started: list[subprocess.Popen[bytes]] = []
    log = tmp_path / "log"

    def start(*flags: str) -> tuple[subprocess.Popen[bytes], str]:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "SLUICE_EMR_GET_TPS": "0"}
        with log.open("wb") as out:
            started.append(
                subprocess.Popen(command(tmp_path, "0", *flags), cwd=REPOSITORY, stdout=out, env=environment)
            )
        line = eventually(lambda: next((one for one in log.read_text().splitlines() if "is at http" in one), ""), 20)
        return started[-1], line.split("is at ")[1].split(": driver")[0]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_after_restart_ended_runs_are_kept_and_others_restarted(emulators: Emulators) -> None:
    emr = emulators.start(max_running=1, instant_ms=60_000)
    cancelled, running, waiting = emr.start(name="c"), emr.start(name="r"), emr.start(name="w")
    emr.cancel(cancelled)
    emr.reaches(cancelled, "CANCELLED")
    emr.reaches(running, "RUNNING")
    emulators.stop(emr)

    emr = emulators.start(max_running=1, instant_ms=300)
    # For callers the run was active all the time: its state does not go back.
    assert emr.state(running) == "RUNNING"
    assert emr.state(cancelled) == "CANCELLED"
    emr.reaches(running, "SUCCESS")
    emr.reaches(waiting, "SUCCESS")
    assert [run["name"] for run in emr.boto.list_job_runs(applicationId=emr.application)["jobRuns"]] == ["w", "r", "c"]


def test_health_shows_the_current_activity(emulators: Emulators) -> None:
    emr = emulators.start(max_running=1, instant_ms=60_000)
    run = emr.start()
    emr.start()
    emr.reaches(run, "RUNNING")
    assert emr.health() == {"status": "ok", "driver": "instant", "running": 1, "waiting": 1}


def test_an_unknown_path_is_answered_in_json(emulators: Emulators) -> None:
    emr = emulators.start()
    request = AWSRequest("GET", f"{emr.emulator.url}/nothing")
    SigV4Auth(Credentials("test", "test"), "emr-serverless", "us-east-1").add_auth(request)
    answer = URLLib3Session().send(request.prepare())
    assert answer.status_code == 404
    assert "expected an operation" in json.loads(answer.content)["message"]


def test_the_process_ends_on_sigterm_and_resumes_its_state(tmp_path: Path, serve: Serve) -> None:
    process, url = serve("--instant-ms", "60000")
    boto = client("emr-serverless", url)
    application = boto.create_application(type="SPARK", releaseLabel="emr-7.1.0")["applicationId"]
    spark = {"sparkSubmit": {"entryPoint": "s3://code/job.py"}}
    role = "arn:aws:iam::000000000000:role/job"
    run = boto.start_job_run(applicationId=application, executionRoleArn=role, jobDriver=spark)["jobRunId"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0

    process, url = serve("--instant-ms", "0")
    boto = client("emr-serverless", url)
    seen = {"applicationId": application, "jobRunId": run}
    eventually(lambda: boto.get_job_run(**seen)["jobRun"]["state"] == "SUCCESS")
    process.terminate()
    assert process.wait(10) == 0
    assert f"run {run} RUNNING -> SUCCESS" in (tmp_path / "log").read_text()


def test_a_port_in_use_is_reported_and_exits_with_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(command(tmp_path, str(port)), cwd=REPOSITORY, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert f"expected to listen on 127.0.0.1:{port}" in ended.stderr
    assert "choose another with --port" in ended.stderr


def test_a_state_directory_serves_one_emulator_at_a_time(emulators: Emulators) -> None:
    emulators.start()
    with pytest.raises(BadSetting, match="which another emulator uses"):
        emulators.start()


def test_a_flag_overrides_its_variable_which_overrides_default() -> None:
    environment = {"SLUICE_EMR_MAX_RUNNING": "7", "SLUICE_EMR_START_TPS": "2.5", "AWS_ENDPOINT_URL": "http://cloud"}
    chosen = settings.read(["--max-running", "9", "--keep-run-dirs", "on"], environment)
    assert (chosen.max_running, chosen.start_tps, chosen.endpoint_url) == (9, 2.5, "http://cloud")
    assert chosen.keep_run_dirs
    assert chosen.port == Settings().port == 4570


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--port", "http"], {}, r"--port: expected a whole number \(port to listen on.*\), got 'http'"),
        (["--port", "70000"], {}, r"--port: expected a number from 0 to 65535 .*, got '70000'"),
        ([], {"SLUICE_EMR_DROP_EVENTS": "2"}, r"SLUICE_EMR_DROP_EVENTS: expected a number from 0 to 1 .*, got '2'"),
        (["--driver", "flink"], {}, "--driver: expected one of spark, instant, got 'flink'"),
        (["--class-archive", "maybe"], {}, "--class-archive: expected on or off .*, got 'maybe'"),
        (["--run-state-function", "f"], {}, "expected an endpoint to invoke 'f' at, got none: set --endpoint-url"),
    ],
)
def test_an_invalid_setting_is_explained(arguments: list[str], environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        settings.read(arguments, environment)
