"""The questions: HoVer's claims, and 2-hop questions of HotpotQA, over one collection."""

from __future__ import annotations

import random
from pathlib import Path

from bench.common import Data
from nlp_retrieval import BeirLoader, Gold, HoverLoader, Query, Searcher

QUESTIONS = ("HoVer", "HotpotQA")
ASKED = 150
"""Questions of HotpotQA; none shares its source with a claim."""


def collection(data: Data, name: str) -> tuple[list[Query], list[Gold], Path]:
    """Questions with their gold, and the index that is searched."""
    index = data.work / "agents" / "index"
    if not index.exists():
        Searcher(["bm25"]).index(BeirLoader(str(data.corpus)), index)
    claims = HoverLoader(data.claims)
    if name == "HoVer":
        return claims.queries(), claims.gold(), index
    loader = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
    sources = {claim.family for claim in claims.queries()}
    pairs = [
        (query, wanted)
        for query, wanted in zip(loader.queries(), loader.gold(), strict=True)
        if query.query_id not in sources and len(wanted.relevance) == 2 and query.metadata.get("type") == "bridge"
    ]
    drawn = random.Random(0).sample(pairs, ASKED)
    return [query for query, _ in drawn], [wanted for _, wanted in drawn], index
