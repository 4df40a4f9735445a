"""The texts of what the explorer of the page shows, in a block beside its lists: each once, and opened after them.

Where they would be larger than the page may be, all are cut to a shorter beginning; where not even short ones fit, there are
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.evaluation.rankings import LONGEST_TEXT, RunLists
from nlp_retrieval.reports.page.explorer_data import packed
from nlp_retrieval.reports.snippets import common_words
from nlp_retrieval.text.printable import visible

MOST = 2_500_000
"""Characters of the block."""

_LENGTHS = (LONGEST_TEXT, 1200, 600, 300)


@dataclass(frozen=True)
class PassageBlock:
    """The texts.

    Args:
        text: base64 of the deflated JSON: texts in the order of the items, and words too common to be marked.
        longest: how many characters of each text it holds at most.
    """

    text: str
    longest: int

    @property
    def is_cut(self) -> bool:
        """Whether texts are cut shorter than they were kept."""
        return self.longest < LONGEST_TEXT


def passages_block(lists: RunLists, items: Sequence[str], room: int) -> PassageBlock | None:
    """Return the texts, as long as fits; None where none are known, or not even their beginnings fit.

    Args:
        lists: of a run.
        items: the ids of the items that are shown, in order.
        room: how many characters the page has left.
    """
    whole = [visible(lists.passages.get(item, "")).strip() for item in items]
    if not any(whole):
        return None
    common = sorted(common_words([text for text in whole if text], lists.texts))
    for longest in _LENGTHS:
        texts = [text if len(text) <= longest else f"{text[: longest - 2]} …" for text in whole]
        block = packed({"texts": texts, "common": common, "longest": longest})
        if len(block) <= min(room, MOST):
            return PassageBlock(block, longest)
    return None
