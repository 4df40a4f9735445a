"""Labels in charts are short, and different where names are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.reports.page.charts import DOTS, LONGEST, labels_of_names

PARTS = st.sampled_from(["bm25", "dense", "rrf", "reranked", "k1=0.9", "k1=1.2", "encoder", "ünïcode", "x" * 30, "y" * 30])
NAMES = st.one_of(
    st.lists(st.lists(PARTS, min_size=1, max_size=9).map("-".join), unique=True, max_size=12),
    st.lists(st.text("ab-", max_size=60), unique=True, max_size=12),
)


@given(NAMES)
def test_different_names_have_different_labels_that_are_short(names: list[str]) -> None:
    labels = labels_of_names(names)
    assert len(set(labels)) == len(names)
    assert all(len(label) <= LONGEST + len(f" {len(names)}") for label in labels)
    assert all(label == name for label, name in zip(labels, names, strict=True) if len(name) <= LONGEST)


def test_what_names_have_in_common_gives_way_to_dots() -> None:
    shared = "hybrid_of_bm25_and_dense/reciprocal_rank_fusion"
    labels = labels_of_names([f"{shared}/k=10", f"{shared}/k=60"])
    assert [label.rpartition(DOTS)[2] for label in labels] == ["10", "60"]
    early = [f"k={k}, a reranker with a very long name at depth 100" for k in (10, 60)]
    assert [label.partition(DOTS)[0] for label in labels_of_names(early)] == ["k=10", "k=60"]


def test_one_long_name_is_cut_in_its_middle() -> None:
    (label,) = labels_of_names(["a" * 40 + "b" * 40])
    assert len(label) == LONGEST
    assert label.startswith("aaaa")
    assert label.endswith("bbbb")
    assert DOTS in label
