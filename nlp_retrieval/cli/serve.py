"""``nlp-retrieval serve``: serve an index or a project to other programs, over HTTP or the Model Context Protocol."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlp_retrieval.cli.console import Trust, built, parse_options, say
from nlp_retrieval.errors import ConfigurationError, IndexMissingError, nearest

if TYPE_CHECKING:
    from nlp_retrieval.service.endpoints import BaseService

VARIABLES = "NLP_RETRIEVAL"
"""How the names of environment variables begin that set options of ``serve``, such as ``NLP_RETRIEVAL_PORT``."""

_COMMON = ("path", "retrievers", "trust")
"""Parameters of every service that have command-line options of their own."""


def command(
    path: Annotated[Path, typer.Argument(help="An index directory, or a project.", envvar=f"{VARIABLES}_PATH")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; a token is required for any but this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65_535)] = 8000,
    token_file: Annotated[Path | None, typer.Option(help=f"File with the token; or set {VARIABLES}_TOKEN to it.")] = None,
    tokens: Annotated[Path | None, typer.Option(help="YAML of tokens by hash, each with a filter of what it may see.")] = None,
    allowed_host: Annotated[list[str] | None, typer.Option(help="An additional host name to accept. Repeatable.")] = None,
    proxy: Annotated[str, typer.Option(help="Address of a proxy whose X-Forwarded-For is believed.")] = "",
    workers: Annotated[int, typer.Option(help="Number of processes; each opens the index.", min=1, max=256)] = 1,
    threads: Annotated[int, typer.Option(help="Number of concurrent requests per process.", min=1, max=1024)] = 4,
    waiting: Annotated[int, typer.Option(help="Number of requests that may wait for a thread; more are refused.", min=0)] = 128,
    seconds: Annotated[float, typer.Option(help="Seconds per request; ten minutes to add sources.", min=0.001)] = 30.0,
    max_body: Annotated[float, typer.Option(help="Maximum size of a request body, in MiB.", min=0.001)] = 16.0,
    served_as: Annotated[
        str | None,
        typer.Option("--as", envvar=f"{VARIABLES}_AS", help="index, or project (also empty). Default: by content."),
    ] = None,
    retriever: Annotated[list[str] | None, typer.Option("--retriever", "-r", help="name:key=value. Default: all.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            envvar=f"{VARIABLES}_SET",
            help="KEY=VALUE, a setting of the service: fusion or reranker of an index. Repeatable.",
        ),
    ] = None,
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve it on standard input and output instead of HTTP.")] = False,
    mcp_http: Annotated[bool, typer.Option("--mcp-http", help="Also serve it at /mcp, with the same rules.")] = False,
    warm: Annotated[bool, typer.Option("--warm", help="Load models and ask a query at once; /readyz waits for that.")] = False,
    log_format: Annotated[Literal["text", "json"], typer.Option(help="text, or json: one object a line.")] = "text",
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Also log the bodies of requests.")] = False,
    record: Annotated[Path | None, typer.Option(help="Folder for the sessions of agents; no texts are kept.")] = None,
    trust: Trust = False,
    check: Annotated[bool, typer.Option("--check", help="Open everything, say what would be served, and exit.")] = False,
) -> None:
    """Answer searches over HTTP.

    An index answers POST /search and GET /stats. GET /openapi.json describes the service, /livez and /readyz report whether
    it answers and is ready, /metrics has figures for Prometheus. SIGTERM and Ctrl-C stop it after finishing current
    requests. With --mcp it offers tools to a language model's client instead.
    """
    from nlp_retrieval.core.secrets import read_variable
    from nlp_retrieval.service.mcp import serve_stdio
    from nlp_retrieval.service.serving import serve
    from nlp_retrieval.service.settings import ServiceSettings, read_token, read_tokens

    limits: dict[str, Any] = {"body": int(max_body * 2**20), "seconds": seconds, "threads": threads, "waiting": waiting}
    kind = _kind_of(path, served_as)
    opening = partial(_opened, path=path, kind=kind, named=retriever or [], settings=parse_options(setting or []), trust=trust)
    if record is not None and record.resolve().is_relative_to(path.resolve()):
        raise ConfigurationError(f"--record {record}: it is inside of what is served; choose a folder beside {path}")
    what = f"the {kind} {path} can be served" if check else f"serving the {kind} {path}"
    if mcp:
        own = ServiceSettings(record=record, **limits)
        serve_stdio(opening, own, lambda: say(f"{what} over MCP on standard input and output"), check=check)
        return
    settings = ServiceSettings(
        host=host,
        port=port,
        tokens=read_token(read_variable(f"{VARIABLES}_TOKEN"), token_file) + (() if tokens is None else read_tokens(tokens)),
        allowed_hosts=tuple(allowed_host or ()),
        proxy=proxy,
        workers=workers,
        **limits,
        mcp=mcp_http,
        warm=warm,
        log_format=log_format,
        log_queries=log_queries,
        record=record,
    )
    announce = logging.getLogger("nlp_retrieval").info if log_format == "json" and not check else say
    serve(opening, settings, lambda address: announce(f"{what} on {address}"), check=check)


def _opened(path: Path, kind: str, named: Sequence[str], settings: Mapping[str, Any], trust: bool) -> BaseService:
    """Open the served folder, in each process."""
    from nlp_retrieval.core.search.retriever import BaseRetriever

    cls = service_class(kind)
    known = [name for name in inspect.signature(cls.from_path).parameters if name not in _COMMON]
    for key in settings:
        if key not in known:
            raise ConfigurationError(f"--set {key}: served as {kind}, {nearest(key, known)}")
    retrievers = [built(BaseRetriever, "--retriever", text) for text in named]
    return cls.from_path(path, retrievers=retrievers, trust=trust, **settings)


def _kind_of(path: Path, asked: str | None) -> str:
    if asked is not None:
        service_class(asked)
    if not os.path.isdir(path):  # noqa: PTH112 -- pathlib's raises an error for a name that no file can have
        raise IndexMissingError(f"{path} is no folder; index a corpus there first")
    kind = asked or recognized_kind(path)
    if kind is None:
        known = " or ".join(f"{kind} (no {service_class(kind).opens})" for kind in ("index", *_added()))
        raise IndexMissingError(f"{path} is no {known}; index a corpus there, or say what it is to become by --as KIND")
    return kind


def recognized_kind(path: Path) -> str | None:
    """Return the kind of service for a folder; most are indexes, and other services are then not imported."""
    if not os.path.isdir(path):  # noqa: PTH112 -- as above
        return None
    return next((kind for kind in ("index", *_added()) if service_class(kind).recognizes(path)), None)


def service_class(kind: str) -> type[BaseService]:
    """Return the service for a kind of folder: an index, or one that an installed package adds.

    Raises:
        ConfigurationError: there is none of this name, or it is not a service.
    """
    from nlp_retrieval.service.endpoints import BaseService
    from nlp_retrieval.service.index_service import IndexService

    if kind == IndexService.kind:
        return IndexService
    entry = _added().get(kind)
    if entry is None:
        raise ConfigurationError(f"--as {kind}: {nearest(kind, (IndexService.kind, *_added()))}")
    cls = entry.load()
    if not (isinstance(cls, type) and issubclass(cls, BaseService)):
        raise ConfigurationError(f"{entry.value}, registered as nlp_retrieval.services {kind!r}, is not a BaseService")
    return cls


@cache
def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="nlp_retrieval.services")}
