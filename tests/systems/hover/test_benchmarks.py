"""A multi-hop searcher is planned, varied, measured and held to its corpus in benchmarks as any other."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from benchmarks.small_benchmark import GOLD, QUERIES, TEXTS, TITLES
from chat_server import ChatServer, MakeModel, asked, fields

from nlp_retrieval import Bm25Retriever, compare_systems
from nlp_retrieval.hover import HoverMultiHop, HoverMultiHopPipeline


def hops(body: dict[str, Any]) -> str:
    """A summary or the next query, whichever is asked for."""
    words = asked(body, "claim").split()
    return fields(summary=f"about {words[0]}") if "passages" in str(body) else fields(query=" ".join(words[-2:]))


def test_programs_are_compared_like_any_searcher_with_the_groups_and_signals_of_their_hops(
    server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    def answers(body: dict[str, Any]) -> str:
        return fields(phrases=["fox", "whale"]) if "`phrases` (" in str(body) else hops(body)

    server.answer = answers
    walk, phrases = HoverMultiHop(["bm25"], model(), hops=2), HoverMultiHopPipeline(["bm25"], model())
    topics = [{"qid": one.query_id, "query": one.text} | one.metadata for one in QUERIES]
    corpus = [{"id": f"d{row}", "title": TITLES[row], "text": text} for row, text in enumerate(TEXTS)]
    systems = [Bm25Retriever(), walk, phrases]
    run = compare_systems(systems, topics, GOLD, corpus, measures=["recall@10"], folder=tmp_path)
    assert [result.name for result in run.report.configurations] == [
        "bm25", "multi_hop bm25", "claim_phrases >> bm25 >> overlap",
    ]  # fmt: skip
    assert all(list(result.groups) == ["hops=2", "hops=3", "hops=4"] for result in run.report.configurations)
    for program in (walk, phrases):
        program.open(tmp_path / "index")
    for name, program in (("multi_hop bm25", walk), ("claim_phrases >> bm25 >> overlap", phrases)):
        listing = run.lists.listings[name]
        for number, query in enumerate(QUERIES):
            found = [run.lists.item_ids[row] for row in listing.items[listing.of(number)]]
            assert found == [hit.item.item_id for hit in program(claim=query.text).results]
    assert {"hop1.rank", "hop2.bm25.score"} <= set(run.lists.listings["multi_hop bm25"].signals)


def test_a_program_is_compared_as_it_was_compiled(server: ChatServer, model: MakeModel, index: Path) -> None:
    server.answer = lambda body: fields(phrases=["whale song", "arctic fox"]) if "`phrases` (" in str(body) else hops(body)
    for program, predictor in (
        ((walk := HoverMultiHop(["bm25"], model(), hops=2)), lambda: walk.ask[0]),
        ((phrases := HoverMultiHopPipeline(["bm25"], model())), lambda: phrases.decompose),
    ):
        plain = program.as_searcher().fingerprint
        one = predictor()
        one.signature = one.signature.with_instructions("Ask in rhymes.")
        searcher = pickle.loads(pickle.dumps(program.as_searcher()))
        assert searcher.fingerprint == program.as_searcher().fingerprint != plain
        searcher.open(index).search(["a claim about whales"])
        assert "Ask in rhymes." in str(server.bodies[-1])
