"""The reads of all tables, by one `Dynamo`."""

from __future__ import annotations

from typing import TypedDict

from chalicelib.aws.tables.catalog import DynamoCatalog
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.prefetch import DynamoPrefetch
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoRuns, DynamoWakes


class TablePorts(TypedDict):
    """The fields of `ports.Ports` that read tables."""

    rows: DynamoRows
    catalog: DynamoCatalog
    jobs: DynamoJobs
    runs: DynamoRuns
    wakes: DynamoWakes
    prefetch: DynamoPrefetch


def table_ports(dynamo: Dynamo) -> TablePorts:
    return {
        "rows": DynamoRows(dynamo),
        "catalog": DynamoCatalog(dynamo),
        "jobs": DynamoJobs(dynamo),
        "runs": DynamoRuns(dynamo),
        "wakes": DynamoWakes(dynamo),
        "prefetch": DynamoPrefetch(dynamo),
    }
