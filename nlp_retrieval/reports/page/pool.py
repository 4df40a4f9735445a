"""What the report says of the pool: who finds which gold, and what nobody finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nlp_retrieval.evaluation.pool import GoldDocument, PoolCutoff, PoolReport
from nlp_retrieval.reports.columns import signed
from nlp_retrieval.reports.page.text import counted, escaped, isolated, listed

_EXAMPLES = 50
_EXAMPLES_OF_ONE = 20
_READ = """Recall of all together is that of an oracle: what a perfect choice from the union of the lists would find. A list
adds the recall that the union loses without it, and finds alone what is in no other list; lists that are alike add little,
however good they are. Documents are items, so where gold is a title that several items carry, recall is not that of the
first table."""


def pool_tables(pools: Mapping[str, PoolReport], texts: Mapping[str, str]) -> str:
    """Return a table for each kind of source, with examples of what nobody finds and of what only one does.

    Args:
        pools: by what the sources are: ``"configuration"``, ``"retriever"``.
        texts: of the queries, by id.
    """
    judged = {kind: pool for kind, pool in pools.items() if pool.gold}
    tables = "\n".join(_pool(kind, pool, texts) for kind, pool in judged.items())
    return f'{tables}<p class="note">{_READ}</p>' if judged else ""


def _pool(kind: str, pool: PoolReport, texts: Mapping[str, str]) -> str:
    largest = pool.cutoffs[-1]
    heads = "".join(
        f'<th scope="colgroup" class="family" colspan="3"><span>first {cutoff.k:,}</span></th>' for cutoff in pool.cutoffs
    )
    columns = '<th scope="col" class="first">recall</th><th scope="col">adds</th><th scope="col">only it</th>' * len(
        pool.cutoffs
    )
    rows = "\n".join(_row(source, pool.cutoffs) for source in largest.shares)
    union = "".join(f'<td class="first">{_figure(one.recall)}</td><td></td><td></td>' for one in pool.cutoffs)
    perfect = "".join(f'<td class="first">{_figure(one.perfect_recall)}</td><td></td><td></td>' for one in pool.cutoffs)
    nobody = "".join(
        f'<td class="first"><data value="{one.unfound}">{one.unfound:,}</data></td><td></td><td></td>' for one in pool.cutoffs
    )
    many = len(largest.shares)
    together = f"all {many} together" if many > 1 else "alone"
    identifier = f"pool-{kind}"
    return f"""<h3 id="{identifier}">Who finds the gold: {counted(many, kind)}</h3>
<p class="note">{counted(pool.gold, "gold document")} of {counted(pool.queries, "query", "queries")}.</p>
<div class="scroll" role="region" aria-labelledby="{identifier}" tabindex="0"><table class="pool">
<thead><tr><th scope="col" rowspan="2" class="name">{escaped(kind.capitalize())}</th>{heads}</tr><tr>{columns}</tr></thead>
<tbody><tr><th scope="row" class="name">{together}</th>{union}</tr>
<tr><th scope="row" class="name">{together}, perfect recall</th>{perfect}</tr>
<tr><th scope="row" class="name">gold that nobody finds</th>{nobody}</tr></tbody>
<tbody>{rows}</tbody></table></div>
{_unfound(pool, texts)}{_alone(kind, pool, texts)}"""


def _row(source: str, cutoffs: Sequence[PoolCutoff]) -> str:
    cells = "".join(
        f'<td class="first">{_figure(share.recall)}</td><td><data value="{share.adds!r}">{signed(share.adds)}</data></td>'
        f'<td><data value="{share.only}">{share.only:,}</data></td>'
        for share in (cutoff.shares[source] for cutoff in cutoffs)
    )
    return f'<tr><th scope="row" class="name">{isolated(source)}</th>{cells}</tr>'


def _figure(value: float) -> str:
    return f'<data value="{value!r}">{value:.3f}</data>'


def _unfound(pool: PoolReport, texts: Mapping[str, str]) -> str:
    k = pool.cutoffs[-1].k
    if not pool.unfound:
        return f'<p class="note">Every gold document is in somebody\'s first {k:,}.</p>'
    share = len(pool.unfound) / pool.gold
    head = f"{counted(len(pool.unfound), 'gold document')} ({share:.1%}) that nobody finds in the first {k:,}"
    return f"<details><summary>{head}</summary>{_examples(pool.unfound, texts, _EXAMPLES)}</details>"


def _alone(kind: str, pool: PoolReport, texts: Mapping[str, str]) -> str:
    if len(pool.only) < 2:
        return ""
    said = "".join(
        f"<li>only {isolated(source)}: {counted(len(found), 'gold document')}{_examples(found, texts, _EXAMPLES_OF_ONE)}</li>"
        for source, found in pool.only.items()
        if found
    )
    total = counted(sum(map(len, pool.only.values())), "gold document")
    head = f"{total} that only one {escaped(kind)} finds in the first {pool.cutoffs[-1].k:,}"
    return f'<details><summary>{head}</summary><ul class="examples">{said}</ul></details>' if said else ""


def _examples(found: Sequence[GoldDocument], texts: Mapping[str, str], most: int) -> str:
    """Return the first of them by query."""
    by_query: dict[str, list[GoldDocument]] = {}
    for one in found[:most]:
        by_query.setdefault(one.query_id, []).append(one)
    said = "".join(
        f'<li>{isolated(texts[query_id])} <small class="tag">{escaped(query_id)}</small>: '
        f"{listed([f'<strong>{isolated(one.title or one.item_id)}</strong>' for one in documents])}</li>"
        for query_id, documents in by_query.items()
    )
    more = f'<p class="note">The first {most} of {len(found):,}.</p>' if len(found) > most else ""
    return f'<ul class="examples">{said}</ul>{more}'
