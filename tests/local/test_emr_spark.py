"""Jobs run by real Spark: unmodified scripts with s3:// paths. Four starts of Spark, two at a time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from tests.local.conftest import Emr, Emulators, client, eventually

# `tests/e2e/test_real_day.py` of `make test` starts Spark in the same emulator.
pytestmark = [pytest.mark.spark, pytest.mark.long]

BUCKET = "lake"

# Counts rows per key, as a job on AWS would. The note in the working directory shows whether another run works in the
# same one.
COUNT = """\
import json, os, sys, time
from pyspark.sql import SparkSession
from mylib import KEY

assert not os.path.exists("note"), "another run is in this directory"
open("note", "w").write(sys.argv[2])
spark = SparkSession.builder.appName("count").getOrCreate()
context = json.loads(spark.read.text(sys.argv[1], wholetext=True).head()[0])
rows = spark.read.option("header", True).csv(context["input"])
rows.groupBy(KEY).count().write.mode("overwrite").partitionBy(KEY).json(sys.argv[2])
assert spark.conf.get("spark.sql.shuffle.partitions") == sys.argv[3]
assert os.environ["AWS_ENDPOINT_URL"]
print("counted", open("note").read())
"""

# Finishes one output, then fails in the middle of another.
FAIL = """\
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
spark.range(3).write.mode("overwrite").csv("s3://lake/fail/done/")

def broken(n):
    raise RuntimeError("no such airport: XYZ")

try:
    spark.range(3).select(F.udf(broken)("id")).write.mode("overwrite").csv("s3://lake/fail/half/")
except Exception:
    print("half done")
raise KeyError("flights")
"""

SLEEP = """\
import subprocess, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
subprocess.run([sys.executable, "-c", "import os, time; open(%r, 'w').write(str(os.getpid())); time.sleep(600)"])
"""


@dataclass
class Lake:
    """The results of the four runs, and the order of the objects in S3's notifications."""

    emr: Emr
    s3: Any
    runs: dict[str, str]
    announced: list[str]
    grandchild: Path

    def run(self, name: str) -> dict[str, Any]:
        return self.emr.get(self.runs[name])

    def keys(self, prefix: str) -> set[str]:
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
        return {one["Key"].removeprefix(prefix) for one in found}

    def log(self, name: str, stream: str) -> str:
        key = f"logs/applications/{self.emr.application}/jobs/{self.runs[name]}/SPARK_DRIVER/{stream}.gz"
        return gzip.decompress(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()).decode()


@pytest.fixture(scope="module")
def lake(cloud: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    directory = tmp_path_factory.mktemp("spark")
    s3, announcements = client("s3", cloud), Announcements(cloud)
    s3.create_bucket(Bucket=BUCKET)
    fill(s3, directory)
    announcements.listen(s3)
    started = Emulators(directory / "state")
    emr = started.start(
        driver="spark", endpoint_url=cloud, class_archive=False, max_running=2, max_vcpus=1000, stop_grace_s=2.0
    )
    logs = {"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": f"s3://{BUCKET}/logs/"}}}
    spark = f"--py-files s3://{BUCKET}/code/mylib.py --conf spark.sql.shuffle.partitions="

    def count(output: str, shuffle: int) -> str:
        arguments = [f"s3://{BUCKET}/context/r.json", f"s3://{BUCKET}/{output}", str(shuffle)]
        more = {"spark": f"{spark}{shuffle}", "configurationOverrides": logs}
        return emr.start(f"s3://{BUCKET}/code/count.py", arguments, **more)

    runs = {"count": count("out/", 3), "beside": count("beside", 5)}
    fail = [f"s3://{BUCKET}/fail/done/", f"s3://{BUCKET}/fail/half/"]
    runs["fail"] = emr.start(f"s3://{BUCKET}/code/fail.py", fail, configurationOverrides=logs)
    runs["sleep"] = emr.start(f"s3://{BUCKET}/code/sleep.py")
    for name in ("count", "beside", "fail"):
        emr.reaches(runs[name], "SUCCESS", "FAILED", seconds=240)
    grandchild = directory / "pid"
    eventually(lambda: grandchild.exists() and grandchild.read_text(), 120)
    yield Lake(emr, s3, runs, announcements.receive(), grandchild)
    for emulator in started.running:
        emulator.stop()


