"""``bench/MULTIHOP.md``, from what ``bench.multihop`` measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bench.haystack import COPIES
from bench.multihop_study import Study
from bench.multihop_systems import (
    ABLATED,
    ABLATIONS,
    DEFAULT,
    HAYSTACKS,
    HOVER,
    NAMES,
    OUT_OF_FOLD,
    OWN_FOLDS,
    QUESTIONS,
    REFITTED,
)
from bench.writing import document, machine, words
from nlp_retrieval.evaluation.bootstrap import family_numbers
from nlp_retrieval.pipelines.link_graph_tuning import TuningReport


def report(study: Study, full: TuningReport) -> str:
    """The whole document."""
    parts = [_head(study), _data(study, full), _quality(study), _significance(study), _ablations(study), _crowding(study)]
    return "\n\n".join(parts) + "\n"


def _head(study: Study) -> str:
    return document(
        "# Multi-hop retrieval without a language model",
        """What `LinkGraphRetriever` finds where one passage is not enough, against its own seeds (BM25, dense retrieval) and
        their fusion; what its parts are worth; and what ten times as many passages do to it.""",
        f"""- Written by `python -m bench.multihop DATA` on {datetime.now(UTC):%Y-%m-%d}, in {study.seconds / 60:.0f} minutes
        on a machine that others share, indexes there already.""",
        f"- {machine()}.",
        """- Brackets hold 95% intervals over families ([Statistics](../docs/BENCHMARKING.md#statistics)). Claims that were
        written from one question (`hpqa_id`) are a family; each HotpotQA and MuSiQue question is its own.""",
    )


def _data(study: Study, full: TuningReport) -> str:
    sets = study.wiki.sets | study.musique.sets
    counts = {name: f"{len(judged.queries):,}" for name, judged in sets.items()}
    sizes = {name: f"{counts[name]} | {int(family_numbers(judged.families).max()) + 1:,}" for name, judged in sets.items()}
    weights = ", ".join(f"{kind} {weight:.2f}" for kind, weight in full.weights.items())
    n_hotpot, n_left = counts["hotpotqa"], study.n_questions - len(sets["hotpotqa"].queries)
    n_deeper = study.n_claims - len(sets["hover2"].queries) - len(sets["hover3"].queries)
    table = [
        "| set | queries | families | passages | gold |",
        "|---|---|---|---|---|",
        f"| HoVer, 2 hops | {sizes['hover2']} | {len(study.wiki.ids):,} Wikipedia introductions | supporting titles |",
        f"| HoVer, 3 hops | {sizes['hover3']} | the same | supporting titles |",
        f"| HotpotQA | {sizes['hotpotqa']} | the same | supporting passages |",
        f"| MuSiQue | {sizes['musique']} | {len(study.musique.ids):,} paragraphs | supporting paragraphs |",
    ]
    return document(
        "## Data",
        table,
        f"""HoVer: claims of the dev release whose gold is all in the corpus; its {n_deeper} claims of 4 hops are too few to
        judge. The collections are samples, and figures do not compare with published ones over all 5 million introductions.""",
        f"""**Leakage.** {n_left} of {study.n_questions:,} HotpotQA questions are those from which HoVer claims of this set were
        written. They are left out everywhere. Weights were fitted to the other {n_hotpot}, starting from weights that know
        nothing (1 for PageRank, 0 for all else). HotpotQA is ranked in 5 folds, each by weights that it had no part in. HoVer
        and MuSiQue are ranked by the weights of all {n_hotpot}: no claim of HoVer and no question of MuSiQue had a part in
        them. **Not out of fold** is whatever is no weight: which links and which kinds of evidence there are, depth, damping,
        the power of the seeds and the size of the pool were chosen by hand, in trials on these same collections.""",
        f"The weights that all {n_hotpot} gave: {weights}.",
    )


def _quality(study: Study) -> str:
    tables: list[str | list[str]] = []
    for name, measures in (("hover2", HOVER), ("hover3", HOVER), ("hotpotqa", QUESTIONS), ("musique", QUESTIONS)):
        more = [OWN_FOLDS] if name == "musique" else []
        systems = ["BM25", "dense", "RRF of both", OUT_OF_FOLD, *more, DEFAULT]
        tables += [f"**{NAMES[name]}**", _table(study, systems, [(name, measure) for measure in measures])]
    reached = [f"{study.reached[OUT_OF_FOLD, name]:.1%} on {shown}" for name, shown in NAMES.items()]
    return document(
        "## Quality",
        """BM25: bm25s, k1 0.9, b 0.4, Porter. Dense: all-MiniLM-L6-v2, exact search. RRF: of 100 hits of each, k = 60. Perfect
        recall@k: the share of queries with *all* gold among the first k. "link graph" is out of fold, as said above.""",
        *tables,
        f"""The default weights are the fitted ones, rounded: on HotpotQA their row is in sample. On MuSiQue, "link graph" is a
        transfer: fitted to HotpotQA, over another corpus. Weights can only order what the walk brings into the pool of 60; of
        all gold that is {", ".join(reached)}.""",
    )


def _significance(study: Study) -> str:
    others = ("RRF of both", "no links, refitted", "links shuffled, refitted")
    table = ["| | minus RRF | minus no links, refitted | minus shuffled links, refitted |", "|---|---|---|---|"]
    for judged, measures in (("hover2", HOVER), ("hover3", HOVER), ("hotpotqa", QUESTIONS), ("musique", QUESTIONS)):
        for name in measures:
            found = [study.difference(OUT_OF_FOLD, other, judged, name) for other in others]
            cells = " | ".join(f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]" for gain, low, high in found)
            table.append(f"| {NAMES[judged]}, {words(name)} | {cells} |")
    return document(
        "## Differences",
        """Link graph (out of fold) minus another system, query by query. Nothing of RRF is fitted, so the fair comparisons are
        the second and the third: the same evidence, fitted in the same way, without links or with links that mean nothing.""",
        table,
    )


def _ablations(study: Study) -> str:
    systems = [OUT_OF_FOLD]
    for variant in ABLATIONS:
        systems += [variant.name] + [f"{variant.name}, refitted"] * variant.refit
    full, shuffled, refitted, without, fused = (
        f"{study.mean(system, 'hover3', 'perfect_recall@5'):.2f}"
        for system in (OUT_OF_FOLD, "links shuffled", "links shuffled, refitted", "no links, refitted", "RRF of both")
    )
    return document(
        "## What the parts are worth",
        """First with the weights of the full system; then, where leaving something out makes those weights wrong, refitted to
        HotpotQA in the same folds. **Bold**: differs from the full system (the paired interval is without 0).""",
        _table(study, systems, ABLATED, OUT_OF_FOLD),
        f"""- **Links shuffled** is the control: the same graph with its nodes renumbered at random, so that every passage has
        the links of another. On HoVer's 3 hops perfect recall@5 falls from {full} to {shuffled}, refitted to {refitted}.
        Without any link it is {without} (refitted), with RRF {fused}. What links are worth is the distance to the refitted
        rows; what lies between those and RRF is owed to fitting, to titles that the query names, and to terms that complement
        the foremost passage.""",
        """- Links act twice: the walk brings passages into the pool, and `chain` counts what linked candidates cover together.
        "No chain, no complement" leaves the walk and what each passage alone shows; "PageRank alone" leaves the walk.""",
        """- "No similarity in the score": dense retrieval stays a seed. "BM25 as only seed, no vectors": there is no model at
        all.""",
        """- "Exact" passes over the whole graph for each query; local PageRank approximates it.""",
    )


def _crowding(study: Study) -> str:
    columns = [("hover2", "perfect_recall@5"), *ABLATED[:2], ("hotpotqa", "recall@2"), ("hotpotqa", "recall@5")]
    systems: list[str] = []
    for system in ("BM25", "dense", "RRF of both", OUT_OF_FOLD):
        systems += [system, *(f"{system}, {size}" for size in HAYSTACKS)]
    systems += [f"{REFITTED}, {size}" for size in HAYSTACKS]
    sizes = list(study.graphs)
    facts = ["| graph | " + " | ".join(sizes) + " |", "|---|" + "---|" * len(sizes)]
    for what in study.graphs["1x"]:
        facts.append(f"| {what} | " + " | ".join(_number(study.graphs[size][what]) for size in sizes) + " |")
    for name in ("hover2", "hover3", "hotpotqa"):
        reached = [study.reached[OUT_OF_FOLD if size == "1x" else f"{OUT_OF_FOLD}, {size}", name] for size in sizes]
        facts.append(f"| gold in the pool of 60, {NAMES[name]} | " + " | ".join(f"{share:.1%}" for share in reached) + " |")
    return document(
        "## Ten times the haystack",
        f"""{study.graphs[sizes[1]]["passages"]:,.0f} passages: the collection and {COPIES} distractors for each of its passages
        (`bench/haystack.py`). The text of a distractor is half of one passage and half of another, so that all that is said is
        said ten times. With **shared names** a distractor has a real passage's name ("Heat (1995 film, note 3)" for "Heat (1995
        film)"), so that every mention may mean ten passages; with **own names** nothing mentions it.""",
        """**What is approximated**: the vectors of distractors. They are the mean of the vectors of the two passages, scaled to
        length 1, instead of an encoding of the text; the name has no part in it. Dense figures at 10x are estimates, and so is
        what builds on them. And the texts are harsher than a real corpus of that size: no encyclopedia says everything ten
        times, nine of them of the wrong thing.""",
        _table(study, systems, columns),
        facts,
        *_reading(study),
    )


