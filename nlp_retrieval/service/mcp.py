"""The Model Context Protocol: a service as tools of a language model's client."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nlp_retrieval._version import __version__
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.service.endpoints import (
    ABOUT_TEXTS,
    BaseService,
    RefusedError,
    current_request,
    faults_of,
    refusal_of,
    refused_to_part,
)
from nlp_retrieval.service.sessions import SessionRecord
from nlp_retrieval.service.settings import ServiceSettings
from nlp_retrieval.service.work import WorkPool, leave_notes_out, work_pools

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult


def require_mcp() -> None:
    """Raise a :class:`DependencyError` if the protocol's package is not installed."""
    if find_spec("mcp") is None:
        raise DependencyError(f"MCP needs the package mcp: {install('mcp')}")


def create_server(service: BaseService, reading: WorkPool, writing: WorkPool, record: SessionRecord) -> Server[Any]:
    """Return the server that lists the tools, and calls them in a limited number of threads, over any transport.

    An error of a tool is an answer with the same message as over HTTP, without internals of this program.
    """
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    def listed() -> list[Tool]:
        return [
            Tool(
                name=tool.name,
                description=tool.description,
                input_schema=schemas[tool.name],
                output_schema=tool.output_schema,
                annotations=ToolAnnotations(
                    read_only_hint=not tool.writes, destructive_hint=False, idempotent_hint=True, open_world_hint=False
                ),
            )
            for tool in record.tools(service.tools)
        ]

    tools = {tool.name: tool for tool in record.tools(service.tools)}
    schemas = {name: tool.arguments.model_json_schema() for name, tool in tools.items()}

    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=await reading.run(listed))

    async def answer_of(params: Any) -> dict[str, Any]:
        tool = tools.get(params.name)
        if tool is None:
            raise RefusedError(404, "not_found", f"there is no tool {params.name[:100]!r}; there are {', '.join(tools)}")
        if current_request.get().where is not None and not tool.filtered:
            raise refused_to_part(tool.name)
        try:
            arguments = tool.arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            raise RefusedError(422, "invalid_request", faults_of(error.errors(include_url=False))) from None
        current_request.set(replace(current_request.get(), meta=params.meta or {}))
        return await (writing if tool.writes else reading).run(functools.partial(tool.call, arguments))

    async def call_tool(_: object, params: Any) -> CallToolResult:
        try:
            structured = await answer_of(params)
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
        # otherwise all tools are listed for each call over HTTP
        get_tool_input_schema=schemas.get,
    )


def serve_stdio(
    opening: Callable[[], BaseService], settings: ServiceSettings, on_ready: Callable[[], None], *, check: bool = False
) -> None:
    """Answer messages on standard input until it ends, and write nothing else to output; as a check, only open everything."""
    require_mcp()
    from mcp.server.stdio import stdio_server

    leave_notes_out()
    record = SessionRecord(settings.record, f"stdio-{uuid.uuid4().hex}")
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)  # what libraries in any language print goes to standard error
    try:
        service = opening()
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
    on_ready()
    if check:
        service.close()
        return
    reading, writing = work_pools(settings)
    server = create_server(service, reading, writing, record)

    async def answer() -> None:
        async with stdio_server() as (incoming, outgoing):  # all other output meanwhile goes to standard error
            await server.run(incoming, outgoing, server.create_initialization_options())

    # a thread reading standard input cannot be interrupted; output is written completely or not at all
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(answer())
    finally:
        signal.signal(signal.SIGINT, before)
        for pool in (reading, writing):
            pool.close()
        service.close()
