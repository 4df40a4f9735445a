"""A language model that reads by a rule: the first word of a passage is a person, who is in the last one, a place."""

from __future__ import annotations

import json
from typing import Any

from chat_server import asked, fields

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.systems.hipporag.knowledge import PassageKnowledge, Triple

Entry = dict[str, Any]


def passages_in(body: dict[str, Any]) -> dict[str, str]:
    """The passages of a request by their numbers."""
    lines = asked(body, "passages").splitlines()
    return {number: text for number, _, text in (line.partition(": ") for line in lines)}


def entry_of(passage: str) -> Entry:
    """What the rule says of one passage."""
    words = passage.split()
    return {"entities": [[words[0], "person"], [words[-1], "place"]], "triples": [[words[0], "is in", words[-1]]]}


def by_the_rule(body: dict[str, Any]) -> str:
    """The reply of the model."""
    return fields(knowledge=json.dumps({number: entry_of(text) for number, text in passages_in(body).items()}))


def knowledge_of(item: SearchableItem) -> PassageKnowledge:
    """What the rule says of an item without a title."""
    words = item.content.split()
    return PassageKnowledge((words[0], words[-1]), (Triple(words[0], "is in", words[-1]),))


def corpus(number: int) -> list[SearchableItem]:
    """Passages that share a few places."""
    return [SearchableItem(item_id=f"d{one}", content=f"Name{one} was born in Place{one % 7}") for one in range(number)]
