"""Routes of namespaces, apps, workflows, datasets and partitions."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.http import SIGNED, answers, body, caller, document, flag, gone, if_match, listing, paging, parse
from chalicelib.wiring import ports

routes = Blueprint(__name__)

NS = "/v1/namespaces/{ns}"
APP = NS + "/apps/{app}"


@routes.route("/v1/namespaces", methods=["GET"], authorizer=SIGNED)
@answers
def list_namespaces() -> dict[str, Any]:
    return _list("namespace", "")


@routes.route(NS, methods=["PUT"], authorizer=SIGNED)
@answers
def put_namespace(ns: str) -> Response:
    from chalicelib.core.model import Namespace

    return _put("namespace", ns, ns, Namespace)


@routes.route(NS, methods=["GET"], authorizer=SIGNED)
@answers
def get_namespace(ns: str) -> Response:
    return _get("namespace", ns)


@routes.route(NS, methods=["DELETE"], authorizer=SIGNED)
@answers
def delete_namespace(ns: str) -> Response:
    return _delete("namespace", ns)


@routes.route(NS + "/apps", methods=["GET"], authorizer=SIGNED)
@answers
def list_apps(ns: str) -> dict[str, Any]:
    return _list("app", ns)


@routes.route(APP, methods=["PUT"], authorizer=SIGNED)
@answers
def deploy_app(ns: str, app: str) -> Response:
    from chalicelib.core.documents import check_name
    from chalicelib.core.model import App
    from chalicelib.flow.deploy import deploy

    request = routes.current_request
    check_name(ns, "namespace")
    check_name(app, "app")
    report = deploy(ports(), ns, app, parse(App, request), caller(request), flag(request, "dry_run"))
    return document({"name": f"{ns}.{app}", **report})


@routes.route(APP, methods=["GET"], authorizer=SIGNED)
@answers
def get_app(ns: str, app: str) -> Response:
    return _get("app", f"{ns}.{app}")


@routes.route(APP, methods=["DELETE"], authorizer=SIGNED)
@answers
def delete_app(ns: str, app: str) -> Response:
    return _delete("app", f"{ns}.{app}")


@routes.route(APP + "/workflows", methods=["GET"], authorizer=SIGNED)
@answers
def list_workflows(ns: str, app: str) -> dict[str, Any]:
    return _list("workflow", f"{ns}.{app}")


@routes.route(APP + "/workflows/{name}", methods=["PUT"], authorizer=SIGNED)
@answers
def put_workflow(ns: str, app: str, name: str) -> Response:
    from chalicelib.core.model import Workflow
    from chalicelib.flow.definitions import require

    require(ports(), "app", f"{ns}.{app}")
    return _put("workflow", f"{ns}.{app}.{name}", name, Workflow)


@routes.route(APP + "/workflows/{name}", methods=["GET"], authorizer=SIGNED)
@answers
def get_workflow(ns: str, app: str, name: str) -> Response:
    return _get("workflow", f"{ns}.{app}.{name}")


@routes.route(APP + "/workflows/{name}", methods=["DELETE"], authorizer=SIGNED)
@answers
def delete_workflow(ns: str, app: str, name: str) -> Response:
    return _delete("workflow", f"{ns}.{app}.{name}")


@routes.route(NS + "/datasets", methods=["GET"], authorizer=SIGNED)
@answers
def list_datasets(ns: str) -> dict[str, Any]:
    return _list("dataset", ns)


@routes.route(NS + "/datasets/{name}", methods=["PUT"], authorizer=SIGNED)
@answers
def put_dataset(ns: str, name: str) -> Response:
    from chalicelib.core.model import Dataset
    from chalicelib.flow.definitions import require

    require(ports(), "namespace", ns)
    return _put("dataset", f"{ns}.{name}", name, Dataset)


@routes.route(NS + "/datasets/{name}", methods=["GET"], authorizer=SIGNED)
@answers
def get_dataset(ns: str, name: str) -> Response:
    return _get("dataset", f"{ns}.{name}")


@routes.route(NS + "/datasets/{name}", methods=["DELETE"], authorizer=SIGNED)
@answers
def delete_dataset(ns: str, name: str) -> Response:
    return _delete("dataset", f"{ns}.{name}")


@routes.route(NS + "/datasets/{name}/partitions", methods=["GET"], authorizer=SIGNED)
@answers
def list_partitions(ns: str, name: str) -> dict[str, Any]:
    from chalicelib.flow.definitions import get
    from chalicelib.flow.read import partition_view

    get(ports(), "dataset", f"{ns}.{name}")
    return listing(ports().catalog.partitions(f"{ns}.{name}", *paging(routes.current_request)), partition_view)


@routes.route(NS + "/datasets/{name}/partitions", methods=["POST"], authorizer=SIGNED)
@answers
def register_partition(ns: str, name: str) -> Response:
    from chalicelib.core.model import Dataset
    from chalicelib.flow.definitions import get
    from chalicelib.flow.partitions import register_values
    from chalicelib.flow.read import partition_view

    dataset = Dataset.model_validate(get(ports(), "dataset", f"{ns}.{name}").document)
    request = routes.current_request
    return document(partition_view(register_values(ports(), f"{ns}.{name}", dataset, body(request))), 201)


def _put(kind: Any, full: str, name: str, model: Any) -> Response:
    from chalicelib.core.documents import check_name
    from chalicelib.flow.definitions import put

    request = routes.current_request
    check_name(name, "name")
    content = parse(model, request).model_dump(mode="json")
    change = put(ports(), kind, full, content, caller(request), if_match(request))
    view = {"name": full, "kind": kind, "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)


def _get(kind: Any, full: str) -> Response:
    from chalicelib.flow.definitions import get
    from chalicelib.flow.read import definition_view

    return document(definition_view(get(ports(), kind, full)))


def _delete(kind: Any, full: str) -> Response:
    from chalicelib.flow.definitions import delete

    delete(ports(), kind, full, if_match(routes.current_request))
    return gone()


def _list(kind: Any, parent: str) -> dict[str, Any]:
    from chalicelib.flow.read import definition_view

    return listing(ports().catalog.definitions(kind, parent, *paging(routes.current_request)), definition_view)
