"""The command line as a process on a pseudo-terminal, where it may prompt."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

SCRIPT = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"


def on_a_terminal(*args: str, answer: str = "") -> tuple[int, str]:
    """The exit code and all output of a command, once it has read ``answer``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, *args], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answer.encode())
    output = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the terminal is closed: the process has ended
            break
        if not part:
            break
        output += part
    os.close(ours)
    return process.wait(), output.decode().replace("\r\n", "\n")
