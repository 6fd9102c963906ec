"""The command line as a process on a pseudo-terminal, where it may prompt."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SCRIPT = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"


def heed_ctrl_c() -> None:
    """Let ctrl-c end a new process, also if the tests run in the background: a shell lets those ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_a_terminal(*args: str, answer: str = "", wait_for: str = "") -> tuple[int, str]:
    """The exit code and all output of a command, once it has read ``answer``: at once, or after ``wait_for`` has been
    printed."""
    ours, theirs = pty.openpty()

    def begins() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        heed_ctrl_c()

    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=begins,
    )
    os.close(theirs)
    if not wait_for:
        os.write(ours, answer.encode())
    output, answered = b"", not wait_for
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the terminal is closed: the process has ended
            break
        if not part:
            break
        output += part
        if not answered and wait_for.encode() in output:
            os.write(ours, answer.encode())
            answered = True
    os.close(ours)
    return process.wait(), output.decode().replace("\r\n", "\n")


def plain(output: str) -> str:
    """The text of a terminal without its control sequences."""
    return CONTROL.sub("", output)
