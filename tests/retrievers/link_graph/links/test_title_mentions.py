"""TitleMentions: a passage links to the passages whose titles it mentions."""

from __future__ import annotations

import math
from collections import Counter

import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from text.test_surfaces import TEXT, naive

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.mentions import TitleMentions
from nlp_retrieval.text.surfaces import words_of
from retrievers.link_graph.corpora import approximately, links_of, passage

STEM = Stemmer.Stemmer("porter").stemWord


def words(item: SearchableItem) -> set[str]:
    return {STEM(word) for word in words_of(item.text)}


def closeness(one: SearchableItem, other: SearchableItem, items: list[SearchableItem]) -> float:
    """The cosine of two passages, by loops over sets."""
    having = Counter(word for item in items for word in words(item))
    square = {word: math.log1p((len(items) - n + 0.5) / (n + 0.5)) ** 2 for word, n in having.items()}
    shared, *lengths = (sum(square[word] for word in some) for some in (words(one) & words(other), words(one), words(other)))
    return shared / math.sqrt(lengths[0] * lengths[1])


def named(item: SearchableItem) -> float:
    title = {STEM(word) for word in words_of(item.title)}
    return min(1.0, 2 * len(title & {STEM(word) for word in words_of(item.content)}) / len(title))


def test_a_title_that_several_passages_carry_means_the_one_that_is_close_and_says_its_name() -> None:
    items = [
        passage("a", "The robbery film Heat by Michael Mann."),
        passage("Heat (1995 film)", "Heat is a film by Michael Mann about a robbery."),
        passage("Heat (novel)", "Heat is a book about the robbery film by Michael Moss."),
        passage("Heat (magazine)", "A paper on sale in London, with a film robbery."),
        passage("Mercury", "A planet, by Michael."),
    ]
    carriers = items[1:4]
    likely = [(0.05 + closeness(items[0], item, items)) ** 2 * (0.05 + named(item)) for item in carriers]
    likely = [value if value >= max(likely) / 10 else 0.0 for value in likely]
    assert likely[0] > likely[1] > likely[2] == 0.0
    expected = {("a", item.item_id): value / sum(likely) for item, value in zip(carriers, likely, strict=True) if value}
    assert links_of(TitleMentions(rarity=0), items) == approximately(expected)


NAMES = st.sampled_from(["New", "New York", "New York City", "York (film)", "York", "iPod", "É", "City", "2"])


@given(st.lists(st.tuples(NAMES, TEXT), min_size=1, max_size=6), st.sampled_from([0.0, 0.5, 1.0]))
def test_links_are_those_of_a_naive_reading(rows: list[tuple[str, list[str]]], rarity: float) -> None:
    titles = [title.removesuffix(" (film)") for title, _ in rows]
    shares: dict[tuple[int, int], float] = {}
    for source, (_, parts) in enumerate(rows):
        for carriers, _, _ in naive(" ".join(parts), titles):
            for target in carriers if source not in carriers else ():
                shares[source, target] = max(shares.get((source, target), 0), 1 / len(carriers))
    times = Counter(target for _, target in shares)
    expected = {(str(s), str(t)): share / times[t] ** rarity for (s, t), share in shares.items()}
    items = [passage(title, " ".join(parts), str(row)) for row, (title, parts) in enumerate(rows)]
    assert links_of(TitleMentions(min_characters=1, rarity=rarity, context=0), items) == approximately(expected)
