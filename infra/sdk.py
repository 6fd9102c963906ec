"""The AWS SDK in the package: boto3 and botocore without the services that no Lambda calls, and without documentation.

Lambda's runtime has an SDK of its own, whose version depends on the region and changes without a deployment. The
package holds the version that is tested (decision 0121).
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

# The services of all clients in chalicelib; a test compares them.
SERVICES = frozenset(
    {
        *("athena", "cloudwatch", "dynamodb", "ec2", "emr-serverless", "events", "glue", "lambda"),
        *("s3", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions", "sts"),
    }
)
_UNUSED = ("boto3/data", "boto3/examples")  # resources, which the code does not use


def prune(folder: Path) -> None:
    """Remove from a folder with boto3 and botocore what no Lambda uses."""
    for name in _UNUSED:
        shutil.rmtree(folder / name, ignore_errors=True)
    models = folder / "botocore" / "data"
    for model in models.iterdir() if models.is_dir() else ():
        if model.is_dir() and model.name not in SERVICES:
            shutil.rmtree(model)
    for examples in models.rglob("examples-1.json*"):
        examples.unlink()
    for packed in models.rglob("service-2.json.gz"):
        bare = json.dumps(
            without_documentation(json.loads(gzip.decompress(packed.read_bytes()))), separators=(",", ":")
        )
        packed.write_bytes(gzip.compress(bare.encode(), mtime=0))  # the same package of the same code


def without_documentation(part: Any) -> Any:
    """A part of a service model without its texts: most of it, which each client would read. A member may have the name
    `documentation`, too; it is no text."""
    if isinstance(part, list):
        return [without_documentation(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = (one for one in part.items() if one[0] != "documentation" or not isinstance(one[1], str))
    return {name: without_documentation(value) for name, value in kept}
