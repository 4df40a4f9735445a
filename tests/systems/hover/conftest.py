"""The demonstration's pages and claims, an index of them, and a server that plays a language model by rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import asked, fields, model, server  # noqa: F401
from demo_index import index  # noqa: F401

import nlp_retrieval
from nlp_retrieval.core.models import Query
from nlp_retrieval.loaders.datasets import HoverLoader

DEMO = Path(nlp_retrieval.__file__).parent / "demo"


def plays(body: dict[str, Any]) -> str:
    """Phrases are thirds of the claim, a passage is what it was asked for, a summary is the first titles, and the next query
    the last of those and the claim's end."""
    wanted = body["messages"][0]["content"]
    if "`passage` (" in wanted:
        return fields(passage=f"It is known of {asked(body, 'query')}")
    claim = asked(body, "claim")
    if "`phrases` (" in wanted:
        words = claim.split()
        third = -(-len(words) // 3)
        return fields(phrases=[" ".join(words[begin : begin + third]) for begin in range(0, len(words), third)])
    context = json.loads(asked(body, "context"))
    if "`summary` (" in wanted:
        titles = [passage.partition(" | ")[0] for passage in json.loads(asked(body, "passages"))]
        return fields(reasoning="It is plain.", summary=" and ".join(titles[:3]))
    return fields(reasoning="It is plain.", query=f"{context[-1].split(' and ')[-1]} {' '.join(claim.split()[-3:])}")


@pytest.fixture
def played(server):  # noqa: F811
    """The server, playing."""
    server.answer = plays
    return server


@pytest.fixture(scope="session")
def claims() -> list[Query]:
    """The demonstration's claims."""
    return HoverLoader(DEMO / "claims.json").queries()
