"""``bench/HOVER.md``, from what ``bench.hover_study`` measured."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from bench.hover_study import FOLDS, PASSAGE_CHARACTERS, PERFECT, Measured, Study, paired
from bench.hover_systems import DEPTH
from bench.writing import document, machine, shown, words
from nlp_retrieval.evaluation.bootstrap import family_numbers

_FEWER = "perfect_recall@10"


def report(study: Study) -> str:
    """The whole document."""
    parts = [_head(study), _chosen(study), _table(study), _best(study)]
    if study.lm is not None:
        parts.append(_added(study))
    return "\n\n".join(parts) + "\n"


def _head(study: Study) -> str:
    counts = {hops: int((study.hops == hops).sum()) for hops in (2, 3, 4)}
    families = {hops: int(family_numbers(_families(study, hops)).max()) + 1 for hops in (2, 3)}
    return document(
        "# HoVer: retrievers, query processors and rerankers",
        """Which parts find *all* documents that a claim takes: lexical, dense and late-interaction retrieval, the link graph,
        sub-queries by rules and by a language model, multi-hop retrieval, each with and without a reranker.""",
        f"""- Written by `python -m bench.hover DATA CROSS_ENCODER{" MODEL BASE_URL WALKER" * (study.lm is not None)}` on
        {datetime.now(UTC):%Y-%m-%d}.""",
        f"- {machine()}.",
        f"""- {len(study.claims)} claims of HoVer's dev release whose gold is all in the corpus of {len(study.row_of):,}
        Wikipedia introductions: {counts[2]} of two hops ({families[2]} families), {counts[3]} of three ({families[3]}
        families), {counts[4]} of four, too few to judge. Claims written from one question (`hpqa_id`) are a family.""",
        """- Brackets hold 95% intervals over families ([Statistics](../docs/BENCHMARKING.md#statistics)). Perfect recall@k: the
        share of claims with *all* gold among the first k.""",
        f"""- BM25: bm25s, k1 0.9, b 0.4, Porter. Dense: all-MiniLM-L6-v2, exact search. **ColBERT and late interaction use no
        trained ColBERT**: they read MiniLM token by token, through a fixed random projection to 128 dimensions (4 bits in the
        index). The cross-encoder is a small BERT in 8 bits. Several retrievers are joined by reciprocal ranks (k = 60), of
        {DEPTH} candidates each; rerankers read all of them. The link graph has its default weights, fitted to HotpotQA
        questions of which none is the source of a claim here.""",
        *_model(study),
    )


def _model(study: Study) -> list[str]:
    if study.lm is None:
        return ["- No language model was given; rows that ask one are missing."]
    return [
        f"""- The language model is {study.lm.model} on a server of this machine, temperature 0, at most {study.lm.max_tokens}
        tokens an answer; the multi-hop program asks {study.walker.model if study.walker else ""} and shows it
        {PASSAGE_CHARACTERS} characters of each passage, because the machine reads some 50 tokens a second. Rows that ask
        a model are of the {int((study.hops > 2).sum())} claims of three and four hops."""
    ]


def _chosen(study: Study) -> str:
    blends = [
        f"{name}: " + ", ".join(f"{blend} {score:.3f}" for blend, score in scores.items())
        for name, scores in study.blends.items()
    ]
    policies = ["| sub-queries | two-hop claims |", "|---|---|"]
    policies += [f"| {policy} | {score:.3f} |" for policy, score in study.policies.items()]
    return document(
        "## What was chosen, and on what",
        f"""On the {int(study.choosing.sum())} two-hop claims that share no family with a deeper claim, by the mean of perfect
        recall@21 and recall@21 over two systems (BM25; BM25 + dense), and on nothing else:""",
        f"- how a reranker is joined with the ranking that it gets ({'; '.join(blends)});",
        """- what becomes of sub-queries, with phrases found by rules; the best of these is used for phrases by rules, phrases
        by the model and queries of the multi-hop program alike.""",
        policies,
        """`HoverMultiHopPipeline` has the numbers that it was designed with: depth 25, quota 7, phrases alone, overlap
        replacing the ranking.""",
    )


def _table(study: Study) -> str:
    lines = [
        "| candidates | reranker | 2 hops, perfect@21 | 2 hops, recall@21 | 3 hops, perfect@10 | 3 hops, perfect@21 | "
        "3 hops, recall@21 | 4 hops, complete | questions a claim | degraded |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in study.rows:
        asked = row.counts.calls + row.counts.cache_hits
        n = int((study.hops > 2).sum())
        cells = [
            row.system,
            row.reranker or "-",
            *(_cell(study, row, 2, name) for name in (PERFECT, "recall@21")),
            *(_cell(study, row, 3, name) for name in (_FEWER, PERFECT, "recall@21")),
            f"{int(row.values[PERFECT][study.hops == 4].sum())} of {int((study.hops == 4).sum())}",
            f"{asked / n:.1f}" if asked else "-",
            str(row.counts.degraded) if asked else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return document(
        "## All rows",
        lines,
        """A reranker behind `HoverMultiHop` reorders the 21 documents that the walk ended with, so that only figures below 21
        can move. "Degraded": questions without a usable answer; the claim was then searched as it is.""",
    )


def _best(study: Study) -> str:
    chosen = study.chosen_on_two_hops()
    values, names = study.chosen_in_folds(study.rows)
    families = _families(study, 3)
    picked = "; ".join(f"{name} ({names.count(name)} of {FOLDS})" for name in dict.fromkeys(names))
    return document(
        "## The best configuration, chosen elsewhere",
        f"""- Chosen on the two-hop claims (of the rows that need no language model): **{chosen.name}**; on three hops perfect
        recall@21 {_cell(study, chosen, 3, PERFECT)}, @10 {_cell(study, chosen, 3, _FEWER)}.""",
        f"""- Chosen on {FOLDS - 1} of {FOLDS} folds of the three-hop claims' families and judged on the fifth, of all rows:
        perfect recall@21 {shown(values[PERFECT], families)}, @10 {shown(values[_FEWER], families)}. Picked were {picked}.""",
        """The highest of so many rows, read off the rows themselves, is too high by what chance adds, and is not given.""",
    )


def _added(study: Study) -> str:
    bm25, graph = (next(row for row in study.rows if row.name == name) for name in ("BM25", "link graph"))
    lines = [
        "| | minus BM25, perfect@21 | minus link graph, perfect@21 | minus link graph, perfect@10 | gained / lost on BM25 |",
        "|---|---|---|---|---|",
    ]
    deep = study.hops == 3
    for row in study.rows:
        if row.asks:
            gains = [paired(row, bm25, PERFECT, study)]
            gains += [paired(row, graph, name, study) for name in (PERFECT, _FEWER)]
            moved = (row.values[PERFECT] - bm25.values[PERFECT])[deep]
            cells = [_gain(*gain) for gain in gains] + [f"{int((moved > 0).sum())} / {int((moved < 0).sum())}"]
            lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return document(
        "## What the language model adds",
        f"""Three hops, claim by claim, with intervals over families; **bold** where the interval is without 0.
        {words(PERFECT).capitalize()} of the link graph alone is {_cell(study, graph, 3, PERFECT)}, @10
        {_cell(study, graph, 3, _FEWER)}: where it is 1 nothing can be added.""",
        lines,
    )


def _gain(gain: float, low: float, high: float) -> str:
    text = f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _cell(study: Study, row: Measured, hops: int, name: str) -> str:
    values = row.values[name][study.hops == hops]
    return "-" if np.isnan(values).any() else shown(values, _families(study, hops))


def _families(study: Study, hops: int) -> list[str | None]:
    return [family for family, h in zip(study.families, study.hops, strict=True) if h == hops]
