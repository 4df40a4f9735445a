"""``multi_signal``: what each signal says, how they are joined, and what is missing."""

from __future__ import annotations

import math
import warnings

import pytest
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, MultiSignalReranker, RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.errors import RetrievalWarning

TEXTS = {
    "target": "Emissions fall by 40% below 2010 levels by 2030, an unconditional target.",
    "wind": "Onshore wind and solar power replace coal; 12 GW of wind are built.",
    "window": "The window of the museum on the Costa Brava was closed.",
    "money": "The plan costs USD 3 billion, financed by grants and loans.",
    "blank": "",
    "japanese": "気候変動への適応について。",
}
PROFILE = {
    "name": "small",
    "subject": "country",
    "groups": {"energy": ["wind", "solar power", "coal"], "finance": ["cost", "grant", "loan"], "aims": ["target", "emission"]},
    "patterns": {"aims": [r"\b\d+%"], "finance": [r"\bUSD \d+"]},
    "questions": [
        {"number": 1, "text": "Which target has {subject}?", "keywords": ["unconditional target"], "groups": ["aims"]},
        {"number": 2, "text": "Who pays for it in {subject}?", "keywords": ["billion"], "groups": ["finance"]},
    ],
}


def items(texts=TEXTS, **metadata):
    return [SearchableItem(item_id=name, content=text, metadata=metadata) for name, text in texts.items()]


def results(given=None, **signals):
    return [RetrievalResult(item=item, score=0.0, signals=dict(signals)) for item in given or items()]


def ranked(reranker, query, given=None, k=100):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        (found,) = reranker.rerank([query], [given or results()], k)
    return found


def signals_of(reranker, query, given=None):
    return {result.item.item_id: result.signals for result in ranked(reranker, query, given)}


def only(signal, **settings):
    """One signal alone."""
    weights = {f"{name}_weight": float(name == signal) for name in ("transformer", "word_vectors", "patterns", "fuzzy")}
    return MultiSignalReranker(PROFILE, **({"min_similarity": 0.0} | weights | settings))


# patterns


def test_a_group_gives_half_as_much_for_each_further_match():
    """By hand: the query mentions the group energy alone; wind, solar power and coal are three keywords, 1 - 2^-3."""
    signals = signals_of(only("patterns"), "wind")
    assert signals["wind"]["multi_signal.patterns"] == pytest.approx(1 - 2**-3)


def test_the_groups_of_the_nearest_question_count_less_than_those_that_are_mentioned():
    """By hand. The query has the keyword "target" of aims (1) and is nearest to question 1, whose keyword group counts 1/4.

    The passage has the keywords emission and target and one percentage: m = 3; and the keyword of the question: m = 1.
    """
    signals = signals_of(only("patterns"), "which target?")
    assert signals["target"]["multi_signal.patterns"] == pytest.approx(((1 - 2**-3) + 0.25 * (1 - 2**-1)) / 1.25)


def test_matches_are_spans_of_the_text_with_their_groups():
    text = "気候: Wind 12 GW, USD 30 by grants; window"
    matches = only("patterns").matches("wind and grants, USD 7", text)
    assert [(match.group, match.text) for match in matches] == [
        ("energy", "Wind"), ("finance", "USD 30"), ("finance", "grants"),
    ]  # fmt: skip
    assert all(text[match.begin : match.end] == match.text for match in matches)


def test_numbers_of_the_query_are_found_in_other_units_and_years_as_years():
    reranker = MultiSignalReranker(min_similarity=0.0, fuzzy_weight=0.0)
    given = results(items({"same": "12,000 MW by 2030", "other": "11 GW by 2035", "none": "nothing"}))
    signals = signals_of(reranker, "Are 12 GW planned for 2030?", given)
    assert {name: round(found["multi_signal.patterns"], 6) for name, found in signals.items()} == {
        "same": 0.75, "other": 0.0, "none": 0.0,
    }  # fmt: skip
    assert [match.text for match in reranker.matches("12 GW in 2030?", "12,000 MW by 2030")] == ["12,000 MW", "2030"]


# fuzzy words


def test_likeness_counts_as_described():
    """By hand: "energi" and "enrgi" are stems of 6 and 5 letters, one letter apart: 1 - 1/11, from .6 on, squared."""
    from nlp_retrieval.text.words import stems_of_language

    assert [stems_of_language("english").stem(word) for word in ("energy", "enrgy")] == ["energi", "enrgi"]
    signals = signals_of(only("fuzzy"), "energy", results(items({"typo": "enrgy"})))
    assert signals["typo"]["multi_signal.fuzzy"] == pytest.approx(((1 - 1 / 11 - 0.6) / 0.4) ** 2, abs=1e-6)


