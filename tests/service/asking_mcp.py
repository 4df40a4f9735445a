"""Clients of the Model Context Protocol, by the SDK that others write theirs with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from .running import COMMAND

T = TypeVar("T")


def over_stdio(words: Sequence[str | Path], ask: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """Return what a client gets from ``serve ... --mcp``, in a process of its own."""
    arguments = ["serve", *map(str, words), "--mcp"]
    started = StdioServerParameters(command=COMMAND, args=arguments, env=dict(os.environ) | {"HF_HUB_OFFLINE": "1"})

    async def run() -> T:
        async with Client(started, mode=mode) as client:
            return await ask(client)

    return asyncio.run(run())


def over_http(url: str, token: str | None, ask: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """Return what a client gets from ``serve ... --mcp-http``."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def run() -> T:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=300, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await ask(client)

    return asyncio.run(run())


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that worked."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    assert isinstance(found.structured_content, dict)
    return found.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The message of a tool that did not do what it was asked."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error, found
    assert found.structured_content is None
    (part,) = found.content
    text: str = part.text  # type: ignore[union-attr]
    assert "Traceback" not in text
    assert "\n" not in text
    return text
