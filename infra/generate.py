"""Write every file that follows from the code: `make generate`. With `--check` say which are not current.

    python -m infra.generate [--check]

Each line of `GENERATED` is a file and the module that writes it. Not here is what a test judges as behaviour: the
answers on the pages of wrong inputs, the commands on the pages of the tutorial, the table of outages. Nor what needs
measurements: the tables of `python -m benchmarks.page`.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In this order: the layout of the rows refuses a change that stored rows do not survive, so it is first.
GENERATED = (
    ("tests/upgrade/layout.json", "tests.upgrade.layout"),
    ("docs/openapi.json", "tests.web.openapi_page"),
    ("docs/reference.md", "docs.pictures.reference"),
    ("docs/lifecycle.md", "docs.pictures.states"),
    ("docs/internals/permissions.md", "tests.support.permission_page"),
    ("docs/permissions.md", "infra.deployer --table"),
    ("contrib/grafana/sluice.json", "infra.grafana"),
    ("docs/internals/answers.md", "tests.wrong_inputs.scorecard --write"),
    ("docs/decisions/README.md", "docs.pictures.decisions"),
    ("docs/cli.md", "docs.pictures.options"),
    ("docs/pictures/terminal.svg", "tests.docs.terminal_picture"),
    ("sluice/builder_parts.py", "infra.builder_code"),
    ("console/src/api/types.ts", "infra.console_types"),
)


def write() -> list[str]:
    """Write all files. Returns the names of those that have changed. Raises RuntimeError if a module fails."""
    changed = []
    for name, command in GENERATED:
        before = (ROOT / name).read_bytes()
        _run(*command.split())
        if (ROOT / name).read_bytes() != before:
            changed.append(name)
    return changed


def outdated() -> list[str]:
    """The names of the files that are not current. All stay as they are."""
    before = {name: (ROOT / name).read_bytes() for name, _ in GENERATED}
    try:
        return write()
    finally:
        for name, content in before.items():
            if (ROOT / name).read_bytes() != content:
                (ROOT / name).write_bytes(content)


def _run(module: str, *arguments: str) -> None:
    """Run the module as a command of this process, which has read the whole code only once."""
    argv, sys.argv, printed = sys.argv, [module, *arguments], io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_module(module, run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"{module} has failed: {printed.getvalue()}") from ended
    finally:
        sys.argv = argv


def main(argv: list[str]) -> int:
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    check = argv == ["--check"]
    found = outdated() if check else write()
    for name in found:
        print(f"not current: {name}; run make generate" if check else name)
    return 1 if check and found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
