"""The service as an ASGI application: its endpoints, behind the guard, in a limited number of threads, described by OpenAPI.

There are no documentation pages, because they would load external scripts; ``/openapi.json`` describes everything.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from inspect import Parameter, Signature
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from nlp_retrieval._version import __version__
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.service.endpoints import BaseService, Endpoint, ErrorAnswer, RefusedError, faults_of, refusal_of
from nlp_retrieval.service.guard import METRICS, RequestGuard, answer_to
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import WorkPool, work_pools

_REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": "The request is refused; the message says why."}
    for status in (422, "4XX", "5XX")
}
_OF_HTTP = {404: "not_found", 405: "method_not_allowed"}
_LONGEST_BODY = 2_000


def create_app(service: BaseService, settings: ServiceSettings) -> RequestGuard:
    """Return the application that answers requests; it closes the service when it ends."""
    record = SessionRecord(settings.record)
    reading, writing = work_pools(settings)
    mcp = None
    if settings.mcp:
        from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
        from starlette.routing import Route

        from nlp_retrieval.service.mcp import create_server

        server = create_server(service, reading, writing, record)
        # without sessions, so that any process can answer any request, and nothing is sent unasked
        mcp = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=settings.body)

    log, warmed = logging.getLogger(__name__), threading.Event()

    def warm() -> None:
        try:
            if settings.warm:
                service.warm()
        except Exception as error:  # models may raise anything, and may answer again later
            log.warning("the first query failed: %s", without_secrets(str(error) or type(error).__name__))
        warmed.set()
        log.info("ready")

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=warm, daemon=True).start()
        async with nullcontext() if mcp is None else mcp.run():
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
        responses=_REFUSED,
        telemetry={"metrics": False, "logs": False},
    )
    bearer = [Depends(HTTPBearer(auto_error=False))] if settings.tokens else []  # for the schema; the guard checks it
    endpoints = record.endpoints(service.endpoints)
    for endpoint in endpoints:
        method = endpoint.method or ("GET" if endpoint.body is None else "POST")
        app.add_api_route(
            endpoint.path,
            _handler(endpoint, writing if endpoint.writes else reading, log_bodies=settings.log_queries),
            methods=[method],
            response_model=endpoint.answer,
            summary=endpoint.summary,
            operation_id=f"{method.lower()}_{endpoint.path.strip('/').partition('/')[0] or 'page'}",
            dependencies=bearer,
        )

    async def live() -> object:
        return {"status": "ok", "serves": service.kind, "version": __version__}

    async def ready() -> object:
        if settings.warm and not warmed.is_set():
            raise RefusedError(503, "not_ready", "the models are being loaded")
        if not service.is_ready():
            raise RefusedError(503, "not_ready", f"the {service.kind} is no longer there")
        return await live()

    async def figures() -> object:
        return Response(await asyncio.to_thread(generate_latest), media_type=CONTENT_TYPE_LATEST)

    for path, answer in (("/livez", live), ("/readyz", ready)):
        app.add_api_route(path, answer, response_model=dict[str, str])
        app.add_api_route(path, answer, methods=["HEAD"], include_in_schema=False)
    app.add_api_route(METRICS, figures, response_class=Response, dependencies=bearer)
    if mcp is not None:
        app.router.routes.append(Route("/mcp", StreamableHTTPASGIApp(mcp), methods=["POST"], include_in_schema=False))
    _add_error_handlers(app)
    routes = frozenset(path for route in app.routes if "{" not in (path := getattr(route, "path", "{")))
    return RequestGuard(app, settings, endpoints, routes)


def _handler(endpoint: Endpoint, pool: WorkPool, *, log_bodies: bool) -> Callable[..., Awaitable[object]]:
    """The function called by FastAPI, which takes the key in the path, the body, or both."""

    async def answered(**given: Any) -> object:
        if log_bodies and "body" in given:
            said = str(without_secrets(given["body"].model_dump_json(exclude_unset=True)))  # before it is cut
            logging.getLogger(__name__).info("body", extra={"path": endpoint.path, "body": said[:_LONGEST_BODY]})
        values = tuple(given.values())
        argument = values if len(values) > 1 else next(iter(values), None)
        content = await pool.run(functools.partial(endpoint.run, argument))
        return Response(content, media_type="text/html" if endpoint.page else "application/json")

    inputs: dict[str, type] = {"key": str} if "{key" in endpoint.path else {}
    inputs |= {} if endpoint.body is None else {"body": endpoint.body}
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in inputs.items()]
    answered.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # FastAPI reads it
    return answered


def _add_error_handlers(app: FastAPI) -> None:
    async def failed(_: object, error: Exception) -> Response:
        return answer_to(refusal_of(error))

    async def invalid(_: object, error: Any) -> Response:
        return answer_to(RefusedError(422, "invalid_request", faults_of(error.errors())))

    async def refused(_: object, error: Any) -> Response:
        kind, said = _OF_HTTP.get(error.status_code, "refused"), f"{error.detail}; /openapi.json lists all paths"
        return answer_to(RefusedError(error.status_code, kind, said, error.headers))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RetrievalError, failed)
    app.add_exception_handler(Exception, failed)
