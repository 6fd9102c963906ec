"""Ports of the local cloud: a requested port is used or refused, any other is found."""

import socket
from collections.abc import Iterator

import pytest

from infra.local import ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port with a listener."""
    with socket.socket() as server:
        server.bind((ports.HOST, 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def free() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind((ports.HOST, 0))
        return int(probe.getsockname()[1])


def test_the_default_port_is_used_when_it_is_free(free: int) -> None:
    assert ports.choose("SLUICE_PORT", free, {}, None) == free


def test_the_previous_port_is_tried_first(free: int) -> None:
    assert ports.choose("SLUICE_PORT", 4566, {}, free) == free


def test_another_port_is_found_when_both_are_in_use(taken: int) -> None:
    found = ports.choose("SLUICE_PORT", taken, {"SLUICE_PORT": ""}, taken)
    assert found != taken
    assert ports.is_free(found)


def test_a_requested_port_is_used(free: int) -> None:
    assert ports.choose("SLUICE_PORT", 4566, {"SLUICE_PORT": str(free)}, None) == free


def test_a_requested_port_in_use_is_refused_by_name(taken: int) -> None:
    with pytest.raises(ports.PortTaken, match=f"Port {taken}, set by SLUICE_EMR_PORT, is in use .* unset"):
        ports.choose("SLUICE_EMR_PORT", 4570, {"SLUICE_EMR_PORT": str(taken)}, None)


@pytest.mark.parametrize("nonsense", ["http", "0", "65536", "-1"])
def test_an_invalid_port_is_refused(nonsense: str) -> None:
    with pytest.raises(ValueError, match="Expected a port number from 1 to 65535"):
        ports.choose("SLUICE_PORT", 4566, {"SLUICE_PORT": nonsense}, None)
