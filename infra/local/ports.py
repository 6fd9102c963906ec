"""The ports of the local cloud. Pure, except for the check whether a port is free on this machine."""

import socket
from collections.abc import Mapping

HOST = "127.0.0.1"


class PortTaken(Exception):
    """A configured port is not free. The message names the port, and what to do."""


def choose(name: str, default: int, environment: Mapping[str, str], remembered: int | None) -> int:
    """The port for `name` (`SLUICE_PORT`, `SLUICE_EMR_PORT`).

    A configured port is used or refused, never replaced. Otherwise the port of the last time is used (so that addresses
    which users noted stay valid), then the default, then any free port. Raises `PortTaken` or `ValueError`.
    """
    wanted = environment.get(name, "").strip()
    if wanted:
        if not (wanted.isdigit() and 0 < int(wanted) < 65536):
            raise ValueError(f"{name} is {wanted!r}. Expected a port number from 1 to 65535.")
        if not is_free(int(wanted)):
            raise PortTaken(
                f"Port {wanted}, set by {name}, is in use by another program. "
                f"Stop that program, set {name} to a free port, or unset {name} to let `make up` choose one."
            )
        return int(wanted)
    for candidate in (remembered, default):
        if candidate is not None and is_free(candidate):
            return candidate
    return any_free()


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback interface now."""
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT after `down` counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    # A server on all interfaces may still leave the bind above to succeed on some systems.
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex((HOST, port)) != 0


def any_free() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
