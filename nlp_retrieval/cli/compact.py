"""``nlp-retrieval compact``: compact an updated index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.trusting import Trust

NAME = "compact"


def command(index: Annotated[Path, typer.Argument(help="An index directory.")], trust: Trust = False) -> None:
    """Compact an updated index, as if it had been built at once.

    Joins segments and drops deleted items. Updates do this themselves when there is much to do; it is never
    required.
    """
    from nlp_retrieval.core.index.update import compact_index
    from nlp_retrieval.core.search.base_searcher import resolver

    report = compact_index(index, resolver(trust=trust))
    say(f"{report.n_items:,} items in {index} ({report.seconds:.1f} s)")
