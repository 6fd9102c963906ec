"""Which ports the local cloud listens on. Pure but for one question to the machine: is this port free?"""

import socket
from collections.abc import Mapping

HOST = "127.0.0.1"


class PortTaken(Exception):
    """A port that was asked for by name is not free. The message says which and what to do."""


def choose(name: str, default: int, environment: Mapping[str, str], remembered: int | None) -> int:
    """The port for `name` (`SLUICE_PORT`, `SLUICE_EMR_PORT`).

    One that was asked for is taken or refused, never exchanged. Otherwise the port of last time (so that what users
    have written down stays true), then the default, then any free one. Raises `PortTaken` or `ValueError`.
    """
    wanted = environment.get(name, "").strip()
    if wanted:
        if not (wanted.isdigit() and 0 < int(wanted) < 65536):
            raise ValueError(f"{name} is {wanted!r}. Expected a port number from 1 to 65535.")
        if not is_free(int(wanted)):
            raise PortTaken(
                f"Port {wanted}, asked for by {name}, is taken by another program. "
                f"Stop that program, set {name} to a free port, or unset {name} to have one chosen."
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
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
