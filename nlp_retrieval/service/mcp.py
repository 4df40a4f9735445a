"""The Model Context Protocol: a service as tools of a language model's client."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nlp_retrieval._version import __version__
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.service.endpoints import (
    ABOUT_TEXTS,
    BaseService,
    McpTool,
    RefusedError,
    faults_of,
    refusal_of,
    refused_to_part,
)
from nlp_retrieval.service.logs import current_request
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import WorkPool, leave_notes_out, work_pools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import CallToolResult, Tool


def require_mcp() -> None:
    """Raise an error if the protocol's package is not installed.

    Raises:
        DependencyError: it is missing.
    """
    try:
        import mcp.server.lowlevel
        import mcp_types
    except ImportError as error:
        raise DependencyError(f"MCP needs the package mcp: {install('mcp')} ({error})") from None
    del mcp, mcp_types


def _create_server(service: BaseService, reading: WorkPool, writing: WorkPool, record: SessionRecord) -> Server[Any]:
    """Return the server that lists the tools, and calls them in a limited number of threads, over any transport.

    An error of a tool is an answer with the same message as over HTTP, without internals of this program.
    """
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent

    tools = {tool.name: tool for tool in record.tools(service.tools)}
    schemas = {tool.name: tool.input_schema for tool in tools.values()}

    async def list_tools(*_: object) -> ListToolsResult:
        listed = await reading.run(lambda: [_tool_of(tool) for tool in record.tools(service.tools)])
        return ListToolsResult(tools=listed)

    async def call_tool(_: object, params: Any) -> CallToolResult:
        try:
            tool, arguments = _checked(tools, params.name, params.arguments or {})
            pool = writing if tool.writes else reading
            with record.called_with(params.meta):
                structured = await pool.run(functools.partial(tool.call, arguments))
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.kind == "internal":
                logging.getLogger(__name__).exception("a tool failed")
            return CallToolResult(content=[TextContent(type="text", text=refusal.message)], is_error=True)
        text = json.dumps(structured, ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)

    return Server(
        "nlp-retrieval",
        version=__version__,
        instructions=f"{service.describes} {ABOUT_TEXTS}",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,  # otherwise all tools are listed for each call over HTTP
    )


def _tool_of(tool: McpTool) -> Tool:
    from mcp_types import Tool, ToolAnnotations

    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _checked(tools: dict[str, McpTool], name: str, arguments: dict[str, Any]) -> tuple[McpTool, Any]:
    """Return the tool that is called and its arguments; a call whose token may not see what the tool shows is refused."""
    tool = tools.get(name)
    if tool is None:
        raise RefusedError(404, "not_found", f"there is no tool {name[:100]!r}; there are {', '.join(tools)}")
    if current_request.get().where is not None and not tool.filtered:
        raise refused_to_part(tool.name)
    try:
        return tool, tool.arguments.model_validate(arguments)
    except ValidationError as error:
        raise RefusedError(422, "invalid_request", faults_of(error.errors(include_url=False))) from None


def http_manager(
    service: BaseService, body: int, reading: WorkPool, writing: WorkPool, record: SessionRecord
) -> StreamableHTTPSessionManager:
    """The protocol over HTTP; without sessions, so that any process can answer any request, and nothing is sent unasked."""
    require_mcp()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    server = _create_server(service, reading, writing, record)
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=body)


def serve_stdio(
    opening: Callable[[], BaseService],
    settings: ServiceSettings,
    on_ready: Callable[[], None],
    record: SessionRecord,
    *,
    check: bool = False,
) -> None:
    """Answer messages on standard input until it ends, or until a signal ends the process; nothing else is written to output.

    As a check, it only opens everything.

    Raises:
        DependencyError: the protocol's package is not installed.
        RetrievalError: the service cannot be opened.
    """
    require_mcp()
    leave_notes_out()
    with _stdout_to_stderr():
        service = opening()
    if check:
        service.close()
        on_ready()
        return
    # a thread reading standard input cannot be interrupted; output is written completely or not at all
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    on_ready()
    try:
        asyncio.run(_answer(service, settings, record))
    finally:
        signal.signal(signal.SIGINT, before)


async def _answer(service: BaseService, settings: ServiceSettings, record: SessionRecord) -> None:
    from mcp.server.stdio import stdio_server

    reading, writing = work_pools(settings)
    server = _create_server(service, reading, writing, record)
    try:
        async with stdio_server() as (incoming, outgoing):  # all other output meanwhile goes to standard error
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        for pool in (reading, writing):
            pool.close()
        service.close()


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Redirect output of libraries, in any language, to standard error."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
