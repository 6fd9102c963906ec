"""`python -m infra.local.emr_serverless`: serve until SIGTERM or SIGINT. Exit code 2 for settings of no use."""

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
    ended, told = socket.socketpair()
    told.setblocking(False)
    # The system gives a signal to any thread. A main thread that waits for a lock would not notice one that another
    # thread got; a byte in a socket it does notice.
    signal.set_wakeup_fd(told.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    with emulator:
        ended.recv(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
