"""Hypothesis strategies in one place."""

from __future__ import annotations

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Valid Unicode: no lone surrogates."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63)])
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def metadata():
    """Metadata as loaders give it: a few keys that many items share, and any JSON values."""
    keys = st.sampled_from(["title", "year", "tags", "", "metadata.", "item_id", "ключ"]) | texts
    return st.dictionaries(keys, values, max_size=4)
