"""`make package`: merge Chalice's package and Sluice's resources into one template, with the code next to it.

    python -m infra.package OUT [--without-dependencies]

Chalice works on a copy of the packaged files, never in the checkout. So the package contains exactly `app.py`,
`chalicelib/` and the pinned runtime requirements, and two simultaneous runs do not disturb each other.

pip downloads the requirements itself, into the folder `vendor` of that copy, which Chalice packs. It takes only wheels
for the Lambdas' processor whose hashes are in requirements-lambda.lock. Chalice would take those of another processor,
or download them without hashes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from infra import sdk, template, yaml_tags
from infra.bytecode import add_bytecode

ROOT = Path(__file__).resolve().parent.parent
CODE = "deployment.zip"
TEMPLATE = "template.yaml"
PINS = "requirements-lambda.lock"
_PACKED = ("app.py", "chalicelib", ".chalice/config.json")
# The platform of the wheels, by the architecture of the Lambdas. Lambda's Python 3.11 runs on Amazon Linux 2. Newer
# ones run on Amazon Linux 2023, which takes these wheels as well.
PLATFORMS = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}
# Chalice gives the Lambdas the runtime of the Python that packages, and the compiled modules are for it, too.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_LINES_OF_ERROR = 3
_NOT_PACKED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.md", ".DS_Store")


class PackageError(Exception):
    """Packaging failed. The message contains Chalice's output."""


def package(out: Path, *, with_dependencies: bool = True, root: Path = ROOT) -> Path:
    """Write `template.yaml` and `deployment.zip` into `out`; return the template's path.

    Without dependencies the zip holds only Sluice's own code. That is for the local cloud, whose Lambdas run in this
    Python environment. It needs no download, starts faster, and works on any processor."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sluice-package-") as scratch:
        project = Path(scratch) / "project"
        _copy_sources(root, project)
        (project / "requirements.txt").write_text("")
        if with_dependencies:
            download(root / PINS, project / "vendor", architecture_of(root))
            sdk.prune(project / "vendor")
        built = Path(scratch) / "built"
        _run_chalice(project, built)
        merged = merged_template((built / "sam.yaml").read_text(), root)
        add_bytecode(built / CODE)
        shutil.copyfile(built / CODE, out / CODE)
    target = out / TEMPLATE
    target.write_text(yaml_tags.dump(merged))
    return target


def merged_template(chalice_template: str, root: Path = ROOT) -> template.Template:
    """Chalice's template text, merged with the fragments and policies of `infra/`."""
    fragments = [yaml_tags.load(p.read_text()) for p in sorted((root / "infra/resources").glob("*.yaml"))]
    policies = {p.stem: yaml_tags.load(p.read_text()) for p in sorted((root / "infra/policies").glob("*.yaml"))}
    return template.assemble(yaml_tags.load(chalice_template), fragments, policies)


def architecture_of(root: Path = ROOT) -> str:
    """The architecture of all Lambdas, as Chalice's configuration names it."""
    return str(json.loads((root / ".chalice/config.json").read_text())["lambda_architecture"])


def download(pins: Path, folder: Path, architecture: str, python: str = PYTHON) -> None:
    """Install the wheels of a list of pins for Lambdas of this architecture and Python into a folder.

    Raises PackageError if Lambda has no such architecture, or if a pin has no wheel for it, no hash, or another hash
    than the downloaded file."""
    if architecture not in PLATFORMS:
        expected = f"expected {' or '.join(PLATFORMS)} as lambda_architecture in .chalice/config.json"
        raise PackageError(f"{expected}, got {architecture}")
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"),
        *("--no-deps", "--only-binary=:all:", "--platform", PLATFORMS[architecture]),
        *("--implementation", "cp", "--python-version", python),
        *("--no-compile", "--target", str(folder), "-r", str(pins)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise PackageError(
            f"pip did not install {pins.name} for Lambda (Python {python}, Linux, {architecture}). Output:\n"
            f"{done.stderr.strip()}"
        )
    shutil.rmtree(folder / "bin", ignore_errors=True)  # commands of the machine that packages


def _copy_sources(root: Path, project: Path) -> None:
    for name in _PACKED:
        source, target = root / name, project / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_NOT_PACKED)
        else:
            shutil.copyfile(source, target)


def _run_chalice(project: Path, built: Path) -> None:
    # Chalice imports app.py to read its routes. It needs a region for that, but no credentials.
    environment = {"AWS_DEFAULT_REGION": "us-east-1", **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        *(
            sys.executable,
            "-c",
            "import sys; from chalice.cli import main; sys.exit(main())",
            "--project-dir",
            str(project),
        ),
        *("package", "--stage", "sluice", "--template-format", "yaml", str(built)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=project)
    output = f"{done.stdout}{done.stderr}".strip()
    if done.returncode != 0:
        # The last lines name the error; the lines before are Chalice's own frames.
        end = "\n".join(output.splitlines()[-_LINES_OF_ERROR:]).replace(f"{project}/", "")
        raise PackageError(f"`chalice package` failed, usually because app.py cannot be imported. Output:\n{end}")


def main(argv: list[str] | None = None) -> int:
    """Command line of `make package`. Exit code 1 with one message when packaging fails."""
    parser = argparse.ArgumentParser(prog="python -m infra.package", description="Package Sluice for deployment.")
    parser.add_argument("out", type=Path, help="folder for template.yaml and deployment.zip")
    parser.add_argument("--without-dependencies", action="store_true", help="own code only, for the local cloud")
    options = parser.parse_args(argv)
    try:
        written = package(options.out, with_dependencies=not options.without_dependencies)
    except (PackageError, template.TemplateError, ValueError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    size = (options.out / CODE).stat().st_size / 1e6
    print(f"{written} and {options.out / CODE} ({size:.1f} MB)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
