"""``nlp-retrieval serve``: an index or a project, asked by other programs over HTTP, or by clients of MCP."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.evidence.projects import VerifierOption, chosen_verifier, open_project
from nlp_retrieval.cli.search import composed
from nlp_retrieval.cli.trusting import Trust
from nlp_retrieval.errors import ConfigurationError, IndexMissingError

if TYPE_CHECKING:
    from nlp_retrieval.service.endpoints import BaseService
    from nlp_retrieval.service.settings import ServiceLimits

NAME = "serve"

_VARIABLE = "NLP_RETRIEVAL_TOKEN"
_SOURCES = "10_graph"
_HOST, _PORT = "127.0.0.1", 8000


@dataclass(frozen=True)
class _Opening:
    """Opens what is served, in whichever process: all of it are words as the user wrote them."""

    path: Path
    project: bool
    retriever: tuple[str, ...]
    fusion: str | None
    reranker: str | None
    verifier: str
    trust: bool

    def __call__(self) -> BaseService:
        if self.project:
            from nlp_retrieval.service.project_service import ProjectService

            return ProjectService(open_project(self.path, list(self.retriever)), chosen_verifier(self.verifier))
        from nlp_retrieval.service.index_service import IndexService

        searcher = composed(self.path, list(self.retriever), self.fusion, self.reranker, trust=self.trust)
        return IndexService(searcher.open(self.path))


def command(
    path: Annotated[Path, typer.Argument(help="An index directory, or the folder of a project of sources.")],
    host: Annotated[str, typer.Option(help="Where to listen. Elsewhere than on this machine, a token is needed.")] = _HOST,
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = _PORT,
    workers: Annotated[int, typer.Option(help="Processes, each with the index opened.")] = 1,
    threads: Annotated[int, typer.Option(help="Requests that a process works on at once.")] = 4,
    waiting: Annotated[int, typer.Option(help="Requests that may wait for a thread; those beyond are refused.")] = 128,
    seconds: Annotated[
        float, typer.Option(help="The longest that a request may take; one that adds sources may take ten minutes.")
    ] = 30.0,
    max_body: Annotated[float, typer.Option("--max-body", help="The largest body of a request, in MiB.")] = 16.0,
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", help=f"Environment variable that holds the token; by default {_VARIABLE}, if it is set."),
    ] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="File that holds the token.")] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", help="A further name under which the service may be asked for. Repeatable."),
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="It is a project, also where it has no sources yet (they come by POST /index).")
    ] = False,
    retriever: Annotated[
        list[str] | None,
        typer.Option("--retriever", "-r", help="name or name:key=value. Repeatable. By default what the index holds."),
    ] = None,
    fusion: Annotated[str | None, typer.Option(help="Of an index: how several retrievers are fused: rrf, ...")] = None,
    reranker: Annotated[str | None, typer.Option(help="Of an index: what reorders what was found.")] = None,
    verifier: VerifierOption = "lexical",
    mcp: Annotated[
        bool,
        typer.Option("--mcp", help="Answer the Model Context Protocol on standard input and output, and nothing over HTTP."),
    ] = False,
    mcp_http: Annotated[
        bool, typer.Option("--mcp-http", help="Answer the Model Context Protocol at /mcp too, by the same rules.")
    ] = False,
    trust: Trust = False,
    check: Annotated[bool, typer.Option("--check", help="Open everything, say what would be served, and end.")] = False,
) -> None:
    """Answer searches over HTTP.

    Of an index: POST /search, GET /stats. Of a project: POST /index, /search, /verify and /audit, GET /passages/KEY and
    /stats. GET /openapi.json describes them, GET /healthz says whether the service works. SIGTERM and Ctrl-C end it, after
    the requests that are under way. With --mcp, the tools of a language model's client take the place of all this.
    """
    from nlp_retrieval.service.application import require_packages
    from nlp_retrieval.service.serving import listen, serve
    from nlp_retrieval.service.settings import ServiceLimits, ServiceSettings, read_token

    if not 0 < max_body <= 1024:
        raise ConfigurationError(f"--max-body {max_body}: take a number of MiB above 0, at most 1024")
    limits = ServiceLimits(body=int(max_body * 2**20), seconds=seconds, threads=threads, waiting=waiting)
    is_project = _is_project(path, asked=project)
    if is_project and (fusion or reranker):
        raise ConfigurationError("--fusion and --reranker are for an index; a project is searched by --retriever alone")
    opening = _Opening(path, is_project, tuple(retriever or ()), fusion, reranker, verifier, trust)
    kind = "project" if is_project else "index"
    if mcp:
        if mcp_http or workers > 1 or (host, port) != (_HOST, _PORT) or token_file or token_env or allowed_host:
            raise ConfigurationError(
                "--mcp answers the program that started it, on standard input and output; leave out --mcp-http, --workers, "
                "--host, --port, --allowed-host and the options of the token, which are for HTTP"
            )
        _serve_stdio(opening, limits, f"the {kind} {path}", check=check)
        return
    token = read_token(token_env or _VARIABLE, token_file, required=token_env is not None)
    settings = ServiceSettings(host, port, token, tuple(allowed_host or ()), workers, limits, mcp_http)
    if not check:
        serve(opening, settings, lambda address: say(f"serving the {kind} {path} on {address}"))
        return
    require_packages()
    if mcp_http:
        from nlp_retrieval.service.mcp.server import require_mcp

        require_mcp()
    opening().close()
    with listen(settings):
        pass
    asked = "with a token" if token is not None else "without a token"
    say(f"the {kind} {path} can be served on {host} port {port}, {asked}, by {workers} process{'es' if workers > 1 else ''}")


def _serve_stdio(opening: _Opening, limits: ServiceLimits, what: str, *, check: bool) -> None:
    from nlp_retrieval.service.mcp.server import require_mcp
    from nlp_retrieval.service.mcp.stdio import serve_stdio

    if not check:
        serve_stdio(opening, limits, lambda: say(f"serving {what} over MCP on standard input and output"))
        return
    require_mcp()
    opening().close()
    say(f"{what} can be served over MCP on standard input and output")


def _is_project(path: Path, *, asked: bool) -> bool:
    from nlp_retrieval.core.index.manifest import MANIFEST_FILE

    if os.path.isdir(path):  # noqa: PTH112 -- pathlib's raises an error for a name that no file can have
        if asked:
            return True
        if (path / MANIFEST_FILE).is_file():
            return False
        if (path / _SOURCES).is_dir():
            return True
        found = f"is neither an index (no {MANIFEST_FILE}) nor a project of sources (no {_SOURCES})"
    else:
        found = "is no folder"
    raise IndexMissingError(f"{path} {found}; index a corpus there, or begin a project: make the folder, and pass --project")
