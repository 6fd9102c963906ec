"""The operations on applications, independent of their wire format."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import errors, records
from .ledger import Ledger
from .records import Application

_AT_REST = frozenset({"CREATED", "STOPPED"})
# What EMR updates while an application is started, as its refusal lists it.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/updating-running-applications.html
# https://github.com/hashicorp/terraform-provider-aws/issues/49109
_LIVE = (
    *("schedulerConfiguration.maxConcurrentRuns", "extendedSupportConfiguration", "imageConfiguration"),
    *("workerTypeSpecifications.imageConfiguration", "maximumCapacity"),
)


class Applications:
    """Parameters are those of the AWS API, with its names; refusals are raised as `errors.ApiError`."""

    def __init__(self, ledger: Ledger, account: str, region: str) -> None:
        self._lock = ledger.lock
        self._store = ledger.store
        self._account = account
        self._region = region

    def create(self, parameters: Mapping[str, Any]) -> Application:
        request = records.plain(parameters)
        if str(request.get("type", "")).upper() != "SPARK":
            raise errors.validation(f"type: expected SPARK, got {request.get('type')!r}; the emulator runs Spark only")
        _check_label(request)
        _check_capacity(request)
        now, application_id = time.time(), records.new_id()
        application = Application(
            id=application_id,
            arn=f"arn:aws:emr-serverless:{self._region}:{self._account}:/applications/{application_id}",
            name=request.get("name") or "",
            release_label=request["releaseLabel"],
            type="Spark",
            state="CREATED",
            client_token=parameters["clientToken"],
            fingerprint=records.fingerprint(request),
            request=request,
            created_at=now,
            updated_at=now,
        )
        stored = self._store.add_application(application)
        if stored.fingerprint != application.fingerprint:
            raise errors.token_conflict("application", application.client_token, stored.id)
        return stored

    def get(self, application_id: str) -> Application:
        application = self._store.application(application_id)
        if application is None:
            raise errors.not_found("Application", application_id)
        return application

    def all(self, in_states: Sequence[str]) -> list[Application]:
        return [one for one in self._store.applications() if not in_states or one.state in in_states]

    def update(self, application_id: str, parameters: Mapping[str, Any]) -> Application:
        application = self.get(application_id)
        changes = records.plain(parameters)
        changes.pop("applicationId", None)
        if application.state == "STARTED":
            _check_live(changes)
        else:
            _check_at_rest(application, "in one of the statuses to be updated: [STOPPED, CREATED]")
        _check_label(changes)
        _check_capacity(changes)
        request = {**application.request, **changes}
        label = changes.get("releaseLabel", application.release_label)
        return self.save(replace(application, request=request, release_label=label))

    def start(self, application_id: str) -> None:
        application = self.get(application_id)
        if application.state == "TERMINATED":
            raise errors.validation(f"Application {application_id} is terminated. Create another one.")
        self.save(replace(application, state="STARTED"))

    def stop(self, application_id: str) -> None:
        with self._lock:
            application = self.get(application_id)
            unfinished = len(self._store.unfinished(application_id))
            if unfinished:
                raise errors.validation(
                    f"Application {application_id} has {unfinished} unfinished job runs. Cancel them or wait for them."
                )
            if application.state == "STARTED":
                self.save(replace(application, state="STOPPED"))

    def delete(self, application_id: str) -> None:
        application = self.get(application_id)
        _check_at_rest(application, "in one of the following statuses [CREATED, STOPPED]")
        self.save(replace(application, state="TERMINATED"))

    def save(self, application: Application) -> Application:
        saved = replace(application, updated_at=time.time())
        self._store.save_application(saved)
        return saved


def _check_at_rest(application: Application, expected: str) -> None:
    if application.state not in _AT_REST:
        raise errors.validation(f"Application {application.id} must be {expected}. Current status: {application.state}")


def _check_live(changes: Mapping[str, Any]) -> None:
    """Refuse a change that needs a stopped application. AWS counts what a request names, also if its value is the
    same."""
    if set(_configurations(changes)) - set(_LIVE):
        raise errors.validation(
            "Only the following configurations can be updated when an application is in STARTED state: "
            f"{', '.join(_LIVE)}."
        )


def _configurations(changes: Mapping[str, Any]) -> Iterator[str]:
    for name, value in changes.items():
        if name == "schedulerConfiguration":
            yield from (f"{name}.{part}" for part in value)
        else:
            yield f"{name}.imageConfiguration" if name == "workerTypeSpecifications" else name


def _check_label(request: Mapping[str, Any]) -> None:
    label = request.get("releaseLabel")
    if label is not None and not re.fullmatch(r"emr-\d+\.\d+\.\d+(-\d{8})?", label):
        raise errors.validation(f"releaseLabel: expected one such as emr-7.1.0, got {label!r}")


def _check_capacity(request: Mapping[str, Any]) -> None:
    maximum = request.get("maximumCapacity")
    if maximum and not re.fullmatch(r"[1-9]\d*\s?(vcpu)?", str(maximum.get("cpu", "")), re.IGNORECASE):
        raise errors.validation(f"maximumCapacity.cpu: expected such as '16 vCPU', got {maximum.get('cpu')!r}")
