"""Sentences of an item are those that its source counts; starts that cannot be are not believed."""

from __future__ import annotations

import pytest

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.sentences import item_sentence_spans


def spans(content, starts=None):
    metadata = {} if starts is None else {"sentence_starts": starts}
    return item_sentence_spans(SearchableItem(item_id="a", content=content, metadata=metadata))


def test_starts_in_the_metadata_decide():
    assert spans("One. two three.", [0, 4, 4, 8]) == [(0, 4), (4, 4), (4, 8), (8, 15)]
    assert spans("", [0, 0]) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("starts", [[1], [0, 99], [0, -1], "0"])
def test_starts_that_cannot_be_are_not_believed(starts):
    assert spans("One is. Two is.", starts) == [(0, 7), (8, 15)] == spans("One is. Two is.")
