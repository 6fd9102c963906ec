"""What a manifest lists, in the forms in which the world writes it, and what is none (T8)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.events.manifests import BadManifest, keys_of
from tests.core.builders import brief

BUCKET, FOLDER = "lake-bucket", "raw/orders-v2/year=2026/month=09/"
A, B = f"{FOLDER}part-0.parquet", f"{FOLDER}part-1.parquet"
ELSEWHERE = "inventory/source/all/data/0b6a.csv.gz"
INVENTORY = {
    "sourceBucket": "source",
    "destinationBucket": f"arn:aws:s3:::{BUCKET}",
    "version": "2016-11-30",
    "creationTimestamp": "1514944800000",
    "fileFormat": "CSV",
    "fileSchema": "Bucket, Key, Size",
    "files": [{"key": ELSEWHERE, "size": 2147, "MD5checksum": "f11166069f1990abeb9c97ace9cdfabc"}],
}
REDSHIFT = {"entries": [{"url": f"s3://{BUCKET}/{A}", "mandatory": True, "meta": {"content_length": 5}}]}


def keys(text: str, encoding: str = "utf-8") -> tuple[str, ...]:
    return keys_of(text.encode(encoding), BUCKET, FOLDER)


@pytest.mark.parametrize(
    ("manifest", "listed"),
    [
        ('["part-0.parquet", "part-1.parquet"]', (A, B)),
        ('{"files": ["part-0.parquet"]}', (A,)),
        (json.dumps(REDSHIFT), (A,)),
        ('{"files": ["part-0.parquet"], "entries": ["part-1.parquet"]}', (A,)),
        (json.dumps({"entries": [{"url": f"s3://{BUCKET}/{A}"}, "part-1.parquet"]}), (A, B)),
        (json.dumps(INVENTORY), (ELSEWHERE,)),
        (json.dumps({"files": [{"key": A}]}), (A,)),
        ("part-0.parquet\npart-1.parquet\n", (A, B)),
        ("  part-0.parquet  \r\n\n part-1.parquet\r\n", (A, B)),
        (f"s3://{BUCKET}/{A}\ns3a://{BUCKET}/{B}\ns3n://{BUCKET}/{ELSEWHERE}", (A, B, ELSEWHERE)),
        ('["part-0.parquet", "part-0.parquet"]', (A,)),
        ('["at=07%3A00/x"]', (f"{FOLDER}at=07%3A00/x",)),
        ("[]", ()),
        ("", ()),
    ],
)
def test_t8_a_manifest_lists_keys_in_any_of_its_forms(manifest: str, listed: tuple[str, ...]) -> None:
    assert keys(manifest) == listed
    assert keys(f"\ufeff{manifest}") == listed, "with a byte order mark"
    assert keys(manifest, "utf-16") == listed, "with that of UTF-16"


@pytest.mark.parametrize(
    ("manifest", "got"),
    [
        ("5", "got 5"),
        ("null", "got null"),
        ('"a"', 'got "a"'),
        ("{}", "got {}"),
        ('{"files": 5}', "got {"),
        ("[1]", "got 1"),
        ('{"entries": [{"uri": "s3://x/a"}]}', "got {"),
        ('[{"name": "a"}]', 'got {"name": "a"}'),
        ('["a", null]', "got null"),
        ('["part-0.parquet", "par', "cut off or broken"),
        ("[" * 100_000, "nested too deeply"),
        ("s3://other/part-0.parquet", "got s3://other/part-0.parquet"),
        (json.dumps({**INVENTORY, "destinationBucket": "arn:aws:s3:::other"}), f"got s3://other/{ELSEWHERE}"),
        ("x" * 2_000, "at most 1024 bytes"),
        (r'["\ud800"]', "valid Unicode"),
    ],
)
def test_t8_other_content_is_no_manifest_and_says_why(manifest: str, got: str) -> None:
    with pytest.raises(BadManifest, match="expected") as refused:
        keys(manifest)
    assert got in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00\xff", "part-0".encode("utf-16-le"), b"\xff\xfea"])
def test_t8_bytes_that_are_no_text_are_no_manifest(content: bytes) -> None:
    with pytest.raises(BadManifest, match="expected a manifest in UTF-8"):
        keys_of(content, BUCKET, FOLDER)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200), unique=True))
@brief
def test_t8_any_name_survives_a_manifest_in_json(names: list[str]) -> None:
    expected = [name for name in names if "\x00" not in name and "://" not in name]
    assert keys(json.dumps(expected)) == tuple(f"{FOLDER}{name}" for name in expected)
