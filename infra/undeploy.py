"""`make undeploy STAGE=dev [DELETE_DATA=yes]`: remove a stage. Tables and buckets stay unless DELETE_DATA is yes.

    python -m infra.undeploy STAGE [--delete-data]

The command lists what it removes before it starts, and names what stays with the commands that remove it. Repeat an
interrupted command to finish it.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from infra import deploy, preflight, stack
from infra.stack import DeployError

_TABLE, _BUCKET, _EMR = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::EMRServerless::Application"
_TABLES = ("CatalogTable", "JobsTable", "RunsTable")
_BUCKETS = ("lake", "control")
_BATCH_SIZE = 1000  # the maximum of S3 per call


@dataclass(frozen=True)
class Data:
    """The tables and buckets with data, by name."""

    tables: tuple[str, ...]
    buckets: tuple[str, ...]


@dataclass(frozen=True)
class Removed:
    """The result: what was removed, and what stays, with the commands that remove it."""

    gone: tuple[str, ...]
    stays: tuple[str, ...]


class Undeploy:
    """Removes one stack, and on request its data."""

    def __init__(
        self,
        session: Any,
        name: str,
        *,
        tell: Callable[[str], None] = lambda line: None,
        report: Callable[[stack.Step], None] = lambda step: None,
        poll_seconds: float = 3.0,
    ) -> None:
        self._session, self._name, self._tell, self._report = session, name, tell, report
        self._poll_seconds = poll_seconds
        self._cloudformation = session.client("cloudformation")
        self._dynamodb, self._s3 = session.client("dynamodb"), session.client("s3")

    def run(self, delete_data: bool) -> Removed:
        """Remove the stage. Raises `DeployError` with what to do if that fails."""
        parameters = stack.parameters(self._cloudformation, self._name)
        resources = list(self._resources())
        data = self._data(resources)
        if parameters is None and not resources and not (data.tables or data.buckets):
            return Removed((), ())
        if parameters is not None and parameters.get("DataRetention") == "Delete" and not delete_data:
            raise DeployError(
                f"expected DELETE_DATA=yes, because {self._name} has DataRetention=Delete and would lose its tables. "
                f"Set it, or keep the tables: make deploy STAGE=... PARAMETERS=DataRetention=Retain, then undeploy."
            )
        lines = [*(f"stack {self._name} with {len(resources)} resources" for _ in [0] if resources)]
        lines += self._listed(data) if delete_data else []
        for line in lines:
            self._tell(f"will be removed: {line}")
        for _, kind, application in resources:
            if kind == _EMR:
                self._stop(application)
        if delete_data:
            self._unprotect(data)
            if parameters is not None and parameters.get("DataRetention") == "Delete":
                self._empty(data)  # CloudFormation deletes only empty buckets
        if resources:
            stack.delete(self._cloudformation, self._name, report=self._report, poll_seconds=self._poll_seconds)
        if delete_data:
            self._delete(data)
            return Removed(tuple(lines), ())
        return Removed(tuple(lines), tuple(self._commands(data)))

    def _resources(self) -> Iterator[tuple[str, str, str]]:
        """Logical id, type and name of each resource of the stack; none if the stack does not exist."""
        pages = self._cloudformation.get_paginator("list_stack_resources").paginate(StackName=self._name)
        try:
            for page in pages:
                for found in page["StackResourceSummaries"]:
                    if found["ResourceStatus"] != "DELETE_COMPLETE":
                        yield found["LogicalResourceId"], found["ResourceType"], found.get("PhysicalResourceId", "")
        except ClientError as error:
            if "does not exist" not in str(error):
                raise

    def _data(self, resources: list[tuple[str, str, str]]) -> Data:
        """The tables and buckets of the stack, and those that an earlier undeploy left."""
        tables = {name for _, kind, name in resources if kind == _TABLE and name}
        buckets = {name for _, kind, name in resources if kind == _BUCKET and name}
        left = re.compile(rf"{re.escape(self._name)}-({'|'.join(_TABLES)})-[A-Z0-9]+")
        for page in self._dynamodb.get_paginator("list_tables").paginate():
            tables |= {name for name in page["TableNames"] if left.fullmatch(name)}
        account = self._session.client("sts").get_caller_identity()["Account"]
        usual = {f"{self._name}-{part}-{account}-{self._session.region_name}" for part in _BUCKETS}
        buckets |= usual & {bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]}
        tables -= {name for name in tables if self._table(name) is None}
        return Data(tuple(sorted(tables)), tuple(sorted(buckets)))

    def _listed(self, data: Data) -> Iterator[str]:
        for name in data.tables:
            rows = (self._table(name) or {}).get("ItemCount", 0)  # DynamoDB updates the count every six hours
            yield f"table {name} with about {rows} rows, and its continuous backups"
        for name in data.buckets:
            first = self._s3.list_object_versions(Bucket=name, MaxKeys=_BATCH_SIZE)
            count = len(first.get("Versions", [])) + len(first.get("DeleteMarkers", []))
            yield f"bucket {name} with {f'more than {count}' if first['IsTruncated'] else count} objects and versions"

    def _commands(self, data: Data) -> Iterator[str]:
        for name in data.tables:
            off = f"aws dynamodb update-table --no-deletion-protection-enabled --table-name {name}"
            protected = (self._table(name) or {}).get("DeletionProtectionEnabled")
            yield f"table {name}: {f'{off} && ' if protected else ''}aws dynamodb delete-table --table-name {name}"
        for name in data.buckets:
            # `aws s3 rb --force` leaves former versions, and then fails.
            emptied = f"b = boto3.resource('s3').Bucket('{name}'); b.object_versions.delete(); b.delete()"
            yield f'bucket {name}: python -c "import boto3; {emptied}"'

    def _table(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._dynamodb.describe_table(TableName=name)["Table"]
        except self._dynamodb.exceptions.ResourceNotFoundException:
            return None
        return found

    def _unprotect(self, data: Data) -> None:
        for name in data.tables:
            if (self._table(name) or {}).get("DeletionProtectionEnabled"):
                self._dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
                self._dynamodb.get_waiter("table_exists").wait(TableName=name)  # waits until the table is active again

    def _stop(self, application: str) -> None:
        """Stop the application: EMR deletes no running application, and stops none that has active job runs."""
        emr = self._session.client("emr-serverless")
        while True:
            try:
                state = emr.get_application(applicationId=application)["application"]["state"]
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    return
                raise
            if state == "STARTED":
                try:
                    emr.stop_application(applicationId=application)
                except emr.exceptions.ValidationException as error:
                    raise DeployError(
                        f"expected EMR application {application} without active job runs: {error}. "
                        f"Pause the schedules (sluice pause), wait for the runs or cancel them, then repeat."
                    ) from None
            if state not in ("STARTED", "STARTING", "STOPPING", "CREATING"):
                return
            time.sleep(self._poll_seconds)

    def _empty(self, data: Data) -> None:
        for bucket in data.buckets:
            pages = self._s3.get_paginator("list_object_versions").paginate(Bucket=bucket)
            for page in pages:
                found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                keys = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in found]
                for start in range(0, len(keys), _BATCH_SIZE):
                    gone = {"Objects": keys[start : start + _BATCH_SIZE], "Quiet": True}
                    failed = self._s3.delete_objects(Bucket=bucket, Delete=gone).get("Errors", [])
                    if failed:
                        raise DeployError(
                            f"expected to empty bucket {bucket}, got {failed[0]['Code']} for {failed[0]['Key']}: "
                            f"{failed[0].get('Message', '')}. Correct this, then repeat."
                        )

    def _delete(self, data: Data) -> None:
        """Delete the tables and buckets that the stack has retained."""
        there = {bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]}
        left = Data(data.tables, tuple(name for name in data.buckets if name in there))
        self._empty(left)
        for bucket in left.buckets:
            self._s3.delete_bucket(Bucket=bucket)
        for table in left.tables:
            if self._table(table) is not None:
                self._dynamodb.delete_table(TableName=table)


def main(argv: list[str] | None = None) -> int:
    """Command line of `make undeploy`. Exit code 1 with one message if the stage could not be removed."""
    console, errors = Console(), Console(stderr=True)
    arguments = sys.argv[1:] if argv is None else argv
    stage, *options = arguments or [""]
    if not stage or options not in ([], ["--delete-data"]):
        errors.print("usage: make undeploy STAGE=stage [DELETE_DATA=yes]", highlight=False)
        return 2

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    try:
        session = preflight.session()
        removed = Undeploy(
            session, f"sluice-{stage}", tell=say, report=lambda step: say(stack.line_of(step))
        ).run(bool(options))  # fmt: skip
    except DeployError as error:
        errors.print(f"undeploy: {error}", style="red", highlight=False, soft_wrap=True)
        return 1
    except (BotoCoreError, ClientError) as error:
        errors.print(f"undeploy: {deploy.explain(error)}", style="red", highlight=False, soft_wrap=True)
        return 1
    if not removed.gone and not removed.stays:
        say(f"sluice-{stage}: nothing to remove in {session.region_name}")
    for line in removed.stays:
        say(f"stays: {line}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
