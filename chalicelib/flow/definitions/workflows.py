"""Put a workflow by itself. A deployment checks its workflows together with its other documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.definitions.workflow import Workflow
from chalicelib.flow.definitions import references, store
from chalicelib.flow.definitions.store import Change
from chalicelib.ports import Ports


def put(ports: Ports, name: str, document: Mapping[str, Any], by: str, if_match: int | None = None) -> Change:
    """Create or replace a workflow, as `store.put`. Raises SluiceError for datasets that it may not name, too,
    and for schedules whose runs cannot name what it registers."""
    workflow = Workflow.model_validate(document)
    references.check_workflow(ports, name, workflow, with_disabled=True)
    references.check_starters(ports, name, workflow)
    return store.put(ports, "workflow", name, document, by, if_match)
