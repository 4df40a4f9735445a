"""The part of the report that shows why rankings differ: who finds the gold, and any two lists of any query side by side.

The lists stand in a block of data that the page's own script opens. What the block holds is shown as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Mapping

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.changed_queries import measured
from nlp_retrieval.evaluation.pool import Ranks, gold_ranks, pool_report
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.page.explorer_data import Block, explorer_block
from nlp_retrieval.reports.page.pool import pool_tables
from nlp_retrieval.reports.page.text import counted, escaped

DATA = "explorer-data"

_READ = """Open a hit for its signals. The rank by a signal is the retriever's own where it gave one, else that among the
hits of the list shown. Signals are matched by name. They say where a score came from; that one changed together with the
rank does not make it the cause."""


def explorer_section(
    report: BenchmarkReport,
    lists: RunLists | None,
    per_query: Mapping[str, Mapping[str, Scores]] | None,
    retrievers: Mapping[str, Ranks],
    room: int,
) -> str:
    """Return the section; empty where there are no lists.

    Args:
        report: a finished benchmark.
        lists: what its configurations found.
        per_query: ``[queries]`` by configuration and measure; None: measured from the lists, gold counted by items.
        retrievers: the ranks of gold documents by retriever; empty where they are not known.
        room: how many characters the section may have.
    """
    if lists is None or not lists.listings or not lists.query_ids or not report.k_values:
        return ""
    configurations = {name: gold_ranks(lists, listing) for name, listing in lists.listings.items()}
    pools = {"configuration": pool_report(lists, configurations, report.k_values)}
    if retrievers:
        pools["retriever"] = pool_report(lists, retrievers, report.k_values)
    tables = pool_tables(pools, dict(zip(lists.query_ids, lists.texts, strict=True)))
    head = '<section aria-labelledby="why"><h2 id="why">Why rankings differ</h2>'
    if len(lists.listings) < 2:
        return f"{head}{tables}</section>"
    values = per_query if per_query is not None else measured(lists, lists.listings, report.k_values)
    left = room - len((head + _shell(_EMPTY, report, _READ) + tables).encode())
    block = explorer_block(lists, values, report.k_values, left)
    if block is None:
        return (
            f'{head}<h3>Query by query</h3><p class="note">{counted(len(lists.query_ids), "query", "queries")} of '
            f"{counted(len(lists.listings), 'configuration')} are too many for a page; <code>nlp-retrieval explain</code> "
            f"shows any two lists.</p>{tables}</section>"
        )
    if not any(listing.signals for listing in lists.listings.values()):
        signals = "These lists came without signals."
    else:
        signals = _READ if block.has_signals else "The signals of so many lists have no room in the page."
    if block.queries < len(lists.query_ids):
        signals += (
            f" Of {counted(len(lists.query_ids), 'query', 'queries')} the page has room for {block.queries:,}: those in which "
            "recall at the largest cutoff differs most between configurations."
        )
    return f"{head}{_shell(block, report, signals)}{tables}</section>"


_EMPTY = Block("", 0, has_signals=False, queries=0)


def _shell(block: Block, report: BenchmarkReport, signals: str) -> str:
    """What the script fills."""
    cut = f"Lists are shown to rank {block.depth:,} of {max(report.k_values):,}. " if block.depth < max(report.k_values) else ""
    return f"""<h3 id="explorer-title">Query by query</h3>
<p class="note" id="explorer-note" role="status">The lists of every query are opened by the page's script.</p>
<div id="explorer" hidden data-baseline="{escaped(report.baseline)}">
<div class="controls"><label class="groups">From <select id="explorer-one"></select></label>
<button type="button" id="explorer-swap">Swap</button>
<label class="groups">to <select id="explorer-other"></select></label>
<label class="groups">first <select id="explorer-cutoff"></select></label></div>
<div class="explorer">
<div class="finder"><div class="controls"><label class="groups">Order <select id="explorer-order">
<option value="change">largest change first</option><option value="gain">gains first</option>
<option value="loss">losses first</option><option value="run">as in the run</option></select></label>
<label class="groups">of <select id="explorer-measure"></select></label>
<label class="groups" hidden>Queries <select id="explorer-group"></select></label></div>
<input type="search" id="explorer-search" placeholder="Find a query" aria-label="Find a query" role="combobox"
 aria-expanded="true" aria-controls="explorer-queries" aria-autocomplete="list" autocomplete="off" spellcheck="false">
<p class="note" id="explorer-count" role="status"></p>
<ul id="explorer-queries" role="listbox" tabindex="0" aria-label="Queries"></ul></div>
<div id="explorer-shown" class="shown"></div></div>
<p class="note">{cut}{signals}</p></div>
<script type="application/octet-stream" id="{DATA}">{block.text}</script>"""
