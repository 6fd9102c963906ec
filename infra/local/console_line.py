"""The line with which `make up` and `make demo` end: the command that opens the web console."""

from __future__ import annotations

from pathlib import Path

from sluice.console import files


def console_line(namespace: str | None = None, page: Path | None = None) -> str:
    """The command for a shell in the checkout. It builds the page first if `page`, its folder, has none."""
    built = ((page or files.BUILT) / "index.html").is_file()
    steps = ["source .local/endpoints.env"]
    if not built:
        steps.append("make console")
    steps.append(".venv/bin/sluice console" + (f" -n {namespace}" if namespace else ""))
    return " && ".join(steps)