def _reading(study: Study) -> list[str]:
    """What the figures at 10x say."""
    own, shared = HAYSTACKS

    def over_sizes(system: str, judged: str, name: str) -> str:
        sizes = (f"{system}, {own}", f"{system}, {shared}")
        return ", ".join(f"{study.mean(one, judged, name):.2f}" for one in ((system,) if system != REFITTED else ()) + sizes)

    deep, wide = ("hover3", "perfect_recall@5"), ("hotpotqa", "recall@5")
    return [
        f"""- The crowd of texts hits what the walk starts from. RRF, at 1x and with own and shared names at 10x: HoVer, 3 hops,
        perfect recall@5 {over_sizes("RRF of both", *deep)}; HotpotQA, recall@5 {over_sizes("RRF of both", *wide)}.""",
        f"""- The link graph falls too: {over_sizes(OUT_OF_FOLD, *deep)}, and {over_sizes(OUT_OF_FOLD, *wide)}. BM25 and
        dense retrieval hardly tell own from shared names, so the second step is what ambiguous names do to links, and to titles
        that the query names.""",
        f"""- Weights that were fitted at one size do not suit a crowd. Fitted again, with own and shared names:
        {over_sizes(REFITTED, *deep)}, and {over_sizes(REFITTED, *wide)}. Most gold is still in the pool; what is lost is
        lost mostly in its order.""",
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _table(study: Study, systems: Sequence[str], columns: Sequence[tuple[str, str]], against: str | None = None) -> list[str]:
    several = len({judged for judged, _ in columns}) > 1
    heads = [f"{NAMES[judged]}, {words(name)}" if several else words(name) for judged, name in columns]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(columns)]
    return lines + [f"| {system} | {_cells(study, system, columns, against)} |" for system in systems]


def _cells(study: Study, system: str, columns: Sequence[tuple[str, str]], against: str | None = None) -> str:
    return " | ".join(study.cell(system, judged, name, against) for judged, name in columns)
