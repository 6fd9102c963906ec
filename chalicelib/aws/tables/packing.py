"""The row of a run in few bytes, for it is billed by the KB at each of its seven writes.

What keys, indexes and conditions name stays as it is. All else goes as JSON, deflated, into one attribute. The deflater
is shown words that rows have in common, and the row's own keys, before it begins; so it needs the same to inflate.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

ATTRIBUTE = "packed"
CLEAR = frozenset(
    {"pk", "sk", "format", "rev", "state", "wake_shard", "wake_at", "ttl", "wf_key", "schedule_key", "day_key", "at"}
)
_LEVEL, _RAW, _MEMORY = 9, -15, 8
# These never change again: rows that were packed with them can be read with nothing else. What is found most often
# stands last, for it is told in the fewest bits.
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


def pack(row: Mapping[str, Any]) -> dict[str, Any]:
    """A run's attributes as they are stored. ``row`` holds plain values and documents, with the keys of all indexes."""
    hidden = {name: content for name, content in row.items() if name not in CLEAR}
    text = json.dumps(hidden, separators=(",", ":"))
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _words(row))
    packed = deflater.compress(text.encode()) + deflater.flush()
    return {name: content for name, content in row.items() if name in CLEAR} | {ATTRIBUTE: packed}


def unpack(row: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a run, whether they were packed or stored one by one."""
    packed = row.get(ATTRIBUTE)
    if packed is None:
        return dict(row)
    clear = {name: content for name, content in row.items() if name != ATTRIBUTE}
    inflater = zlib.decompressobj(_RAW, _words(row))
    hidden: dict[str, Any] = json.loads(inflater.decompress(_bytes(packed)) + inflater.flush())
    return clear | hidden


def _words(row: Mapping[str, Any]) -> bytes:
    return _WORDS + f"{row['wf_key']}{row['schedule_key']}{row['pk']}".encode()


def _bytes(packed: Any) -> bytes:
    """As boto3 reads it, or as base64, which is how a stream's event carries it."""
    return base64.b64decode(packed) if isinstance(packed, str) else bytes(packed)
