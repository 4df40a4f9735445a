"""A filter that is too much of something is refused before it costs memory, and every refusal can be written down."""

from __future__ import annotations

from typing import Any

import pytest

from nlp_retrieval.core.filters import parse_filter
from nlp_retrieval.errors import QueryError

HUGE = 10**5000


def nested(depth: int, *, lists: bool) -> Any:
    """Values inside each other, made without recursion."""
    made: Any = {"a": 1}
    for _ in range(depth):
        made = [made] if lists else {"not": made}
    return made


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"or": [{"a": 1}] * 1001}, "where: 1,001 conditions are too many; at most 1,000"),
        ({"a": HUGE}, "where.a: a number of 16,610 bits is too large to compare with"),
        (nested(65, lists=False), "more than 64 filters inside each other"),
        ({"a": nested(100_000, lists=True)}, "where.a: expected a text, a number or a truth value, found list"),
    ],
)
def test_too_much_is_refused(where: Any, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_filter(where)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 800
