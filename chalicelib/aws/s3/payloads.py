"""Documents in the control bucket, and data in the bucket of its app. Implements `ports.Payloads`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.core import ids
from chalicelib.core.errors import invalid

# The user's bucket does not exist, or its policy does not let Sluice write.
_NOT_OURS = {"NoSuchBucket", "AccessDenied", "AllAccessDisabled", "PermanentRedirect", "InvalidBucketName"}


MAX_LOG, MAX_READ = 1_000_000, 256 * 1024  # bytes: of a log that is returned, and of one read


class S3Payloads:
    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def context_uri(self, run_id: str) -> str:
        return f"s3://{self._bucket}/{_context_key(run_id)}"

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None:
        self._put(_context_key(run_id), json.dumps(context, indent=1), "application/json")

    def context(self, run_id: str) -> Mapping[str, Any] | None:
        return self._document(_context_key(run_id))

    def result_uri(self, run_id: str, attempt: int) -> str:
        return f"s3://{self._bucket}/{_result_key(run_id, attempt)}"

    def result(self, run_id: str, attempt: int, most: int) -> bytes | None:
        body = self._body(_result_key(run_id, attempt))
        content: bytes | None = body.read(most + 1) if body is not None else None
        return content

    def log(self, key: str) -> str | None:
        body = self._body(key)
        return _tail(body) if body is not None else None

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        key = _manifest_key(run_id)
        self._put(key, "".join(f"{json.dumps(event)}\n" for event in events), "application/x-ndjson")
        return f"s3://{self._bucket}/{key}"

    def manifest(self, run_id: str) -> list[dict[str, Any]] | None:
        body = self._body(_manifest_key(run_id))
        return [json.loads(line) for line in body.read().splitlines()] if body is not None else None

    def deployment_uri(self, app: str, digest: str) -> str:
        return f"s3://{self._bucket}/{_deployment_key(app, digest)}"

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        self._put(_deployment_key(app, digest), json.dumps(document, indent=1), "application/json")

    def deployment(self, app: str, digest: str) -> Mapping[str, Any] | None:
        return self._document(_deployment_key(app, digest))

    def upload_url(self, app: str, upload: str, seconds: int) -> str:
        where = {"Bucket": self._bucket, "Key": _upload_key(app, upload)}
        url: str = self._client.generate_presigned_url("put_object", Params=where, ExpiresIn=seconds)
        return url

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        body = self._body(_upload_key(app, upload))
        content: bytes | None = body.read(most + 1) if body is not None else None
        return content

    def put_seen(self, app: str, upload: str, stamps: Mapping[str, str]) -> str:
        text = json.dumps(stamps, sort_keys=True)
        digest = ids.digest(text)
        self._put(_seen_key(app, upload, digest), text, "application/json")
        return digest

    def seen(self, app: str, upload: str, digest: str) -> Mapping[str, str] | None:
        return self._document(_seen_key(app, upload, digest))

    def put_data(self, uri: str, content: bytes, content_type: str) -> None:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        try:
            self._client.put_object(Bucket=bucket, Key=key, Body=content, ContentType=content_type)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in _NOT_OURS:
                raise
            hint = f"allow s3:PutObject on {bucket}/data/* to the roles of api and check, or change data_bucket"
            raise invalid("data", f"a bucket {bucket} that takes large data", f"{code} from S3", hint) from None

    def _body(self, key: str) -> Any:
        """The stream of an object; None if there is none, or the bucket's lifecycle rule has removed it."""
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        except self._client.exceptions.NoSuchKey:
            return None

    def _document(self, key: str) -> Mapping[str, Any] | None:
        body = self._body(key)
        document: Mapping[str, Any] | None = json.loads(body.read()) if body is not None else None
        return document

    def _put(self, key: str, text: str, content_type: str) -> None:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType=content_type)


def _tail(packed: Any) -> str:
    """The end of a gzip stream, at most `MAX_LOG` bytes. A driver may write for hours, so the whole never is in
    memory."""
    unpack, tail = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), b""
    for start in iter(lambda: packed.read(MAX_READ), b""):
        chunk = start
        while chunk:
            tail = (tail + unpack.decompress(chunk, MAX_READ))[-MAX_LOG:]
            chunk = unpack.unconsumed_tail
            if unpack.eof and unpack.unused_data:  # the next gzip member: a log is uploaded in parts
                chunk, unpack = unpack.unused_data, zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    return tail.decode(errors="replace")


def _context_key(run_id: str) -> str:
    return f"context/{run_id}.json"


def _result_key(run_id: str, attempt: int) -> str:
    return f"results/{run_id}-{attempt}.json"


def _manifest_key(run_id: str) -> str:
    return f"manifests/{run_id}.jsonl"


def _upload_key(app: str, upload: str) -> str:
    return f"uploads/{app}/{upload}.json"


def _seen_key(app: str, upload: str, digest: str) -> str:
    return f"uploads/{app}/{upload}.seen-{digest}.json"


def _deployment_key(app: str, digest: str) -> str:
    return f"deployments/{app}/{digest}.json"
