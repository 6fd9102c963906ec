"""The query parameters of single routes whose name has another meaning, or other bounds, elsewhere.

`openapi.QUERY` has the common ones.
"""

from __future__ import annotations

from typing import Any

AT = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
STEPS = {"type": "integer", "minimum": 0}

# Last part of the path -> parameter -> schema.
OWN: dict[str, dict[str, dict[str, Any]]] = {
    "audit": {
        "from": AT | {"description": "the first instant; by default the oldest record, or 31 days before `to` for all"},
        "to": AT | {"description": "the instant at which the span ends; by default now"},
        "who": {"type": "string", "description": "a part of the signer's ARN"},
        "name": {"type": "string", "description": "a full name, or the beginning of one up to a point"},
        "kind": {"type": "string", "description": "such as `schedule`, `job` or `access`"},
        "outcome": {"type": "string", "enum": ["changed", "refused", "observed", "begun"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    },
    "timeline": {
        "from": AT | {"description": "the first instant; by default an hour before `to`, at most 7 days before it"},
        "to": AT | {"description": "the instant at which the span ends; by default now"},
        "workflow": {"type": "string", "description": "a workflow of the namespace, as `app.name` or as its full name"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 5_000, "default": 2_000},
        "ids": {"type": "boolean", "description": "whether to answer the ids of the runs, too"},
    },
    "partitions": {
        "from": {"type": "string", "description": "the first partition: values of the first keys, joined by `/`"},
        "to": {"type": "string", "description": "the last partition, which is included: values as in `from`"},
        "order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
    },
    "partition": {
        "values": {"type": "string", "description": "the value of each key, joined by `/`"},
    },
    "graph": {
        "around": {"type": "string", "description": "`schedule:NAME`, `workflow:NAME` or `dataset:NAME`, full names"},
        "up": STEPS | {"maximum": 10, "default": 2},
        "down": STEPS | {"maximum": 10, "default": 2},
        "limit": {"type": "integer", "minimum": 1, "maximum": 300, "default": 300},
    },
    "lineage": {
        "up": STEPS | {"maximum": 5, "default": 2},
        "down": STEPS | {"maximum": 5, "default": 2},
    },
    "days": {
        "from": DAY | {"description": "the first day; by default 26 weeks before `to`, at most 190 days in all"},
        "to": DAY | {"description": "the last day, which is included; by default today"},
        "zone": {"type": "string", "default": "UTC", "description": "the time zone of the days"},
    },
}
