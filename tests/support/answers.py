"""The views of `flow` as a caller reads them: their reasons are texts, with every name."""

from __future__ import annotations

import json
from inspect import isfunction
from types import ModuleType
from typing import Any

from chalicelib.core.views import as_json
from chalicelib.flow.views import explain as _explain
from chalicelib.flow.views import lineage as _lineage
from chalicelib.flow.views import partitions as _partitions
from chalicelib.flow.views import present as _present
from chalicelib.flow.views import queues as _queues
from chalicelib.flow.views import schedule_list as _schedule_list
from chalicelib.flow.views import views as _views


def read(view: Any) -> Any:
    """A view as JSON."""
    return json.loads(as_json(view))


class _Read:
    """A module of views whose functions return JSON."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return (lambda *given, **more: read(found(*given, **more))) if isfunction(found) else found


explain, glance, lineage, partitions = map(_Read, (_explain, _schedule_list, _lineage, _partitions))
present, queues, views = map(_Read, (_present, _queues, _views))
