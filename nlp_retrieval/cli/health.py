"""Exits with 0 if the service of this container is ready: ``python -m nlp_retrieval.cli.health``, the image's health check.

It asks at the address that ``serve`` listens on: from its command line (that of the container's first process, or the words
given), and the environment.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import typer

from nlp_retrieval.cli.app import app

_SECONDS = 5.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- it is asked at, not listened on


def readiness_url(words: Sequence[str]) -> str:
    """Return where a service says whether it is ready.

    Args:
        words: of its command line, after ``serve``.
    """
    group = typer.main.get_command(app)
    command = group.get_command(typer.Context(group), "serve")  # type: ignore[attr-defined]  # it is a group
    with command.make_context("serve", list(words), resilient_parsing=True) as context:
        host = _EVERYWHERE.get(context.params["host"], context.params["host"])
        return f"http://{f'[{host}]' if ':' in host else host}:{context.params['port']}/readyz"


def main(words: Sequence[str]) -> int:
    """Ask, and return the exit code.

    Args:
        words: of the command line of ``serve``; empty for that of the first process.
    """
    if not words:
        with suppress(OSError):
            words = Path("/proc/1/cmdline").read_bytes().rstrip(b"\0").decode("utf-8", "replace").split("\0")
        words = words[words.index("serve") + 1 :] if "serve" in words else []
    url = readiness_url(words)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            sys.stdout.write(answer.read(1000).decode("utf-8", "replace") + "\n")
    except urllib.error.HTTPError as error:
        sys.stdout.write(error.read(1000).decode("utf-8", "replace") + "\n")
        return 1
    except OSError as error:
        sys.stdout.write(f"{url}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
