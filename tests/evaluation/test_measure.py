"""A measure prints as what it was parsed from, whatever that is."""

from __future__ import annotations

import ir_measures
import pytest

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.measures import DEPTH, Measure, cutoffs_of, read_measures


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("nDCG@10", "ndcg@10"),
        ("R@100", "recall@100"),
        (" P@5 ", "precision@5"),
        ("AP", "map"),
        ("MRR", "mrr"),
        ("FCR@21", "perfect_recall@21"),
        ("full_chain_retrieval@5", "perfect_recall@5"),
        ("rbp", "rbp(p=0.8)"),
        ("rbp@10(p=0.95)", "rbp(p=0.95)@10"),
        ("rbp(p=0.00000001)", "rbp(p=1e-08)"),
        ("rbp(p=0.9999999)", "rbp(p=0.9999999)"),
        ("success@5", "Success@5"),
        ("P(rel=2)@5", "P(rel=2)@5"),
        ("ndcg(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')@10"),
        ("answer_f1", "answer_f1"),
    ],
)
def test_a_measure_is_read_as_people_write_it(written: str, name: str) -> None:
    measure = Measure.read(written)
    assert str(measure) == name
    assert Measure.read(name) == Measure.parse(name) == measure
    if measure.foreign:
        assert str(ir_measures.parse_measure(name)) == name


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("ndgc@10", "there is no measure 'ndgc@10'; did you mean 'ndcg'"),
        ("recall at 10", "is not the name of a measure; write ndcg@10"),
        ("recall@2.5", "the cutoff is 2.5; write an integer above 0"),
        ("ndcg@0", "the cutoff is 0"),
        ("rbp(p=1)@10", "RBP has one parameter, its persistence, between 0 and 1"),
        ("rbp(q=0.5)", "RBP has one parameter"),
        ("P(rel=0)@5", "ir-measures cannot read it"),
        ("ndcg@" + "9" * 5000, "is not the name of a measure"),
        ("ERR(q=1)@5", "unsupported params found: .'q'"),
        ("Bpref(rel=2)@10", "unsupported params found: .'cutoff'"),
        ("P(rel=3)", "P needs its cutoff; write P\\(rel=3\\)@10"),
        ("INST", "needs its max_rel; write INST\\(max_rel=3\\)"),
        ("alpha_nDCG@5", "nothing installed here computes it"),
        ("NumRet", "is not between 0 and 1"),
        (10, "is not the name of a measure"),
        ("recip_rank", "'recip_rank' is a name of trec_eval; write RR$"),
        ("ndcg_cut_10", "'ndcg_cut_10' is a name of trec_eval; write nDCG@10$"),
    ],
)
def test_what_is_not_a_measure_is_refused(written: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Measure.read(written)


def test_measures_are_read_once_each_in_their_order() -> None:
    measures = read_measures(["R@100", "ndcg@10", "recall@100", "AP"])
    assert list(map(str, measures)) == ["recall@100", "ndcg@10", "map"]
    assert cutoffs_of(measures) == [10, DEPTH]
    with pytest.raises(ConfigurationError, match=r"write \['ndcg@10'\]"):
        read_measures("ndcg@10")
    with pytest.raises(ConfigurationError, match="the list of measures is empty"):
        read_measures([])
