"""`python -m infra.local.emr_serverless`: serve until SIGTERM or SIGINT. Exit code 2 for invalid settings."""

from __future__ import annotations

import os
import signal
import socket
import sys

from . import settings
from .server import Emulator, configure_log


def main() -> int:
    """Serve in the foreground; returns the exit code."""
    try:
        emulator = Emulator(settings.read(sys.argv[1:], os.environ))
    except settings.BadSetting as error:
        print(f"emr-serverless: {error}", file=sys.stderr)
        return 2
    configure_log()
    ended, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    # The system delivers a signal to any thread. A main thread that waits for a lock would not notice a signal that
    # another thread received; a byte in a socket wakes it.
    signal.set_wakeup_fd(wakeup.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    with emulator:
        ended.recv(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
