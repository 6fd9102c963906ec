"""The AWS SDK in the package: boto3 and botocore without documentation.

Lambda's runtime has an SDK of its own, whose version depends on the region and changes without a deployment. The
package holds the version that is tested (decision 0121). The models of services that only a target may name lie beside
botocore's own (`chalicelib/aws/models.py`, decision 0171).
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

# The services of all clients in chalicelib; a test compares them.
SERVICES = frozenset(
    {
        *("athena", "batch", "cloudwatch", "dynamodb", "ec2", "ecs", "emr-containers", "emr-serverless", "events"),
        *("glue", "lambda", "s3", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions", "sts"),
    }
)
OTHERS = "data-of-other-services"  # the folder beside botocore's own
_UNUSED = ("boto3/data", "boto3/examples")  # resources, which the code does not use
# What only documents, or the methods of clients that the code does not call.
_OF_OTHERS = ("paginators-1*", "waiters-2*")


def prune(folder: Path) -> None:
    """Remove from a folder with boto3 and botocore what no Lambda uses, and put the models of other services aside."""
    for name in _UNUSED:
        shutil.rmtree(folder / name, ignore_errors=True)
    models = folder / "botocore" / "data"
    others = models.with_name(OTHERS)
    for model in [*models.iterdir()] if models.is_dir() else ():
        if model.is_dir() and model.name not in SERVICES:
            shutil.move(model, others / model.name)
    for each in (each for pattern in _OF_OTHERS for each in others.rglob(pattern)):
        each.unlink()
    for examples in models.parent.rglob("examples-1.json*"):
        examples.unlink()
    for packed in models.parent.rglob("service-2.json.gz"):
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
