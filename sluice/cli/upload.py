"""``sluice upload``: send code, or data, to a bucket of the installation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from sluice import names, render, wording
from sluice.cli import frame, progress
from sluice.errors import NotReachable, WrongUsage
from sluice.names import APP

OWN = ("lake", "control")  # buckets that a user may name without knowing their real names


def upload(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files, or folders with all their files.")],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URI", help="A folder such as s3://lake/raw/; by default that of the app's code."),
    ] = None,
    namespace: frame.Namespace = None,
    app: frame.App = None,
    as_json: frame.Json = False,
) -> None:
    """Upload code for the jobs of an app; print the address of each file."""
    pairs = list(_files(files))
    if to is None and app is None:
        hint = "add --app NS.APP for code, or --to s3://lake/PREFIX/ for data"
        raise WrongUsage("expected an app or an address, got neither", "--app", hint)
    if to is not None and app is not None:
        raise WrongUsage("expected --app or --to, got both", "--app", "--to names the folder: leave out --app")
    bucket, prefix = (
        _folder(to) if to is not None else ("control", _code_of(names.full_name(APP, app or "", namespace)))
    )
    if bucket in OWN:
        bucket = str(frame.connect().get("/v1/health")[bucket])
    client = _s3()
    sent: list[dict[str, str]] = []
    with progress.counted(len(pairs), "files", as_json) as draw:
        for path, name in pairs:
            draw(len(sent), name)
            _put(client, bucket, f"{prefix}{name}", path)
            sent.append({"file": str(path), "uri": f"s3://{bucket}/{prefix}{name}"})
            if not as_json:
                print(sent[-1]["uri"], flush=True)
        draw(len(sent), "")
    if as_json:
        render.machine({"items": sent, "next_cursor": None})
    elif len(sent) > 1:
        render.note(f"{wording.count(len(sent), 'file')} uploaded")


def _code_of(app: str) -> str:
    return f"code/{app.replace('.', '/')}/"


def _folder(address: str) -> tuple[str, str]:
    """The bucket and the prefix of ``s3://lake/raw/``; a prefix without a slash at its end gets one."""
    parts = urlsplit(address)
    if parts.scheme != "s3" or not parts.netloc:
        hint = "such as s3://lake/raw/orders/; lake and control are the buckets of the installation"
        raise WrongUsage(f"expected an address s3://BUCKET/PREFIX/, got {address!r}", "--to", hint)
    prefix = parts.path.strip("/")
    return parts.netloc, f"{prefix}/" if prefix else ""


def _files(given: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each file, and its name below the address. Flags such as ``_SUCCESS`` come last, after the data they complete."""
    found: list[tuple[Path, str]] = []
    for path in given:
        if path.is_dir():
            found += [(file, file.relative_to(path).as_posix()) for file in sorted(path.rglob("*")) if file.is_file()]
        elif path.is_file():
            found.append((path, path.name))
        else:
            raise WrongUsage(f"expected a readable file or folder, got {path}", "FILE")
    if not found:
        raise WrongUsage(f"expected files, got an empty folder: {', '.join(map(str, given))}", "FILE")
    names_seen = [name for _, name in found]
    twice = next((name for name in names_seen if names_seen.count(name) > 1), None)
    if twice is not None:
        raise WrongUsage(f"expected files of different names, got {twice} twice", "FILE", "upload them separately")
    return iter(sorted(found, key=lambda each: each[0].name.startswith("_")))


def _s3() -> Any:
    from botocore.config import Config
    from botocore.session import Session

    # A custom endpoint, such as that of the local cloud, has no address for each bucket.
    custom = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    style = Config(s3={"addressing_style": "path"}) if custom else None
    return Session().create_client("s3", config=style)


def _put(client: Any, bucket: str, key: str, path: Path) -> None:
    from botocore import exceptions

    try:
        with path.open("rb") as body:
            client.put_object(Bucket=bucket, Key=key, Body=body)
    except exceptions.ClientError as error:
        refusal = error.response.get("Error", {})
        hint = f"check that your AWS credentials may put objects into {bucket}"
        message = f"S3 refused s3://{bucket}/{key}: {refusal.get('Code')}: {refusal.get('Message')}"
        raise NotReachable(message, str(path), hint) from None
    except OSError as error:
        raise WrongUsage(f"expected a readable file, got {path}: {error.strerror}", "FILE") from None
    except exceptions.BotoCoreError as error:
        raise NotReachable(f"s3://{bucket}/{key} was not uploaded: {error}", str(path)) from None
