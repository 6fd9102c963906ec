"""The files of an export: in a folder, or below a prefix of a bucket. Implements `Archive`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluice.errors import WrongUsage


class Folder:
    """Only its owner may read the files: they have the definitions, members, records and runs of namespaces."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self, name: str) -> str | None:
        file = self._path / name
        return file.read_text(encoding="utf-8") if file.is_file() else None

    def put(self, name: str, text: str) -> None:
        """Write a file whole or not at all: under another name first."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._path / f".{name}.part"
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(self._path / name)


class Bucket:
    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client, self._bucket, self._prefix = client, bucket, prefix

    def text(self, name: str) -> str | None:
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}{name}")
        except self._client.exceptions.NoSuchKey:
            return None
        content: str = found["Body"].read().decode()
        return content

    def put(self, name: str, text: str) -> None:
        self._client.put_object(Bucket=self._bucket, Key=f"{self._prefix}{name}", Body=text.encode())


def archive(address: str, session: Any) -> Folder | Bucket:
    """The files at a folder, or at ``s3://BUCKET/PREFIX/``."""
    if not address.startswith("s3:"):
        return Folder(Path(address))
    parts = urlsplit(address)
    if not parts.netloc:
        raise WrongUsage(f"expected s3://BUCKET/PREFIX/, got {address}", "--to", "such as s3://backups/sluice/prod/")
    prefix = parts.path.strip("/")
    return Bucket(session.client("s3"), parts.netloc, f"{prefix}/" if prefix else "")
