"""The page of the console: its size, what its build contains, and its own tests, which npm runs."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "sluice" / "console" / "static"
NODE = ROOT / "build" / "console-venv" / "bin"
MAX_BYTES = 300_000  # gzipped, of the first load with the list of schedules
MAX_BYTES_OF_PICTURE = 300_000
START, LIST = "index.html", "src/views/schedules.tsx"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    path = BUILD / ".vite" / "manifest.json"
    assert path.is_file(), "expected the built console, got none: run make console"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def files_of(manifest: dict[str, Any], *entries: str) -> set[str]:
    """The files that the browser loads for these entries: their scripts and styles, and those that they import."""
    found: set[str] = set()
    left = list(entries)
    while left:
        part = manifest[left.pop()]
        if part["file"] not in found:
            found |= {part["file"], *part.get("css", ())}
            left += part.get("imports", ())
    return found


def gzipped(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9))


def test_the_first_load_with_the_list_is_small(manifest: dict[str, Any]) -> None:
    sizes = {name: gzipped(BUILD / name) for name in [START, *files_of(manifest, START, LIST)]}
    assert sum(sizes.values()) <= MAX_BYTES, sizes


def test_the_layout_of_graphs_is_no_part_of_the_first_load(manifest: dict[str, Any]) -> None:
    first = "".join((BUILD / name).read_text(encoding="utf-8") for name in files_of(manifest, START, LIST))
    assert "nodesep" not in first


def test_the_page_needs_no_inline_script_or_style(manifest: dict[str, Any]) -> None:
    text = (BUILD / START).read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", text) == []


def test_the_pictures_of_the_documents_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*.png")}
    assert len(sizes) >= 4
    assert {name: size for name, size in sizes.items() if size > MAX_BYTES_OF_PICTURE} == {}


def npm(script: str, **named: str) -> None:
    """Run a script of the page with these environment variables. Raises AssertionError with its output if it fails."""
    assert (NODE / "npm").exists(), "expected Node in build/console-venv, got none: run make console"
    environment = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "CI": "1"} | named
    command = [str(NODE / "npm"), "--silent", "run", script]
    done = subprocess.run(command, cwd=ROOT / "console", env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


@pytest.mark.parametrize("script", ["lint", "types", "test"])
def test_the_page_keeps_its_style_types_and_rules(script: str) -> None:
    npm(script)


def test_o8_each_view_and_action_works_in_a_browser() -> None:
    npm("browser", SAMPLE="yes")


@pytest.mark.long
def test_each_view_and_action_works_in_each_way_in_a_browser() -> None:
    npm("browser")
