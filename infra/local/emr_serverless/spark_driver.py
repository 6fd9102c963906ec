"""Runs a job with real Spark, on S3 data mirrored into the directory of the run."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from . import aws, driver_logs, s3_paths, spark_command, spark_parameters, spark_process
from .class_archive import ClassArchive
from .driver import SHUTDOWN, Outcome, Stop
from .mirror import BucketMissing, Mirror, RootRefused
from .records import JobRun
from .settings import Settings
from .spark_parameters import SubmitParameters

log = logging.getLogger(__name__)


class SparkDriver:
    """Each attempt has a directory below `<state_dir>/runs`, removed afterwards unless `keep_run_dirs` is set."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Absolute, because Spark's working directory is that of the run.
        self._state_dir = settings.state_dir.absolute()
        # Processes and files that a killed emulator left behind belong to runs that start again.
        spark_process.end_leftovers(self._state_dir)
        if not settings.keep_run_dirs:
            shutil.rmtree(self._runs, ignore_errors=True)
        self._log_settings = spark_command.write_log_settings(self._state_dir)
        self._archive = ClassArchive(self._state_dir / "class-archive", settings, self._log_settings)
        if settings.class_archive:
            self._archive.build_in_background()

    @property
    def _runs(self) -> Path:
        return self._state_dir / "runs"

    def execute(self, run: JobRun, started: Callable[[], None], stop: Stop) -> Outcome:
        """Download the data, run spark-submit, upload the changes. The logs go to S3 in any case."""
        directory = self._runs / f"{run.id}-{run.attempt}"
        shutil.rmtree(directory, ignore_errors=True)
        for part in ("s3", "logs", "tmp"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        try:
            return self._execute(run, directory, started, stop)
        finally:
            if not self._settings.keep_run_dirs:
                shutil.rmtree(directory, ignore_errors=True)

    def close(self) -> None:
        self._archive.close()

    def _execute(self, run: JobRun, directory: Path, started: Callable[[], None], stop: Stop) -> Outcome:
        s3 = aws.client("s3", self._settings, s3={"addressing_style": "path"}, max_pool_connections=16)
        parameters = spark_parameters.of_run(run)
        mirror = Mirror(s3, directory / "s3", self._settings.mirror_bucket_roots)
        try:
            bring_needs(mirror, run, parameters)
        except (BucketMissing, RootRefused) as error:
            return Outcome(1, str(error))
        command = spark_command.command(run, parameters, self._settings, directory, mirror.buckets)
        environment = spark_command.environment(
            self._settings,
            self._log_settings,
            self._archive.java_options(),
            spark_command.java_options_of(parameters.properties),
        )
        if stop.asked:
            return Outcome(1, stop.reason, interrupted=True)
        started()
        logs = directory / "logs"
        ended = spark_process.run(command, environment, directory, logs, stop, self._settings.stop_grace_s)
        if ended.interrupted and stop.reason == SHUTDOWN:
            return Outcome(ended.code, stop.reason, interrupted=True)
        # Also after a failure: in AWS, too, the files that a job wrote before it failed are in S3.
        uploaded, deleted = mirror.take_back()
        log.info("run %s: exit code %d, %d objects uploaded, %d deleted", run.id, ended.code, uploaded, deleted)
        driver_logs.upload(s3, run, logs)
        why = spark_process.last_exceptions(logs) if ended.code else ""
        return Outcome(ended.code, why, ended.interrupted)


def bring_needs(mirror: Mirror, run: JobRun, parameters: SubmitParameters) -> None:
    """Download the objects that the run names in its entry point, arguments, files, properties and JSON arguments."""
    submit = run.spark_submit
    arguments = [submit["entryPoint"], *(submit.get("entryPointArguments") or ())]
    texts = [*arguments, *(value for _, value in parameters.flags), *parameters.properties.values()]
    named = [path for text in texts for path in s3_paths.find(text)]
    mirror.bring(named)
    documents = [path for text in arguments for path in s3_paths.find(text) if path.key.endswith(".json")]
    mirror.bring(path for document in documents for path in mirror.uris_in_json(document))
