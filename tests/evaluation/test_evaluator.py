"""The evaluator gives ir-measures' figures, counts what found nothing, and refuses gold that cannot be found."""

import math
import re

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, nDCG

from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import EngineError, GoldError
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.measures import measure_names

ITEMS = [f"d{row}" for row in range(12)]
ORACLE = {"precision": P, "recall": R, "ndcg": nDCG, "map": AP, "mrr": RR}


def gold(**relevance: dict[str, int]) -> list[Gold]:
    return [Gold(query_id=query_id, relevance=grades) for query_id, grades in relevance.items()]


def only(evaluation: Evaluation) -> dict[str, float]:
    return {name: float(values[0]) for name, values in evaluation.per_query.items()}


def by_ir_measures(wanted: list[Gold], lists: list[list[int]], k: int) -> dict[str, dict[str, float]]:
    qrels = {one.query_id: one.relevance for one in wanted}
    run = {
        one.query_id: {ITEMS[row]: float(-rank) for rank, row in enumerate(rows)}
        for one, rows in zip(wanted, lists, strict=True)
        if rows
    }
    figures: dict[str, dict[str, float]] = {name: {} for name in ORACLE}
    names = {measure @ k: name for name, measure in ORACLE.items()}
    for metric in ir_measures.iter_calc(list(names), qrels, run):
        figures[names[metric.measure]][metric.query_id] = metric.value
    return figures


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Gold], list[list[int]], list[int]]:
    n_queries = draw(st.integers(1, 4))
    grades = st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), min_size=1)
    wanted = [
        Gold(query_id=f"q{number}", relevance=draw(grades) | {draw(st.sampled_from(ITEMS)): draw(st.integers(1, 3))})
        for number in range(n_queries)
    ]
    ranking = st.lists(st.integers(0, len(ITEMS) - 1), unique=True)
    return wanted, [draw(ranking) for _ in wanted], draw(st.lists(st.integers(1, 15), min_size=1, max_size=4))


def test_rank_biased_precision_is_the_sum_of_its_definition() -> None:
    evaluator = RetrievalEvaluator(gold(q={"d0": 1, "d2": 3, "d3": 1}), ITEMS, None, measures=["rbp(p=0.5)@3", "rbp"])
    assert only(evaluator.evaluate_lists([[0, 1, 2, 3]])) == pytest.approx(
        {"rbp(p=0.5)@3": 0.5 * (1 + 0.25), "rbp(p=0.8)": 0.2 * (1 + 0.8**2 + 0.8**3)}
    )


def test_measures_of_ir_measures_count_a_title_once() -> None:
    judged = [Gold(query_id="q", relevance={"A": 1, "B": 1, "C": 0}, by="title")]
    evaluator = RetrievalEvaluator(judged, ITEMS[:5], ["A", "A", "C", "B", "D"], measures=["Judged@2", "Success@1", "RPrec"])
    values = only(evaluator.evaluate_lists([[1, 2, 0, 3]]))
    assert values == {"Judged@2": 1.0, "Success@1": 1.0, "Rprec": 0.5}


@settings(deadline=None)
@given(runs())
def test_figures_are_those_of_ir_measures(drawn: tuple[list[Gold], list[list[int]], list[int]]) -> None:
    wanted, lists, k_values = drawn
    got = RetrievalEvaluator(wanted, ITEMS, None, k_values).evaluate_lists(lists)
    assert list(got.per_query) == measure_names(k_values)
    assert got.empty_queries == sum(not rows for rows in lists)
    for k in set(k_values):
        for name, expected in by_ir_measures(wanted, lists, k).items():
            values = [expected[one.query_id] for one in wanted]
            assert got.per_query[f"{name}@{k}"] == pytest.approx(values, abs=1e-12), name
        precision, recall = got.per_query[f"precision@{k}"], got.per_query[f"recall@{k}"]
        f1 = [2 * p * r / (p + r) if p + r else 0.0 for p, r in zip(precision, recall, strict=True)]
        assert got.per_query[f"f1@{k}"] == pytest.approx(f1, abs=1e-12)
        assert got.per_query[f"perfect_recall@{k}"].tolist() == (recall == 1).astype(float).tolist()


class TestTitles:
    titles = ("Alien", "Heat (film)", "heat_(film)", "", "Togo", "Rain")
    ids = ("a", "h1", "h2", "none", "t", "r")

    def evaluator(self, *relevance: dict[str, int]) -> RetrievalEvaluator:
        wanted = [Gold(query_id=f"q{n}", relevance=grades, by="title") for n, grades in enumerate(relevance)]
        return RetrievalEvaluator(wanted, self.ids, self.titles, [1, 2, 4])

    @pytest.mark.parametrize("rows", [[1, 2, 0], [2, 1, 0]])
    def test_any_of_two_rows_finds_the_title_and_it_counts_once(self, rows: list[int]) -> None:
        got = only(self.evaluator({"HEAT (film)": 1, "Alien": 1}).evaluate_lists([rows]))
        assert (got["recall@1"], got["recall@2"], got["recall@4"]) == (0.5, 0.5, 1.0)
        assert (got["precision@2"], got["precision@4"]) == (0.5, 0.5)
        assert (got["perfect_recall@2"], got["perfect_recall@4"]) == (0.0, 1.0)
        assert got["map@4"] == pytest.approx((1 / 1 + 2 / 3) / 2)
        assert got["ndcg@4"] == pytest.approx((1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))

    def test_titles_that_are_equal_when_normalised_are_one_of_the_highest_grade(self) -> None:
        got = only(self.evaluator({"Togo": 1, "TOGO": 3, "Rain": 2}).evaluate_lists([[4, 5]]))
        assert (got["recall@2"], got["ndcg@2"]) == (1.0, 1.0)

    def test_a_title_among_item_ids_gets_its_cure(self) -> None:
        with pytest.raises(GoldError, match="'Alien' is a title of the corpus: make such gold with by='title'"):
            RetrievalEvaluator(gold(q={"Alien": 1}), self.ids, self.titles, [1])


class TestRefusals:
    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ([], "there is no gold, so nothing can be measured; give one Gold per query"),
            ([*gold(q1={"d1": 1}), *gold(q1={"d2": 1})], "query 'q1' occurs more than once in the gold; give one Gold"),
            (gold(q2={"d1": 0, "d2": -1}, q3={}), "no query has gold with a grade above 0"),
            (
                gold(q1={"d1": 1, "x1": 1, "x2": 2}, q2={"x1": 1}, q3={"d3": 1}),
                "3 of 5 relevant documents, of 2 of 3 queries, are not in the corpus of 12 items (first: item id 'x1' "
                "of query 'q1'); use the corpus that the gold was made for, or leave these queries out",
            ),
        ],
    )
    def test_gold_that_cannot_be_measured(self, wanted: list[Gold], message: str) -> None:
        with pytest.raises(GoldError, match=re.escape(message)):
            RetrievalEvaluator(wanted, ITEMS, None, [1])

    def test_a_row_twice_in_a_ranking(self) -> None:
        evaluator = RetrievalEvaluator(gold(q1={"d1": 1}, q2={"d1": 1}), ITEMS, None, [1])
        message = "the ranking of query 'q2' holds row 5 (item 'd5') at ranks 2, 4; a ranking holds an item once"
        with pytest.raises(EngineError, match=re.escape(message)):
            evaluator.evaluate_lists([[5, 2, 3, 4], [1, 5, 2, 5]])
