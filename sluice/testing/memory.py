"""The ports in memory: rows of the tables, hints, metrics, the control bucket and the lake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.items import Item
from chalicelib.core.instants import Instant
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.ref import Ref
from chalicelib.core.runs.metrics import Measure
from chalicelib.ports import StoredObject

R = TypeVar("R")


class ParsedRows(Dynamo):
    """Tables in memory, of which each stored item is parsed once: an item never changes, and a write replaces it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._parsed: dict[Key, tuple[Item, Any]] = {}

    def row(self, key: Key, kind: type[R], item: Item) -> R:
        known = self._parsed.get(key)
        if known is None or known[0] is not item:
            known = self._parsed[key] = (item, super().row(key, kind, item))
        row: R = known[1]
        return row


class MemoryHints:
    """Hints in a list. With ``lose``, the queue loses all hints, which must not affect correctness."""

    def __init__(self) -> None:
        self.sent: list[tuple[Instant, Ref]] = []
        self.lose = False

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        if not self.lose:
            self.sent += [(due, ref) for ref in refs]

    def send_all(
        self,
        hints: Sequence[tuple[Instant, Sequence[Ref]]],
        now: Instant,
        *,
        patient: bool = False,
        ahead: bool = False,
        must: bool = False,
        crowd: int = 0,
    ) -> None:
        for due, refs in hints:
            self.send(refs, due, now)

    def keep_warm(self) -> None:
        """Does nothing: no environment has to be started."""

    def due(self, now: Instant) -> dict[Ref, Instant]:
        """Remove the hints that are due, and return their refs, each with its earliest instant."""
        ready = sorted((hint for hint in self.sent if hint[0] <= now), key=lambda hint: hint[0])
        self.sent = [hint for hint in self.sent if hint[0] > now]
        found: dict[Ref, Instant] = {}
        for due, ref in ready:
            found.setdefault(ref, due)
        return found


class MemoryMetrics:
    """Measurements in a list, by name and reason. An unknown reason fails the test, because each new reason is a metric
    that costs money in production."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[float]] = {}

    def add(self, measure: Measure, value: float, reason: str = "") -> None:
        assert (reason in measure.reasons) if measure.reasons else not reason, (measure.name, reason)
        self.kept.setdefault((measure.name, reason), []).append(value)

    def of(self, measure: Measure, reason: str = "") -> list[float]:
        return self.kept.get((measure.name, reason), [])


class MemoryPayloads:
    def __init__(self) -> None:
        self.contexts: dict[str, str] = {}
        self.manifests: dict[str, list[Mapping[str, Any]]] = {}
        self.deployments: dict[str, Any] = {}
        self.uploads: dict[tuple[str, str], bytes] = {}
        self.stamps: dict[tuple[str, str, str], Mapping[str, str]] = {}
        self.data: dict[str, tuple[bytes, str]] = {}
        self.logs: dict[str, str] = {}
        self.results: dict[tuple[str, int], bytes] = {}  # those that programs have written

    def context_uri(self, run_id: str) -> str:
        return f"s3://control/context/{run_id}.json"

    def result_uri(self, run_id: str, attempt: int) -> str:
        return f"s3://control/results/{run_id}-{attempt}.json"

    def result(self, run_id: str, attempt: int, most: int) -> bytes | None:
        content = self.results.get((run_id, attempt))
        return content[: most + 1] if content is not None else None

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None:
        self.contexts[run_id] = json.dumps(context)

    def context(self, run_id: str) -> Mapping[str, Any] | None:
        text = self.contexts.get(run_id)
        return json.loads(text) if text else None

    def log(self, key: str) -> str | None:
        return self.logs.get(key)

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        self.manifests[run_id] = list(events)
        return f"s3://control/manifests/{run_id}.jsonl"

    def manifest(self, run_id: str) -> list[dict[str, Any]] | None:
        found = self.manifests.get(run_id)
        return None if found is None else [dict(event) for event in found]

    def deployment_uri(self, app: str, digest: str) -> str:
        return f"s3://control/deployments/{app}/{digest}.json"

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        self.deployments[self.deployment_uri(app, digest)] = json.loads(json.dumps(document))

    def deployment(self, app: str, digest: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.deployments.get(self.deployment_uri(app, digest))
        return found

    def upload_url(self, app: str, upload: str, seconds: int) -> str:
        return f"https://control/uploads/{app}/{upload}.json"

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        return self.uploads.get((app, upload))

    def put_seen(self, app: str, upload: str, stamps: Mapping[str, str]) -> str:
        digest = f"seen-{len(self.stamps)}"
        self.stamps[app, upload, digest] = json.loads(json.dumps(stamps))
        return digest

    def seen(self, app: str, upload: str, digest: str) -> Mapping[str, str] | None:
        return self.stamps.get((app, upload, digest))

    def put_data(self, uri: str, content: bytes, content_type: str) -> None:
        self.data[uri] = (content, content_type)


class MemoryLake:
    """The objects of all buckets. An uploaded object can be read at once, as in S3."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], str | bytes] = {}
        self.glue: dict[str, str] = {}
        self.reads: list[str] = []
        self.put_at: dict[tuple[str, str], Instant] = {}
        self.sizes: dict[tuple[str, str], int] = {}
        self.etags: dict[tuple[str, str], str] = {}

    def text(self, bucket: str, key: str) -> str | None:
        found = self.objects.get((bucket, key))
        return found.decode() if isinstance(found, bytes) else found

    def content(self, bucket: str, key: str, most: int) -> bytes | None:
        found = self.stored(bucket, key, most)
        return None if found is None else found.content

    def stored(self, bucket: str, key: str, most: int) -> StoredObject | None:
        self.reads.append(key)
        found = self.objects.get((bucket, key))
        content = found.encode() if isinstance(found, str) else found
        if content is not None and len(content) > most:
            raise ValueError(f"expected an object of at most {most} bytes, got {len(content)}: {key}")
        if content is None:
            return None
        return StoredObject(content, self.put_at.get((bucket, key), 0), self.etags.get((bucket, key), ""))

    def metadata_location(self, table: str) -> str | None:
        return self.glue.get(table)

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        return frozenset(key for where, key in self.objects if where == bucket and key.startswith(prefix))