def fill(s3: Any, directory: Path) -> None:
    objects = {
        "code/count.py": COUNT,
        "code/fail.py": FAIL,
        "code/sleep.py": SLEEP % str(directory / "pid"),
        "code/mylib.py": 'KEY = "airport"\n',
        "context/r.json": json.dumps({"input": f"s3://{BUCKET}/raw/2013-*/"}),
        "raw/2013-01/x.csv": "airport,delay\nOSL,1\nOSL,2\nBGO,3\n",
        "raw/2013-02/y.csv": "airport,delay\nOSL,4\n",
        "out/airport=TRD/part-old.json": "{}",
        "out/_SUCCESS": "",
    }
    for key, body in objects.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body.encode())


class Announcements:
    """S3's notifications of new objects, in a queue."""

    def __init__(self, cloud: str) -> None:
        self._sqs = client("sqs", cloud)
        self._queue = self._sqs.create_queue(QueueName="objects")["QueueUrl"]

    def listen(self, s3: Any) -> None:
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"]
        rule = {"QueueArn": attributes["QueueArn"], "Events": ["s3:ObjectCreated:*"]}
        s3.put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": [rule]}
        )

    def receive(self) -> list[str]:
        keys = []
        while found := self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                keys += [
                    unquote_plus(record["s3"]["object"]["key"])
                    for record in json.loads(message["Body"]).get("Records", ())
                ]
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        return keys


def test_an_unmodified_job_reads_and_overwrites_s3(lake: Lake) -> None:
    assert lake.run("count")["state"] == "SUCCESS", lake.log("count", "stderr")
    written = lake.keys("out/")
    assert "_SUCCESS" in written
    assert {key.split("/")[0] for key in written - {"_SUCCESS"}} == {"airport=OSL", "airport=BGO"}
    assert not [key for key in written if "_temporary" in key or key.endswith(".crc") or "old" in key]
    osl = next(key for key in written if key.startswith("airport=OSL/"))
    assert json.loads(lake.s3.get_object(Bucket=BUCKET, Key=f"out/{osl}")["Body"].read()) == {"count": 3}


def test_the_marker_is_announced_after_the_data(lake: Lake) -> None:
    announced = [key for key in lake.announced if key.startswith("out/")]
    assert len(announced) == 3
    assert announced[-1] == "out/_SUCCESS"


def test_simultaneous_runs_do_not_see_each_other(lake: Lake) -> None:
    one, other = lake.run("count"), lake.run("beside")
    assert (one["state"], other["state"]) == ("SUCCESS", "SUCCESS"), lake.log("beside", "stderr")
    assert one["startedAt"] < other["endedAt"]
    assert other["startedAt"] < one["endedAt"]
    assert lake.log("count", "stdout") == "counted s3://lake/out/\n"
    assert lake.log("beside", "stdout") == "counted s3://lake/beside\n"


def test_a_failed_job_reports_why(lake: Lake) -> None:
    run = lake.run("fail")
    assert run["state"] == "FAILED"
    assert run["stateDetails"].startswith("Job execution failed, please check complete logs")
    assert "ExitCode: 1" in run["stateDetails"]
    assert "Last few exceptions: KeyError: 'flights'; RuntimeError: no such airport: XYZ" in run["stateDetails"]
    assert "RuntimeError: no such airport: XYZ" in lake.log("fail", "stderr")
    # Spark writes the traceback of a Python driver to its standard output.
    assert lake.log("fail", "stdout").startswith("half done\nTraceback")


def test_a_failed_job_leaves_finished_output_and_nothing_partial(lake: Lake) -> None:
    assert "_SUCCESS" in lake.keys("fail/done/")
    assert lake.keys("fail/half/") == set()


def test_a_cancel_ends_everything_that_the_job_started(lake: Lake) -> None:
    process = Path("/proc") / lake.grandchild.read_text()
    assert process.exists() or not Path("/proc/self").exists()
    lake.emr.cancel(lake.runs["sleep"])
    lake.emr.reaches(lake.runs["sleep"], "CANCELLED")
    eventually(lambda: not process.exists())


def test_a_finished_run_leaves_no_files_on_this_machine(lake: Lake) -> None:
    ended = [lake.runs[name] for name in ("count", "beside", "fail")]
    left = {path.name for path in (lake.emr.emulator.state_dir / "runs").iterdir()}
    assert not left & {f"{run}-1" for run in ended}
