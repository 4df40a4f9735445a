"""The service as an ASGI application: its endpoints, behind the guard, in a limited number of threads, described by OpenAPI.

There are no documentation pages, because they would load external scripts; ``/openapi.json`` describes everything.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nlp_retrieval._version import __version__
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, install
from nlp_retrieval.service.endpoints import BaseService, Endpoint, ErrorAnswer, RefusedError, faults_of, refusal_of
from nlp_retrieval.service.guard import PROBES, RequestGuard
from nlp_retrieval.service.metrics import METRICS_TYPE, Metrics
from nlp_retrieval.service.observer import Observer
from nlp_retrieval.service.readiness import Readiness
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.tracing import Tracing, configured_tracing
from nlp_retrieval.service.work import WorkPool

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

__all__ = ["create_app", "require_packages"]

_REFUSALS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    408: "The body arrives too slowly.",
    409: "The index is missing, or another one than was opened.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The service is asked for under a name that is not its own.",
    422: "A value cannot be used.",
    500: "It did not work.",
    501: "A package has to be installed on the machine of the service.",
    503: "Too much is asked at once, or another process is writing; try again.",
    504: "It took too long.",
}
_WITH_BODY = {400, 408, 413, 415}

METRICS = "/metrics"
_MEASURED_EVERY = 5.0
_LONGEST_BODY = 2_000
_log = logging.getLogger(__name__)


class Health(BaseModel):
    """State of the service."""

    status: str
    serves: str
    version: str


def require_packages() -> None:
    """Raise an error if the packages of the service are not installed.

    Raises:
        DependencyError: one is missing.
    """
    try:
        import fastapi
        import uvicorn
    except ImportError as error:
        raise DependencyError(f"the service needs FastAPI and uvicorn: {install('service')} ({error})") from None
    del fastapi, uvicorn
    if find_spec("prometheus_client") is None:  # imported later: it looks once whether processes share their figures
        raise DependencyError(f"the service needs prometheus-client: {install('service')}")


def create_app(service: BaseService, settings: ServiceSettings, tracing: Tracing | None = None) -> Observer:
    """Return the application that answers requests; it closes the service when it ends.

    Args:
        service: the service.
        settings: access and limits.
        tracing: makes spans; by default, those that the environment asks for.

    Raises:
        DependencyError: FastAPI is not installed.
    """
    require_packages()
    from fastapi import Depends, FastAPI
    from fastapi.security import HTTPBearer

    limits, metrics, tracing = settings.limits, Metrics(), tracing or configured_tracing()
    record = SessionRecord.of(settings)
    reading = WorkPool(limits.threads, limits.waiting, limits.seconds, "reading", metrics)
    writing = WorkPool(1, limits.waiting, limits.writing_seconds, "writing", metrics)
    readiness = Readiness(service, metrics, warm=settings.warm, drain=settings.drain)

    manager = _session_manager(service, settings, reading, writing, record) if settings.mcp else None

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            running.enter_context(readiness.running())
            await running.enter_async_context(_measuring(metrics, readiness))
            if manager is not None:
                await running.enter_async_context(manager.run())
            yield
        for pool in (reading, writing):
            pool.close()
        service.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)

    app = FastAPI(
        title="nlp-retrieval",
        version=__version__,
        description=service.describes,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # FastAPI's own would show query strings
    )
    bearer = [] if settings.token is None else [Depends(HTTPBearer(auto_error=False))]  # for the schema; the guard checks it
    for endpoint in record.endpoints([*service.endpoints, *_added_endpoints(service)]):
        pool = writing if endpoint.writes else reading
        statuses = _REFUSALS.keys() - (set() if endpoint.body else _WITH_BODY) - (set() if bearer else {401})
        responses: dict[int | str, dict[str, Any]] = {
            status: {"model": ErrorAnswer, "description": _REFUSALS[status]} for status in sorted(statuses)
        }
        if "{" in endpoint.path:
            responses[404] = {"model": ErrorAnswer, "description": "Not found."}
        app.add_api_route(
            endpoint.path,
            _handler(endpoint, pool, log_bodies=settings.log_queries),
            methods=[endpoint.http_method],
            response_model=endpoint.answer,
            summary=endpoint.summary,
            operation_id=_operation(endpoint, service),
            responses=responses,
            dependencies=bearer,
        )
    _add_probes(app, service, readiness)
    _add_metrics(app, service, metrics, readiness, bearer)
    if manager is not None:
        from nlp_retrieval.service.mcp import mcp_route

        app.router.routes.append(mcp_route(manager))
    _add_error_handlers(app)
    without_token = frozenset(endpoint.path for endpoint in service.endpoints if endpoint.without_token)
    app.add_middleware(RequestGuard, settings=settings, without_token=without_token)
    routes = frozenset(path for route in app.routes if "{" not in (path := getattr(route, "path", "{")))
    return Observer(app, routes, PROBES | {METRICS}, metrics, tracing)


def _operation(endpoint: Endpoint, service: BaseService) -> str:
    """Return the name of an endpoint in the schema: its path, after what it does if that is not to read it."""
    name = endpoint.path.strip("/").partition("/")[0] or "page"
    if endpoint.method:
        return f"{endpoint.method.lower()}_{name}"
    read = any(other.path == endpoint.path and other.body is None for other in service.endpoints)
    return f"add_{name}" if endpoint.body is not None and read else name


def _added_endpoints(service: BaseService) -> list[Endpoint]:
    """Return the endpoints that installed packages add.

    Raises:
        ConfigurationError: two endpoints have the same path.
    """
    paths = {endpoint.path: "the service" for endpoint in service.endpoints}
    added: list[Endpoint] = []
    for entry in entry_points(group="nlp_retrieval.routes"):
        for endpoint in entry.load()(service):
            if endpoint.path in paths:
                other = paths[endpoint.path]
                raise ConfigurationError(f"{entry.value} adds {endpoint.path}, which {other} has; uninstall one of them")
            paths[endpoint.path] = entry.value
            added.append(endpoint)
    return added


def _session_manager(
    service: BaseService, settings: ServiceSettings, reading: WorkPool, writing: WorkPool, record: SessionRecord
) -> StreamableHTTPSessionManager:
    from nlp_retrieval.service.mcp import create_mcp_server, session_manager_of

    return session_manager_of(create_mcp_server(service, settings.limits.body, reading, writing, record), settings)


def _handler(endpoint: Endpoint, pool: WorkPool, *, log_bodies: bool) -> Callable[..., Awaitable[object]]:
    """The function called by FastAPI; its annotations give its arguments."""
    from fastapi import Response

    async def answered(argument: object) -> object:
        content = await pool.run(functools.partial(endpoint.run, argument))
        return Response(content, media_type=endpoint.media)

    async def with_body(body: BaseModel) -> object:
        if log_bodies:
            _log.info("body", extra={"path": endpoint.path, "body": body.model_dump_json(exclude_unset=True)[:_LONGEST_BODY]})
        return await answered(body)

    async def with_key(key: str) -> object:
        return await answered(key)

    async def with_both(key: str, body: BaseModel) -> object:
        return await answered((key, body))

    async def alone() -> object:
        return await answered(None)

    has_key = "{key" in endpoint.path
    if endpoint.body is not None:
        chosen: Callable[..., Awaitable[object]] = with_both if has_key else with_body
        chosen.__annotations__["body"] = endpoint.body
        return chosen
    return with_key if has_key else alone


def _add_probes(app: FastAPI, service: BaseService, readiness: Readiness) -> None:
    """Add the paths that say whether the process answers, whether it is ready, and whether what it serves is there."""

    async def live() -> object:
        return Health(status="ok", serves=service.kind, version=__version__)

    async def ready() -> object:
        if missing := readiness.missing:
            raise RefusedError(503, "not_ready", "; ".join(missing), {"retry-after": "1"})
        return await live()

    async def health() -> object:
        if not service.is_ready():
            raise RefusedError(503, "not_ready", f"the {service.kind} is no longer there", {"retry-after": "1"})
        return await live()

    refused: dict[int | str, dict[str, Any]] = {503: {"model": ErrorAnswer, "description": "It is not; the message says why."}}
    for path, answer, summary, responses in (
        ("/livez", live, "Whether the process answers.", {}),
        ("/readyz", ready, "Whether requests may be sent: models are loaded, and it is not shutting down.", refused),
        ("/healthz", health, "Whether the service works.", refused),
    ):
        app.add_api_route(path, answer, methods=["GET"], response_model=Health, summary=summary, responses=responses)
        app.add_api_route(path, answer, methods=["HEAD"], response_model=Health, include_in_schema=False)


def _add_metrics(app: FastAPI, service: BaseService, metrics: Metrics, readiness: Readiness, dependencies: list[Any]) -> None:
    from fastapi.responses import PlainTextResponse, Response

    def measured() -> bytes:
        readiness.measure()
        metrics.measure_process()
        try:
            metrics.show_figures(service.figures())
        except RetrievalError as error:  # what is served may be gone; the other figures are wanted all the more
            _log.warning("the figures of the %s cannot be read: %s", service.kind, without_secrets(str(error)))
        return metrics.written()

    async def written() -> object:
        return Response(await asyncio.to_thread(measured), media_type=METRICS_TYPE)

    app.add_api_route(
        METRICS,
        written,
        methods=["GET"],
        response_model=None,
        response_class=PlainTextResponse,
        summary="Figures for Prometheus.",
        dependencies=dependencies,
    )


@asynccontextmanager
async def _measuring(metrics: Metrics, readiness: Readiness) -> AsyncIterator[None]:
    """Keep the figures of this process current, because another process may be asked for them."""

    async def measure() -> None:
        while True:
            metrics.measure_process()
            readiness.measure()
            await asyncio.sleep(_MEASURED_EVERY)

    task = asyncio.create_task(measure())
    try:
        yield
    finally:
        task.cancel()


def _add_error_handlers(app: FastAPI) -> None:
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import Response
    from starlette.exceptions import HTTPException

    def respond(refusal: RefusedError) -> Response:
        return Response(refusal.body(), refusal.status, refusal.headers, "application/json")

    async def failed(_: Request, error: Exception) -> Response:
        return respond(refusal_of(error))

    async def invalid(_: Request, error: Exception) -> Response:
        return respond(
            RefusedError(422, "invalid_request", faults_of(error.errors()) if isinstance(error, RequestValidationError) else "")
        )

    async def refused(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        kind, message = _OF_HTTP.get(status, ("refused", "the request cannot be read"))
        return respond(RefusedError(status, kind, message, headers))

    for kind, handler in (
        (RequestValidationError, invalid),
        (HTTPException, refused),
        (RetrievalError, failed),
        (Exception, failed),
    ):
        app.add_exception_handler(kind, handler)


_OF_HTTP = {
    404: ("not_found", "there is no such path; /openapi.json lists all of them"),
    405: ("method_not_allowed", "this path is asked by another method; /openapi.json lists all of them"),
}
