"""`make provider`: the code of the Lambda behind ``Custom::SluiceApp``, as ``sluice-app.zip``.

    python -m infra.provider OUT

It has the modules of the client that the Lambda imports, and PyYAML. Both are Python alone, so one zip fits each
processor and each Python from 3.11 on. The same sources give the same bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "sluice-app.zip"
HANDLER = "sluice.cloudformation"
PACKAGES = ("sluice", "yaml")
_BEGAN = (1980, 1, 1, 0, 0, 0)  # the time of each file: the first one that a zip can have
_LISTED = (
    f"import json, sys, {HANDLER}; "
    "print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if hasattr(module, '__file__')}))"
)


def build(out: Path) -> Path:
    """Write the zip into a folder, and return its path."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(_sources()):
            archive.writestr(entry(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


def entry(name: str) -> zipfile.ZipInfo:
    """A file of a zip. Lambda runs the code as another user, so everybody may read it.
    https://docs.aws.amazon.com/lambda/latest/dg/python-package.html"""
    found = zipfile.ZipInfo(name, _BEGAN)
    found.external_attr = 0o644 << 16
    return found


def _sources() -> Iterator[tuple[str, Path]]:
    """The files of the packages that the import of the handler loads, by their names in the zip. The C parts of PyYAML
    are left out: it does without them."""
    done = subprocess.run([sys.executable, "-c", _LISTED], capture_output=True, text=True, check=True, cwd=ROOT)
    for module, file in json.loads(done.stdout).items():
        path = Path(file or "")
        if module.partition(".")[0] in PACKAGES and path.suffix == ".py":
            is_package = path.name == "__init__.py"
            yield module.replace(".", "/") + ("/__init__.py" if is_package else ".py"), path


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("expected a folder: python -m infra.provider OUT", file=sys.stderr)
        return 2
    target = build(Path(arguments[0]))
    print(f"{target} ({target.stat().st_size / 1e3:.0f} kB)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
