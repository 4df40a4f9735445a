"""The service as an ASGI application: its endpoints, behind the guard, in a limited number of threads, described by OpenAPI.

There are no documentation pages, because they would load external scripts; ``/openapi.json`` describes everything.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from inspect import Parameter, Signature
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from nlp_retrieval._version import __version__
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.service.endpoints import BaseService, Endpoint, ErrorAnswer, RefusedError, faults_of, refusal_of
from nlp_retrieval.service.guard import RequestGuard
from nlp_retrieval.service.observer import METRICS_TYPE, Metrics, Observer
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import WorkPool, work_pools

_REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": "The request is refused; the message says why."}
    for status in (422, "4XX", "5XX")
}
_OF_HTTP = {
    404: ("not_found", "there is no such path; /openapi.json lists all of them"),
    405: ("method_not_allowed", "this path is asked by another method; /openapi.json lists all of them"),
}
"""Requests that no endpoint answers."""

METRICS = "/metrics"
_LONGEST_BODY = 2_000
_log = logging.getLogger(__name__)


class Health(BaseModel):
    """State of the service."""

    status: str
    serves: str
    version: str


def create_app(service: BaseService, settings: ServiceSettings) -> Observer:
    """Return the application that answers requests; it closes the service when it ends."""
    metrics, record = Metrics(), SessionRecord.of(settings)
    reading, writing = work_pools(settings)
    mcp = None
    if settings.mcp:
        from nlp_retrieval.service.mcp import http_manager

        mcp = http_manager(service, settings.body, reading, writing, record)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            if mcp is not None:
                await running.enter_async_context(mcp.run())
            yield
        for pool in (reading, writing):
            pool.close()
        service.close()

    app = FastAPI(
        title="nlp-retrieval",
        version=__version__,
        description=service.describes,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy with TLS the address would be one without
        lifespan=life,
        telemetry={"metrics": False, "logs": False},
    )
    bearer = [] if not settings.grants else [Depends(HTTPBearer(auto_error=False))]  # for the schema; the guard checks it
    endpoints = record.endpoints(service.endpoints)
    for endpoint in endpoints:
        app.add_api_route(
            endpoint.path,
            _handler(endpoint, writing if endpoint.writes else reading, log_bodies=settings.log_queries),
            methods=[endpoint.http_method],
            response_model=endpoint.answer,
            summary=endpoint.summary,
            operation_id=f"{endpoint.http_method.lower()}_{endpoint.path.strip('/').partition('/')[0] or 'page'}",
            responses=_REFUSED,
            dependencies=bearer,
        )
    _add_probes(app, service, metrics, bearer)
    if mcp is not None:
        from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
        from starlette.routing import Route

        app.router.routes.append(Route("/mcp", StreamableHTTPASGIApp(mcp), methods=["POST"], include_in_schema=False))
    _add_error_handlers(app)
    without_token = frozenset(endpoint.path for endpoint in service.endpoints if endpoint.without_token)
    unfiltered = {endpoint.path for endpoint in endpoints if not endpoint.filtered}
    filtered = frozenset({"/mcp", *(endpoint.path for endpoint in endpoints)} - unfiltered)
    app.add_middleware(RequestGuard, settings=settings, without_token=without_token, filtered=filtered)
    routes = frozenset(path for route in app.routes if "{" not in (path := getattr(route, "path", "{")))
    return Observer(app, routes, frozenset({METRICS}), metrics)


def _handler(endpoint: Endpoint, pool: WorkPool, *, log_bodies: bool) -> Callable[..., Awaitable[object]]:
    """The function called by FastAPI, which takes the key in the path, the body, or both."""

    async def answered(**given: Any) -> object:
        if log_bodies and "body" in given:
            said = str(without_secrets(given["body"].model_dump_json(exclude_unset=True)))  # before it is cut
            _log.info("body", extra={"path": endpoint.path, "body": said[:_LONGEST_BODY]})
        values = tuple(given.values())
        argument = values if len(values) > 1 else next(iter(values), None)
        return Response(await pool.run(functools.partial(endpoint.run, argument)), media_type=endpoint.media)

    taken: dict[str, type] = {"key": str} if "{key" in endpoint.path else {}
    taken |= {} if endpoint.body is None else {"body": endpoint.body}
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in taken.items()]
    answered.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # FastAPI reads it
    return answered


def _add_probes(app: FastAPI, service: BaseService, metrics: Metrics, dependencies: list[Any]) -> None:
    """Add the paths that say whether the process answers, whether it is ready, and its figures."""

    async def live() -> object:
        return Health(status="ok", serves=service.kind, version=__version__)

    async def ready() -> object:
        if not service.is_ready():
            raise RefusedError(503, "not_ready", f"the {service.kind} is no longer there")
        return await live()

    async def written() -> object:
        return Response(await asyncio.to_thread(metrics.written), media_type=METRICS_TYPE)

    for path, answer, summary in (
        ("/livez", live, "Whether the process answers."),
        ("/readyz", ready, "Whether requests may be sent: its index or project is there."),
    ):
        app.add_api_route(path, answer, response_model=Health, summary=summary, responses=_REFUSED)
        app.add_api_route(path, answer, methods=["HEAD"], response_model=Health, include_in_schema=False)
    summary = "Figures of this process for Prometheus."
    app.add_api_route(
        METRICS, written, response_model=None, response_class=PlainTextResponse, summary=summary, dependencies=dependencies
    )


def _add_error_handlers(app: FastAPI) -> None:
    def respond(refusal: RefusedError) -> Response:
        return Response(refusal.body(), refusal.status, refusal.headers, "application/json")

    async def failed(_: object, error: Exception) -> Response:
        return respond(refusal_of(error))

    async def invalid(_: object, error: Any) -> Response:
        return respond(RefusedError(422, "invalid_request", faults_of(error.errors())))

    async def refused(_: object, error: Any) -> Response:
        kind, message = _OF_HTTP.get(error.status_code, ("refused", "the request cannot be read"))
        return respond(RefusedError(error.status_code, kind, message, error.headers))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RetrievalError, failed)
    app.add_exception_handler(Exception, failed)
