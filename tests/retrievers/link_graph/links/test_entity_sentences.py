"""EntitySentences: passages whose sentences name the same, alone or in pairs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers.link_graph.extractors import EntitySentences, LinkSentence
from nlp_retrieval.text.mentions import entities_by_rules
from nlp_retrieval.text.sentences import sentence_spans
from retrievers.link_graph.corpora import approximately, links_of, passage


def test_two_names_in_one_sentence_of_each_link_more_than_two_names_in_two() -> None:
    items = [
        passage(None, "Paris saw Al Pacino.", "a"),
        passage(None, "Al Pacino left Paris.", "b"),
        passage(None, "Paris was cold. Al Pacino stayed.", "c"),
        passage(None, "nothing", "d"),
    ]
    both = 1 / 3 + 1 / 3
    assert links_of(EntitySentences(), items) == approximately({("a", "b"): both + 1 / 2, ("a", "c"): both, ("b", "c"): both})


def test_a_pair_links_where_each_name_alone_is_too_common() -> None:
    items = [passage(None, "in Paris.", f"p{row}") for row in range(3)] + [
        passage(None, "in Rome.", f"r{row}") for row in range(3)
    ]
    items += [passage(None, "from Rome to Paris.", "a"), passage(None, "from Paris to Rome.", "b")]
    assert links_of(EntitySentences(max_passages=4), items) == approximately({("a", "b"): 1 / 2})


WORDS = st.lists(st.sampled_from(["Paris", "Al Pacino", "of", "and", ".", '"', "London", "the", "É", "\n"]), max_size=10)


@given(st.lists(st.tuples(WORDS.map(" ".join), WORDS.map(" ".join)), min_size=1, max_size=7), st.integers(2, 6))
def test_weights_are_those_of_counting_by_hand(rows: list[tuple[str, str]], most: int) -> None:
    items = [passage(title, content, str(row)) for row, (title, content) in enumerate(rows)]
    having: dict[object, set[str]] = {}
    for item in items:
        sentences = [entities_by_rules(item.content[start:end]) for start, end in sentence_spans(item.content)]
        for name in entities_by_rules(item.title).union(*sentences):
            having.setdefault(name, set()).add(item.item_id)
        for pair in {frozenset(pair) for names in sentences for pair in combinations(names, 2)}:
            having.setdefault(pair, set()).add(item.item_id)
    expected: dict[tuple[str, str], float] = {}
    for ids in having.values():
        for one, other in combinations(sorted(ids, key=int), 2) if len(ids) <= most else ():
            expected[one, other] = expected.get((one, other), 0.0) + 1 / len(ids)
    assert links_of(EntitySentences(max_passages=most), items) == approximately(expected)


def test_a_sentence_of_many_names_makes_no_pairs_so_that_links_stay_linear_in_the_text() -> None:
    names = [f"Ab{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(400)]
    of = {n: len(set(next(EntitySentences().keys_of([passage(None, ", ".join(names[:n]), "a")])))) for n in (12, 13, 400)}
    assert of == {12: 12 + 66, 13: 13, 400: 400}


def test_the_evidence_is_the_sentence_that_names_most_of_what_both_name() -> None:
    source = passage("Heat", "Shot in Paris. Paris and Al Pacino's rival meet. The end.")
    assert EntitySentences().evidence(source, passage(None, "Al Pacino left Paris.", "x")) == LinkSentence(
        "Paris and Al Pacino's rival meet.", 10, 19
    )
    assert EntitySentences().evidence(source, passage(None, "he saw Heat", "x")) == LinkSentence("Heat", 0, 4)
    assert EntitySentences().evidence(source, passage(None, "he saw nothing", "x")) is None


def test_every_link_has_evidence_in_both_directions() -> None:
    items = [
        passage("Beyoncé's Lemonade", "An album by Beyonce, U.S. singer, with Jay-Z and \u201ca hard rain\u201d."),
        passage("Jay-Z", 'He sang "a hard rain" at the University of Paris.'),
        passage("University of Paris", "In the U.S. they love Beyoncé."),
    ]
    by_id = {item.item_id: item for item in items}
    found = links_of(EntitySentences(), items)
    assert len(found) == 3
    for source, target in [*found, *((target, source) for source, target in found)]:
        shown = EntitySentences().evidence(by_id[source], by_id[target])
        assert shown is not None
        assert shown.text[shown.start : shown.end]


@pytest.mark.parametrize("items", [[passage(None, "", "a"), passage("", "🦊", "b")], [passage("Paris")]])
def test_a_corpus_without_shared_names_has_no_links(items: list[SearchableItem]) -> None:
    assert links_of(EntitySentences(), items) == {}


def test_a_spacy_pipeline_that_is_missing_says_how_to_get_one() -> None:
    with pytest.raises(ModelError, match="does not load as a spaCy pipeline"):
        links_of(EntitySentences(mentions="xx_no_such_pipeline"), [passage("a")])


@pytest.mark.parametrize(
    ("parameter", "value"), [("max_passages", 1), ("max_passages", 10**6), ("mentions", ""), ("mentions", None)]
)
def test_parameters_out_of_range_are_refused(parameter: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"EntitySentences: {parameter}="):
        EntitySentences(**{parameter: value})  # type: ignore[arg-type]