def test_rare_words_of_an_index_count_more(tmp_path):
    """Every item has "plan", one has "desalination": who has the rare one of the two comes first, though each has one."""
    corpus = items({"a": "plan alpha", "b": "plan beta", "c": "desalination gamma", "d": "plan delta", "e": "plan epsilon"})
    searcher = Searcher([FaissRetriever(HashedWords())], reranker=only("fuzzy"), depth="all")
    searcher.index(corpus, tmp_path / "index")
    (found,) = searcher.search("desalination plan", 5)
    assert found[0].item.item_id == "c"
    n, rare, frequent = 5, math.log(6 / 1.5), math.log(6 / 4.5)
    assert n == len(found)
    assert found[0].score == pytest.approx(0.85 * rare / (rare + frequent))  # the phrase has the rest


@pytest.mark.parametrize(
    ("passage", "phrases"),
    [("targets of emission cuts", 0), ("emission targets", 1), ("emission of the targets", 1), ("targets, later emission", 0)],
)  # fmt: skip
def test_a_phrase_counts_where_its_words_follow_each_other(passage: str, phrases: int) -> None:
    signals = signals_of(only("fuzzy"), "emission targets", results(items({"passage": passage})))
    assert signals["passage"]["multi_signal.fuzzy"] == pytest.approx(0.85 + 0.15 * phrases)


# vectors


def test_a_missing_signal_is_left_out_and_never_0():
    """The mean of the others, by hand; nothing is 0 for what was not computed."""
    reranker = MultiSignalReranker(PROFILE, min_similarity=0.0)
    for signals in signals_of(reranker, "wind", results(**{"faiss.score": 0.5})).values():
        parts = {name: signals[f"multi_signal.{name}"] for name in ("transformer", "patterns", "fuzzy")}
        expected = (0.25 * parts["transformer"] + 0.30 * parts["patterns"] + 0.25 * parts["fuzzy"]) / 0.80
        assert signals["multi_signal.score"] == pytest.approx(expected)
        assert "multi_signal.word_vectors" not in signals


# weights, thresholds


def test_the_score_is_the_weighted_mean_of_the_signals():
    share = 0.3
    reranker = MultiSignalReranker(
        PROFILE, min_similarity=0.0, transformer_weight=0.0, word_vectors_weight=0.0,
        patterns_weight=share * 7, fuzzy_weight=(1 - share) * 7,
    )  # fmt: skip
    for signals in signals_of(reranker, "wind and money").values():
        expected = share * signals.get("multi_signal.patterns", 0.0) + (1 - share) * signals.get("multi_signal.fuzzy", 0.0)
        assert signals["multi_signal.score"] == pytest.approx(expected)
        assert 0.0 <= signals["multi_signal.score"] <= 1.0


def test_a_document_gives_its_best_passages_only():
    texts = {f"p{number}": "wind " * (number % 3 == 0) + "coal " * (number % 2) + f"x{number}" for number in range(12)}
    given = [
        SearchableItem(item_id=name, content=text, metadata={"document": f"d{number % 2}"} if number < 10 else {})
        for number, (name, text) in enumerate(texts.items())
    ]
    every = [result.item for result in ranked(only("fuzzy"), "wind coal", results(given))]
    cut = [result.item for result in ranked(only("fuzzy", n_per_document=2), "wind coal", results(given))]
    expected, counts = [], {}
    for item in every:
        document = item.metadata.get("document")
        counts[document] = counts.get(document, 0) + 1
        if document is None or counts[document] <= 2:
            expected.append(item)
    assert cut == expected
    assert len(cut) == 6


# hostile


def test_patterns_that_blow_up_elsewhere_take_linear_time():
    """A backtracking engine would need 2^1,000,000 steps for this; that the test ends is what it asserts, with the answer."""
    evil = {"name": "evil", "subject": "s", "patterns": {"x": [r"(a+)+$b|z", r"(a|aa)+c", r"(.*a){20}b"]}}
    reranker = MultiSignalReranker(evil, min_similarity=0.0, transformer_weight=0.0, word_vectors_weight=0.0, fuzzy_weight=0.0)
    given = results(items({"long": "a" * 1_000_000, "hit": "a" * 1_000_000 + " z"}))
    signals = signals_of(reranker, "z", given)
    assert signals["hit"]["multi_signal.patterns"] == pytest.approx(0.5)
    assert signals["long"]["multi_signal.patterns"] == 0.0
