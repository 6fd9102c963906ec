"""The wire format: moto parses requests and serializes answers by AWS's API model. `applications` and `job_runs`
implement the operations.

Only this module uses moto. It keeps the Flask part of moto's EMR Serverless and replaces the handlers and the URL
table, because moto serves fewer paths than AWS."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from flask import Flask, Response
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.emrserverless import urls
from moto.moto_server.werkzeug_app import create_backend_app

from infra.local import service_model

from . import errors, json_shapes
from .applications import Applications
from .job_runs import JobRuns, write_cursor
from .permissions import Permissions

_PATHS = (
    "{0}/applications$",
    "{0}/applications/(?P<applicationId>[^/]+)$",
    "{0}/applications/(?P<applicationId>[^/]+)/start$",
    "{0}/applications/(?P<applicationId>[^/]+)/stop$",
    "{0}/applications/(?P<applicationId>[^/]+)/jobruns$",
    "{0}/applications/(?P<applicationId>[^/]+)/jobruns/(?P<jobRunId>[^/]+)$",
    "{0}/applications/(?P<applicationId>[^/]+)/jobruns/(?P<jobRunId>[^/]+)/attempts$",
    "{0}/applications/(?P<applicationId>[^/]+)/jobruns/(?P<jobRunId>[^/]+)/dashboard$",
)

_Handler = Callable[["_Operations"], ActionResult]


def _refusing(handler: _Handler) -> _Handler:
    """Convert an ApiError to AWS's answer: its HTTP status, and its code in `x-amzn-ErrorType` and in the body."""

    @wraps(handler)
    def answer(operations: _Operations) -> ActionResult:
        try:
            operation = "".join(part.capitalize() for part in handler.__name__.split("_"))
            if operations.permissions is not None:
                signed = str(operations.headers.get("Authorization", ""))
                operations.permissions.admit(signed, operation, operations._parameters)
            _check_request(operation, operations)
            return handler(operations)
        except errors.ApiError as error:
            refusal = JsonRESTError(error.code, error.message)
            refusal.code = error.status
            raise refusal from error

    return answer


def _check_request(operation: str, operations: _Operations) -> None:
    """Refuse what AWS's model of the service refuses: patterns, lengths, enumerations, missing members."""
    # moto passes a missing list as an empty one.
    sent = {name: value for name, value in operations._parameters.items() if value != []}
    problems = service_model.problems("emr-serverless", operation, sent)
    if problems:
        raise errors.validation("; ".join(problems))


class _Operations(BaseResponse):
    """One instance per request; moto calls the method with the name of the operation."""

    applications: ClassVar[Applications]
    job_runs: ClassVar[JobRuns]
    permissions: ClassVar[Permissions | None]

    def __init__(self) -> None:
        super().__init__("emr-serverless")
        self.automated_parameter_parsing = True

    def _text(self, name: str) -> str:
        return str(self._get_param(name))

    @property
    def _parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.params.items() if value is not None}

    @_refusing
    def create_application(self) -> ActionResult:
        application = self.applications.create(self._parameters)
        return ActionResult({"applicationId": application.id, "name": application.name, "arn": application.arn})

    @_refusing
    def get_application(self) -> ActionResult:
        application = self.applications.get(self._text("applicationId"))
        return ActionResult({"application": json_shapes.application(application)})

    @_refusing
    def list_applications(self) -> ActionResult:
        found = self.applications.all(self._get_param("states", []))
        return ActionResult({"applications": [json_shapes.application_summary(one) for one in found]})

    @_refusing
    def update_application(self) -> ActionResult:
        application = self.applications.update(self._text("applicationId"), self._parameters)
        return ActionResult({"application": json_shapes.application(application)})

    @_refusing
    def start_application(self) -> ActionResult:
        self.applications.start(self._text("applicationId"))
        return EmptyResult()

    @_refusing
    def stop_application(self) -> ActionResult:
        self.applications.stop(self._text("applicationId"))
        return EmptyResult()

    @_refusing
    def delete_application(self) -> ActionResult:
        self.applications.delete(self._text("applicationId"))
        return EmptyResult()

    @_refusing
    def start_job_run(self) -> ActionResult:
        run = self.job_runs.start(self._text("applicationId"), self._parameters)
        return ActionResult({"applicationId": run.application_id, "jobRunId": run.id, "arn": run.arn})

    @_refusing
    def get_job_run(self) -> ActionResult:
        attempt = self._get_param("attempt")
        number = int(attempt) if attempt is not None else None
        run = self.job_runs.get(self._text("applicationId"), self._text("jobRunId"), number)
        return ActionResult({"jobRun": json_shapes.job_run(run)})

    @_refusing
    def list_job_runs(self) -> ActionResult:
        page = self.job_runs.page(self._text("applicationId"), self._parameters)
        answer: dict[str, Any] = {"jobRuns": [json_shapes.job_run_summary(run) for run in page.runs]}
        if page.cursor is not None:
            answer["nextToken"] = write_cursor(page.cursor)
        return ActionResult(answer)

    @_refusing
    def list_job_run_attempts(self) -> ActionResult:
        attempts = self.job_runs.attempts(self._text("applicationId"), self._text("jobRunId"))
        return ActionResult({"jobRunAttempts": [json_shapes.attempt_summary(run) for run in attempts]})

    @_refusing
    def cancel_job_run(self) -> ActionResult:
        application_id, run_id = self._text("applicationId"), self._text("jobRunId")
        grace = self._get_param("shutdownGracePeriodInSeconds")
        self.job_runs.cancel(application_id, run_id, float(grace) if grace is not None else None)
        return ActionResult({"applicationId": application_id, "jobRunId": run_id})

    @_refusing
    def get_dashboard_for_job_run(self) -> ActionResult:
        raise errors.validation("The local emulator has no Spark UI: read the driver's log in S3 instead")


def flask_app(applications: Applications, job_runs: JobRuns, permissions: Permissions | None = None) -> Flask:
    """The HTTP interface of the operations. Apps of several calls are independent of each other. Without permissions
    every caller may do everything."""

    class Operations(_Operations):
        pass

    Operations.applications = applications
    Operations.job_runs = job_runs
    Operations.permissions = permissions
    original = dict(urls.url_paths)
    try:
        # moto reads its URL table only while it builds an app; it is restored for other users of moto.
        urls.url_paths.clear()
        urls.url_paths.update(dict.fromkeys(_PATHS, Operations.dispatch))
        app = create_backend_app("emr-serverless")
    finally:
        urls.url_paths.clear()
        urls.url_paths.update(original)
    app.register_error_handler(404, _unknown_operation)
    return app


def _unknown_operation(_: Exception) -> Response:
    body = '{"message": "expected an operation on applications or job runs; the local emulator has no others"}'
    headers = {"x-amzn-ErrorType": "UnknownOperationException"}
    return Response(body, 404, headers, content_type="application/json")
