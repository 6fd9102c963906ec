"""The models of AWS's services: which operations each has, and what they take and return.

The package has the models of the services that Sluice calls by itself in botocore's own folder. Those of all others lie
beside it, because botocore looks through its whole folder before it makes a client (`infra/sdk.py`).
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from threading import Lock

from botocore.loaders import Loader
from botocore.model import ServiceModel

OWN = Path(Loader.BUILTIN_DATA_PATH)
OTHERS = OWN.with_name("data-of-other-services")
# The largest model, that of EC2, takes 14 MB as it is read.
_KEPT = 8
_lock = Lock()


def loader(service: str) -> Loader:
    """What reads the model of a service for clients. It is shared, so that a model is read once for all of them."""
    return _of_own() if (OWN / service).is_dir() else _of_others()


@cache
def _of_own() -> Loader:
    return Loader()


@cache
def _of_others() -> Loader:
    return Loader(extra_search_paths=[str(OTHERS)])


@cache
def services() -> tuple[str, ...]:
    """The names of all services, as botocore has them."""
    folders = (folder for folder in (OWN, OTHERS) if folder.is_dir())
    return tuple(sorted({each.name for folder in folders for each in folder.iterdir() if each.is_dir()}))


def model(service: str) -> ServiceModel:
    """The model of a service of `services`. The last few are kept. Calls that are made in parallel wait for one that
    reads it."""
    with _lock:
        return _model(service)


@lru_cache(_KEPT)
def _model(service: str) -> ServiceModel:
    found = Loader(extra_search_paths=[str(OTHERS)])
    return ServiceModel(found.load_service_model(service, "service-2"), service_name=service)
