"""The OpenAPI document with an example of every operation, as ``docs/openapi.json`` has it.

python -m tests.web.openapi_page              writes it; examples that are still valid stay as they are
python -m tests.web.openapi_page --examples   records every example again, by a tour of the API on moto

`tests/web/test_openapi_page.py` fails when the file and the code say different things.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from chalicelib.web.routes import openapi

PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"
MAX_ITEMS = 2  # of each list in an example
MEDIA = "application/json"
Json = Any


def documented(examples: dict[str, Json]) -> Json:
    """The OpenAPI document with these examples, by their places."""
    document = json.loads(json.dumps(openapi.describe()))
    for place, content in contents(document):
        if place in examples:
            content["example"] = examples[place]
    return document


def contents(document: Json) -> list[tuple[str, Json]]:
    """The contents of all bodies and answers, with their places: an operation, and ``body`` or a status."""
    found = []
    for methods in document["paths"].values():
        for operation in methods.values():
            parts = {"body": operation.get("requestBody", {}), **operation["responses"]}
            for name, part in parts.items():
                if MEDIA in part.get("content", {}):
                    found.append((f"{operation['operationId']} {name}", part["content"][MEDIA]))
    return found


def examples_of(document: Json) -> dict[str, Json]:
    """The examples of a document by their places."""
    return {place: content["example"] for place, content in contents(document) if "example" in content}


def without_examples(document: Json) -> Json:
    plain = json.loads(json.dumps(document))
    for _, content in contents(plain):
        content.pop("example", None)
    return plain


def faults(document: Json) -> dict[str, str]:
    """The places without an example, and those whose example does not have the form that the document describes."""
    found = {}
    for place, content in contents(document):
        if "example" not in content:
            found[place] = "has no example"
            continue
        schema = {**content["schema"], "components": document["components"]}
        errors = [f"{each.json_path}: {each.message[:200]}" for each in
                  Draft202012Validator(schema).iter_errors(content["example"])]  # fmt: skip
        if errors:
            found[place] = errors[0]
    return found


def recorded() -> dict[str, Json]:
    """Examples from a tour through the API. Of several answers of a route the one with most fields counts."""
    from tests.web import answer_schemas, answers_tour
    from tests.web.conftest import installation, settle_in

    found: dict[str, Json] = {}

    def keep(place: str, body: Json) -> None:
        example = _short(body)
        if len(json.dumps(example)) > len(json.dumps(found.get(place))) or place not in found:
            found[place] = example

    with installation() as api:
        send = api.send

        def seen(method: str, path: str, status: int, body: Json) -> None:
            operation = answer_schemas.operation(method, path)
            if operation is not None and body is not None:
                keep(f"{operation[1]['operationId']} {status}", body)

        def sent(method: str, path: str, body: Json = None, **headers: str) -> Any:
            answer = send(method, path, body, **headers)
            operation = answer_schemas.operation(method, path)
            if operation is not None and answer.status_code < 300 and isinstance(body, dict):
                keep(f"{operation[1]['operationId']} body", body)
            return answer

        api.seen, api.send = seen, sent
        settle_in(api)
        answers_tour.walk(api)
    verdict = {"reason": "the figures are complete"}
    found.setdefault("run_dag body", {})
    for place in [place for place in found if place.endswith(" 201")]:  # the answer of a second request is alike
        again = {"did": "unchanged"} if "did" in found[place] else {}
        found.setdefault(place.replace(" 201", " 200"), found[place] | again)
    whole = found["openapi 200"]
    empty = {"paths": {}, "components": {}}  # an example of this document would hold itself
    shown = {"approve_job body": verdict, "refuse_job body": verdict} | found
    return shown | {"openapi 200": {name: empty.get(name, whole[name]) for name in whole}}


def _short(content: Json) -> Json:
    if isinstance(content, list):
        return [_short(each) for each in content[:MAX_ITEMS]]
    return {name: _short(each) for name, each in content.items()} if isinstance(content, dict) else content


def written(document: Json, depth: int = 3, indent: str = "") -> str:
    """The text of the file: a line for each operation of a path and for each schema, which are three objects deep."""
    if not depth or not isinstance(document, dict):
        return json.dumps(document, ensure_ascii=False)
    lines = (
        f"{indent} {json.dumps(name)}: {written(part, depth - 1, indent + ' ')}" for name, part in document.items()
    )
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def main(again: bool) -> None:
    before = examples_of(json.loads(PAGE.read_text())) if PAGE.exists() and not again else {}
    document = documented(before)
    wrong = faults(document)
    if wrong:
        news = recorded()
        kept = {place: example for place, example in before.items() if place not in wrong}
        document = documented(news | kept)
    PAGE.write_text(written(document) + "\n")
    for place, fault in faults(document).items():
        print(f"{place}: {fault}", file=sys.stderr)


if __name__ == "__main__":
    main("--examples" in sys.argv)
