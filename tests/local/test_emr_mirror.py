"""Download of S3 data for a run and upload of the run's changes, against S3 itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.emr_serverless.mirror import BucketMissing, Mirror, RootRefused
from infra.local.emr_serverless.s3_paths import S3Path, find, find_in_json


def put(s3: Any, bucket: str, **objects: str) -> None:
    for key, body in objects.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body.encode())


def keys(s3: Any, bucket: str) -> set[str]:
    return {found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", ())}


def files(directory: Path, bucket: str) -> set[str]:
    root = directory / bucket
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def mirror(s3: Any, tmp_path: Path) -> Mirror:
    return Mirror(s3, tmp_path)


@pytest.mark.parametrize(
    ("named", "brought"),
    [
        ("raw/", {"raw/a.csv", "raw/a.csv.bak/d.csv", "raw/day=1/b.csv"}),
        ("raw", {"raw/a.csv", "raw/a.csv.bak/d.csv", "raw/day=1/b.csv"}),
        ("raw/a.csv", {"raw/a.csv"}),
        ("raw/day=1/*.csv", {"raw/day=1/b.csv"}),
        ("raw/day=*/b.csv", {"raw/a.csv", "raw/a.csv.bak/d.csv", "raw/day=1/b.csv"}),
        ("raw/day=1", {"raw/day=1/b.csv"}),
        ("new/", set()),
    ],
)
def test_a_uri_mirrors_its_object_or_all_below_it_only(
    s3: Any, bucket: str, mirror: Mirror, tmp_path: Path, named: str, brought: set[str]
) -> None:
    put(s3, bucket, **{"raw/a.csv": "1", "raw/a.csv.bak/d.csv": "2", "raw/day=1/b.csv": "3", "rawer/c.csv": "4"})
    mirror.bring([S3Path(bucket, named)])
    assert files(tmp_path, bucket) == brought
    assert mirror.buckets == [bucket]


def test_a_whole_bucket_is_refused_unless_requested(s3: Any, bucket: str, tmp_path: Path) -> None:
    put(s3, bucket, a="1")
    with pytest.raises(RootRefused, match=f"expected a path inside of bucket {bucket}"):
        Mirror(s3, tmp_path / "no").bring([S3Path(bucket, "")])
    with pytest.raises(RootRefused):
        Mirror(s3, tmp_path / "glob").bring([S3Path(bucket, "*.csv")])
    Mirror(s3, tmp_path / "yes", allow_roots=True).bring([S3Path(bucket, "")])
    assert files(tmp_path / "yes", bucket) == {"a"}


@pytest.mark.parametrize("key", ["code/job.py", "raw/", "raw/*.csv"])
def test_a_bucket_that_does_not_exist_is_named(mirror: Mirror, key: str) -> None:
    with pytest.raises(BucketMissing, match="there is no bucket-of-nobody"):
        mirror.bring([S3Path("bucket-of-nobody", key)])


def test_only_changed_files_are_uploaded(s3: Any, bucket: str, mirror: Mirror, tmp_path: Path) -> None:
    put(s3, bucket, **{"in/x": "x", "out/stale": "old", "out/_SUCCESS": "", "other/y": "y"})
    mirror.bring([S3Path(bucket, "in/"), S3Path(bucket, "out/")])
    # Another client writes during the run, outside the run's changes.
    put(s3, bucket, **{"in/z": "z"})
    out = tmp_path / bucket / "out"
    (out / "stale").unlink()
    (out / "part-0").write_text("new")
    (out / ".part-0.crc").write_text("checksum")
    (out / "_temporary" / "0").mkdir(parents=True)
    (out / "_temporary" / "0" / "part-1").write_text("half")
    assert mirror.take_back() == (1, 1)
    assert keys(s3, bucket) == {"in/x", "in/z", "out/part-0", "out/_SUCCESS", "other/y"}


class Recorder:
    """Passes calls on to S3 and keeps those that change an object."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self.changes: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def upload_file(self, file: str, bucket: str, key: str) -> None:
        self.changes.append(f"put {key}")
        self._s3.upload_file(file, bucket, key)

    def delete_objects(self, Bucket: str, Delete: Any) -> Any:
        self.changes += [f"delete {one['Key']}" for one in Delete["Objects"]]
        return self._s3.delete_objects(Bucket=Bucket, Delete=Delete)


def test_the_marker_is_deleted_first_and_uploaded_last(s3: Any, bucket: str, tmp_path: Path) -> None:
    put(s3, bucket, **{"out/_SUCCESS": "", "out/old": "1"})
    recorder = Recorder(s3)
    mirror = Mirror(recorder, tmp_path)
    mirror.bring([S3Path(bucket, "out/")])
    out = tmp_path / bucket / "out"
    for old in list(out.iterdir()):
        old.unlink()
    for name in ("_SUCCESS", *(f"part-{n}" for n in range(20))):
        (out / name).write_text("")
    mirror.take_back()
    assert set(recorder.changes[:2]) == {"delete out/_SUCCESS", "delete out/old"}
    assert recorder.changes[-1] == "put out/_SUCCESS"
    assert len(recorder.changes) == 2 + 21


def test_uris_are_read_from_a_json_document_of_any_depth(s3: Any, bucket: str, mirror: Mirror) -> None:
    context = {"in": [f"s3://{bucket}/raw/day=1/"], "up": {"out": f"s3a://{bucket}/out"}, "n": 1, "none": None}
    put(s3, bucket, **{"context/r.json": json.dumps(context), "context/no.json": "no json"})
    mirror.bring([S3Path(bucket, "context/")])
    assert mirror.uris_in_json(S3Path(bucket, "context/r.json")) == [
        S3Path(bucket, "raw/day=1/"),
        S3Path(bucket, "out"),
    ]
    assert mirror.uris_in_json(S3Path(bucket, "context/no.json")) == []
    assert mirror.uris_in_json(S3Path(bucket, "context/absent.json")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://b/a b, c", [S3Path("b", "a b, c")]),
        ("--in=s3://b/x", [S3Path("b", "x")]),
        ("s3://b/x.py,s3://c/y.zip", [S3Path("b", "x.py"), S3Path("c", "y.zip")]),
        ("s3://b", [S3Path("b", "")]),
        ("https://b/x", []),
        ("read 's3n://b/x/' now", [S3Path("b", "x/")]),
    ],
)
def test_uris_are_found_in_texts(text: str, found: list[S3Path]) -> None:
    assert list(find(text)) == found
    assert list(find_in_json([{"k": text}])) == found


def test_a_key_outside_its_bucket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a key that is a path below its bucket"):
        S3Path("b", "../c/x").under(tmp_path)
