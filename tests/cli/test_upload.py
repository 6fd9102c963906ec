"""`sluice buckets` and `sluice upload`, with a real S3 of moto behind HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.cli.conftest import Sluice
from tests.cli.played_api import KEY, REGION, SECRET, PlayedApi
from tests.cli.terminal import on_a_terminal, plain

HEALTH = {"status": "ok", "lake": "sluice-lake", "control": "sluice-control"}


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(api: PlayedApi, s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    api.play("GET", "/v1/health", HEALTH)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_url)
    client = boto3.client("s3", REGION, endpoint_url=s3_url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    for bucket in ("sluice-lake", "sluice-control"):
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    yield client
    for bucket in ("sluice-lake", "sluice-control"):
        for item in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=item["Key"])
        client.delete_bucket(Bucket=bucket)


def test_buckets_show_where_code_data_and_logs_go(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/health", HEALTH)
    rows = {line[:14].strip(): line[14:].split()[0] for line in sluice("buckets").stdout.splitlines() if "s3:" in line}
    assert rows["data"] == "s3://sluice-lake/"
    assert rows["code"] == "s3://sluice-control/code/"
    assert rows["logs"] == "s3://sluice-control/logs/"
    alone = [sluice("buckets", what).stdout for what in ("data", "code", "logs")]
    assert alone == ["s3://sluice-lake/\n", "s3://sluice-control/code/\n", "s3://sluice-control/logs/\n"]
    assert sluice("buckets", "lake").exit_code == 2
    assert json.loads(sluice("buckets", "--json").stdout) == {"lake": "sluice-lake", "control": "sluice-control"}


def test_code_goes_to_the_app_of_a_short_name(s3: Any, sluice: Sluice, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("print(1)")
    done = sluice("upload", str(tmp_path / "clean.py"), "-a", "flights", "-n", "demo")
    assert done.stdout == "s3://sluice-control/code/demo/flights/clean.py\n"
    both = sluice("upload", str(tmp_path / "clean.py"), "-a", "demo.flights", "--to", "s3://lake/raw/")
    assert (both.exit_code, "expected --app or --to, got both" in both.stderr) == (2, True)


def test_code_goes_to_the_folder_of_its_app(s3: Any, sluice: Sluice, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("print(1)")
    done = sluice("upload", str(tmp_path / "clean.py"), "--app", "demo.flights")
    assert (done.exit_code, done.stdout) == (0, "s3://sluice-control/code/demo/flights/clean.py\n")
    held = s3.get_object(Bucket="sluice-control", Key="code/demo/flights/clean.py")
    assert held["Body"].read() == b"print(1)"


def test_an_upload_draws_a_bar_on_a_terminal(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1\n")
    code, output = on_a_terminal("upload", str(tmp_path), "--to", "s3://lake/raw/")
    assert code == 0, output
    assert "━" in output and "0/2 files a.csv" in plain(output) and "2/2 files" in plain(output)
    uris = [line.rpartition("\r")[2] for line in plain(output).splitlines() if line.endswith(".csv")]
    assert uris == ["s3://sluice-lake/raw/a.csv", "s3://sluice-lake/raw/b.csv"]


def test_a_folder_of_data_goes_up_with_its_flag_last(s3: Any, sluice: Sluice, tmp_path: Path) -> None:
    for name in ("_SUCCESS", "a.csv", "b/c.csv"):
        (tmp_path / "day=1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "day=1" / name).write_text(name)
    done = sluice("upload", str(tmp_path), "--to", "s3://lake/raw/orders", "--json")
    uris = [item["uri"] for item in json.loads(done.stdout)["items"]]
    folder = "s3://sluice-lake/raw/orders/day=1/"
    assert uris == [f"{folder}a.csv", f"{folder}b/c.csv", f"{folder}_SUCCESS"]
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket="sluice-lake")["Contents"]]
    assert sorted(f"s3://sluice-lake/{key}" for key in keys) == sorted(uris)


def test_an_upload_that_s3_refuses_names_the_bucket(s3: Any, sluice: Sluice, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("")
    done = sluice("upload", str(tmp_path / "clean.py"), "--to", "s3://of-another/code/")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "S3 refused s3://of-another/code/clean.py: NoSuchBucket" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("{}/no.py", "--app", "demo.flights"), "expected a readable file or folder, got"),
        (("{}/empty", "--app", "demo.flights"), "expected files, got an empty folder"),
        (("{}/a.py",), "expected an app or an address, got neither"),
        (("{}/a.py", "--to", "lake/raw"), "expected an address s3://BUCKET/PREFIX/, got 'lake/raw'"),
        (("{}/a.py", "{}/b/a.py", "--app", "demo.flights"), "got a.py twice"),
    ],
)
def test_a_wrong_upload_sends_nothing(
    api: PlayedApi, sluice: Sluice, tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    for folder in ("empty", "b"):
        (tmp_path / folder).mkdir()
    for name in ("a.py", "b/a.py"):
        (tmp_path / name).write_text("")
    done = sluice("upload", *(arg.format(tmp_path) for arg in args))
    assert (done.exit_code, api.requests) == (2, [])
    assert words in done.stderr
