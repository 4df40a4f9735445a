"""Corpora of passages that lead to one another: one by hand for every kind of link, and random ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.extractors import BaseLinkExtractor, SharedEntities
from nlp_retrieval.retrievers.link_graph.mentions import Hyperlinks, TitleMentions

FILLER = "orchard velvet copper meadow lantern gravel pepper saddle thunder walnut ribbon marble".split()


@dataclass(frozen=True)
class TwoHops:
    """A question whose answer shares no word with it and is linked to what does."""

    links: BaseLinkExtractor
    items: list[SearchableItem] = field(repr=False)
    shuffled: list[SearchableItem] = field(repr=False)

    query = "which novelist described a lighthouse"


def page(item_id: str, content: str, title: str = "", **metadata: object) -> SearchableItem:
    """An item with a title where one is given."""
    named = {"title": title} if title else {}
    return SearchableItem.model_validate({"item_id": item_id, "content": content, "metadata": {**named, **metadata}})


def two_hops() -> dict[str, TwoHops]:
    """By kind of link, a corpus of eight in which the second passage is reached over the first alone."""
    start = "A novelist described the lighthouse"
    names = ["Ada Quill", "Port Averly", "Benedict Crane", "Zora Helm", "Mount Tessel", "Ivo Lark"]
    plain = [f"Known for {one} and {other}" for one, other in zip(FILLER[::2], FILLER[1::2], strict=True)]

    def titled(order: list[str]) -> list[SearchableItem]:
        pages = [page(f"d{row + 1}", plain[row], name) for row, name in enumerate(order)]
        return [page("d0", f"{start}, as Ada Quill once wrote.", "The Old Tower"), *pages]

    def sharing(row: int) -> list[SearchableItem]:
        texts = [f"{text}, near Corvin Observatory" if at == row else text for at, text in enumerate(plain)]
        return [page("d0", f"{start} of Corvin Observatory."), *(page(f"d{at + 1}", text) for at, text in enumerate(texts))]

    def pointing(target: str) -> list[SearchableItem]:
        pages = [page(f"d{row + 1}", text) for row, text in enumerate(plain)]
        return [page("d0", start, links=[target]), *pages]

    return {
        "title_mentions": TwoHops(TitleMentions(), titled(names), titled(names[1:] + names[:1])),
        "shared_entities": TwoHops(SharedEntities(), sharing(0), sharing(4)),
        "hyperlinks": TwoHops(Hyperlinks(), pointing("d1"), pointing("d5")),
    }


SYLLABLES = "ka lo mi ru ten vas por del gri sho bel nam".split()


def wiki(count: int, seed: int = 0) -> list[SearchableItem]:
    """Random pages with titles of two names; most mention one to three others, and say some common words."""
    draw = random.Random(seed)
    pairs = [(one, other) for one in SYLLABLES for other in SYLLABLES]
    titles = [f"{one}{other} {other}{one}".title() for one, other in draw.sample(pairs, count)]
    items = []
    for row, title in enumerate(titles):
        mentioned = draw.sample(titles, draw.choice([0, 1, 1, 2, 3]) if count > 3 else 0)
        words = draw.choices(FILLER, k=draw.randint(2, 7))
        content = " ".join([*words, *(f"near {one}" for one in mentioned)])
        items.append(page(f"d{row}", content, title))
    return items


def questions(items: list[SearchableItem], count: int, seed: int = 1) -> list[str]:
    """Questions of one to four common words; every third names a title too."""
    draw = random.Random(seed)
    asked = []
    for number in range(count):
        words = draw.choices(FILLER, k=draw.randint(1, 4))
        asked.append(" ".join([*words, *([draw.choice(items).title] if number % 3 == 0 else [])]))
    return asked
