"""`make release`: everything that an installation without a clone needs, in one folder with checksums.

    python -m infra.release OUT

    sluice-0.1.0-py3-none-any.whl       the client, the console and the test kit
    sluice_job-....whl, sluice_job.py   the library of jobs
    template.yaml, deployment.zip       the service, for `aws cloudformation package`
    system-app.zip                      Sluice's own app with its jobs
    provider.yaml, sluice-app.zip       the Lambda behind Custom::SluiceApp
    sluice_cdk.py                       its constructs of the CDK
    site.tar.gz                         the documents as a site
    CHANGES.md                          the section of the changelog
    SHA256SUMS                          `sha256sum --check SHA256SUMS`

`make release` builds the console and the site first. The same commit gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

from infra import package, provider, system_app

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
CONSOLE = ROOT / "sluice" / "console" / "static" / "index.html"
SUMS = "SHA256SUMS"
COPIED = (
    ROOT / "job_library" / "sluice_job.py",
    ROOT / "contrib" / "cloudformation" / "provider.yaml",
    ROOT / "contrib" / "cdk" / "sluice_cdk.py",
)


class ReleaseError(Exception):
    """The release cannot be built. The message says what to do."""


def build(out: Path) -> list[Path]:
    """Write the files of the release into a folder that is made anew, and return them by name."""
    for made, target in ((SITE / "index.html", "docs"), (CONSOLE, "console")):
        if not made.exists():
            raise ReleaseError(f"expected {made.relative_to(ROOT)}, got none; run `make {target}`, or `make release`")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "CHANGES.md").write_text(changes((ROOT / "CHANGELOG.md").read_text(), version()))
    for source in COPIED:
        shutil.copyfile(source, out / source.name)
    provider.build(out)
    package.package(out)
    zipped(out / "system-app.zip", {path.name: path for path in (system_app.APP, *system_app.JOBS)})
    archived(out / "site.tar.gz", SITE)
    for project in (ROOT, ROOT / "job_library"):
        _wheel(project, out)
    return summed(out)


def version() -> str:
    """The version of the client, which is that of the release."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def changes(changelog: str, version: str) -> str:
    """The section of a version in the changelog; that of what is not released yet, if the version has none."""
    sections = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.M)
    by_name = dict(zip(sections[1::2], sections[2::2], strict=True))
    found = by_name.get(version, by_name.get("Unreleased"))
    if found is None:
        raise ReleaseError(f"expected a section [{version}] in CHANGELOG.md, got {', '.join(by_name) or 'none'}")
    return f"# Changes of {version}\n\n{found.strip()}\n"


def zipped(target: Path, files: dict[str, Path]) -> None:
    """Write files under their names into a zip."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(files.items()):
            archive.writestr(provider.entry(name), source.read_bytes(), zipfile.ZIP_DEFLATED)


def archived(target: Path, folder: Path) -> None:
    """Write a folder as an archive, without times and owners."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    target.write_bytes(gzip.compress(made.getvalue(), mtime=0))


def summed(out: Path) -> list[Path]:
    """Write the checksums of the files of a folder into it. Returns all its files by name."""
    files = sorted(path for path in out.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / SUMS).write_text("".join(lines))
    return [*files, out / SUMS]


def _wheel(project: Path, out: Path) -> None:
    """Build the wheel of a project of this checkout. Its files have the time of the last commit."""
    stamp = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": stamp.stdout.strip() or "315532800"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(out), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise ReleaseError(f"expected a wheel of {project.name}, got an error of pip: {done.stderr.strip()}")


def main(argv: list[str] | None = None) -> int:
    """Command line. Exit code 1 with one message if the release cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m infra.release", description="Build the files of a release.")
    parser.add_argument("out", type=Path, help="the folder, which is made anew")
    options = parser.parse_args(argv)
    try:
        files = build(options.out)
    except (ReleaseError, package.PackageError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in files:
        print(f"{path} ({path.stat().st_size / 1e3:,.0f} kB)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
