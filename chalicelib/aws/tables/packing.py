"""Reads the packed rows of runs that earlier versions of Sluice wrote.

They packed most attributes of a run into one: deflated JSON. The deflater began with a dictionary of frequent words and
the keys of the row. The inflater needs the same dictionary. Runs are stored in attributes of their own now (decision
0090), and the next write of a packed row unpacks it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

ATTRIBUTE = "packed"
_RAW = -15  # deflated data without a header
# The dictionary never changes: rows that were packed with it need it to be read.
_WORDS = (
    b'{"late":true,"cancel":true,"unknown_answer":true,"pause_after":3,"backfill":"cursor":null,"leases":1,"paced_until"'
    b':17,"queued_in":"policy:","rank":"lease_until":17,"payload":{"dataset":"path":"s3://","partition":{"year":"2026",'
    b'"month":"1","day":"1"},"workflow":"run_id":"status":"size":1,"correlation":{"year":"2026","month":"1","day":"1"},'
    b'"reason":"","announce":["STARTED","COMPLETED"],"fired_by":"trigger met:  reached COMPLETED at 2026-; 1 partition '
    b'of  came at 2026-","kind":"gathering","event":{"id":"time-","kind":"time","key":"time:","instant":17,'
    b'"accepted_at":17},"request":{"target":{"type":"sqs","queue_url":"https://sqs.us-east-1.amazonaws.com/","group":'
    b'null},"data":{"content_type":"application/json","text":"arguments":["--"],"spark":{"spark.dynamicAllocation.maxExecutors":'
    b'"spark.sql.shuffle.partitions":"spark.executor.cores":"4","spark.executor.memory":"16g","spark.driver.cores":"4",'
    b'"spark.driver.memory":"16g"},"target":{"type":"emr_serverless","entry_point":"s3://sluice-.py","arguments":[],'
    b'"py_files":["s3://"],"spark":{},"application_id":null,"execution_role_arn":null},"properties":{"output":"s3://"},'
    b'"context_uri":"s3://sluice-/context/.json","client_token":"","name":"-1"},"permits":["workflow:","emr:00f"],"kind"'
    b':"fire","fired_by":"due","claimed_at":17,"created_at":17,"priority":5,"attempts":1,"version":1,"nominal_at":17,'
    b'"due_at":17,"accepted_at":17,"start_requested_at":17,"started_at":17,"ended_at":17,"state_at":17,"running_seen_at":17,'
    b'"target_id":"00f","calls":1,"expires_at":17'
)


def unpack(row: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a run, from a packed or an unpacked item."""
    packed = row.get(ATTRIBUTE)
    if packed is None:
        return dict(row)
    clear = {name: content for name, content in row.items() if name != ATTRIBUTE}
    inflater = zlib.decompressobj(_RAW, _dictionary(row))
    text = inflater.decompress(_bytes(packed)) + inflater.flush()
    hidden: dict[str, Any] = json.loads(text)
    return clear | hidden


def _dictionary(row: Mapping[str, Any]) -> bytes:
    return _WORDS + f"{row['wf_key']}{row['schedule_key']}{row['pk']}".encode()


def _bytes(packed: Any) -> bytes:
    """The bytes of a binary attribute: as boto3 reads it, or as the base64 of a stream event."""
    return base64.b64decode(packed) if isinstance(packed, str) else bytes(packed)
