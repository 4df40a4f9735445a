"""A verifier keeps the rules of rerankers, and judges like one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.cli.app import app
from nlp_retrieval.judging import JudgingProject
from nlp_retrieval.systems.evidence.verifiers.base import ABSTAINED, Judgement
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.reranker import VerifierReranker
from nlp_retrieval.testing import RerankerRules

CLAIM = "The tram network closed in 1962."
PASSAGES = ("The tram network closed in 1962.", "The tram network closed in 1974.", "Whales eat krill.")


class TestVerifierReranker(RerankerRules):
    component = VerifierReranker

    def make(self):
        return VerifierReranker(LexicalVerifier(), blend="replace")


def test_what_bears_on_a_claim_scores_above_what_does_not_and_an_abstention_scores_0() -> None:
    class Abstains(LexicalVerifier):
        def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
            return [Judgement(0.9, 0.05, 0.05, (0, 0), {ABSTAINED: 1.0}) for _ in claims]

    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(PASSAGES)]
    columns = VerifierReranker("lexical").score_pairs([CLAIM] * 3, items)
    expected = [(each.support, each.contradict) for each in LexicalVerifier().judge([CLAIM] * 3, PASSAGES)]
    assert np.allclose(np.stack([columns["support"], columns["contradict"]], axis=1), expected)
    assert min(columns["score"][:2]) > columns["score"][2]
    assert VerifierReranker(Abstains()).score_pairs([CLAIM], items[:1])["score"].tolist() == [0.0]


def test_a_verifier_grades_the_pairs_of_a_judging_project(tmp_path: Path) -> None:
    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(PASSAGES)]
    runs = {"bm25": {"q": [(item.item_id, 1.0) for item in items]}}
    project = JudgingProject.create(tmp_path / "judging", [Query(query_id="q", text=CLAIM)], runs, items, scale="graded")
    project.close()
    done = CliRunner().invoke(app, ["judge", "model", str(tmp_path / "judging"), "--scorer", "verifier:verifier=lexical"])
    assert done.exit_code == 0, done.output
    grades = {each.item_id: each.grade for each in JudgingProject(tmp_path / "judging").judgements()}
    assert (grades["0"], grades["2"]) == (3, 0)
    assert (grades["1"] or 0) > 0
