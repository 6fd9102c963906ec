"""Documents in the control bucket: run contexts, manifests and deployments. Implements `ports.Payloads`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


class S3Payloads:
    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def context_uri(self, run_id: str) -> str:
        return f"s3://{self._bucket}/{_context_key(run_id)}"

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None:
        self._put(_context_key(run_id), json.dumps(context, indent=1), "application/json")

    def context(self, run_id: str) -> Mapping[str, Any] | None:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=_context_key(run_id))
        except self._client.exceptions.NoSuchKey:
            return None  # its life in the bucket is over; who comes later knows the run's id all the same
        document: Mapping[str, Any] = json.loads(answer["Body"].read())
        return document

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        key = f"manifests/{run_id}.jsonl"
        self._put(key, "".join(f"{json.dumps(event)}\n" for event in events), "application/x-ndjson")
        return f"s3://{self._bucket}/{key}"

    def deployment_uri(self, app: str, digest: str) -> str:
        return f"s3://{self._bucket}/{_deployment_key(app, digest)}"

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        self._put(_deployment_key(app, digest), json.dumps(document, indent=1), "application/json")

    def _put(self, key: str, text: str, content_type: str) -> None:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType=content_type)


def _context_key(run_id: str) -> str:
    return f"context/{run_id}.json"


def _deployment_key(app: str, digest: str) -> str:
    return f"deployments/{app}/{digest}.json"
