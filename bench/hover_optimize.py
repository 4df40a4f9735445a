"""Optimising claim decomposition: ``python -m bench.hover_optimize DATA MODEL BASE_URL`` writes ``bench/OPTIMIZE.md``.

A program is compiled on two-hop claims whose families have no deeper claim, and judged on the claims of three and four
hops, one of each family, which it never saw; then it is saved, loaded, and has to find the very same documents again.
"""

from __future__ import annotations

import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Data
from bench.hover import language_model
from bench.writing import document, machine, shown
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.evaluation.bootstrap import bootstrap_interval
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.loaders.beir import BeirLoader
from nlp_retrieval.pipelines.hover.decomposing import HoverMultiHopPipeline
from nlp_retrieval.pipelines.hover.evaluation import recall
from nlp_retrieval.pipelines.hover.examples import hover_examples, split_by_family
from nlp_retrieval.pipelines.hover.optimize import optimize
from nlp_retrieval.retrievers.bm25s.retriever import Bm25sRetriever

_CLAIMS = 20
_BUDGET = 40
_MAX_CALLS = 200
_PROPOSAL_TOKENS = 400
_SEED = 0


def main(arguments: list[str]) -> int:
    """Measure and write."""
    if len(arguments) != 3 or not (Path(arguments[0]) / "wiki" / "hover").is_dir():
        print("usage: python -m bench.hover_optimize DATA MODEL BASE_URL   (DATA holds wiki/)")
        return 2
    data = Data(Path(arguments[0]).absolute(), Path(__file__).parent / ".work")
    data.work.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    try:
        (Path(__file__).parent / "OPTIMIZE.md").write_text(_measured(data, arguments[1], arguments[2]))
    except RetrievalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _measured(data: Data, model: str, base_url: str) -> str:
    source = data.root / "wiki" / "hover" / "hover_dev_subset.json"
    deeper = hover_examples(source, (3, 4))
    apart = {example.family for example in deeper}
    deep = list({example.family: example for example in deeper}.values())
    claims = [example for example in hover_examples(source, (2,)) if example.family not in apart][:_CLAIMS]
    train, validation = split_by_family(claims, seed=_SEED)
    index = data.work / "wiki-lexical-index"
    Searcher([Bm25sRetriever()]).index(BeirLoader(str(data.corpus)), index)
    program = _pipeline(language_model(data, model, base_url, _MAX_CALLS), index)
    output = data.work / "decomposition.json"
    begin = time.perf_counter()
    proposer = language_model(data, model, base_url, _MAX_CALLS, max_tokens=_PROPOSAL_TOKENS, temperature=1.0)
    report = optimize(
        program,
        train,
        validation=validation,
        metric=recall,
        budget=_BUDGET,
        prompt_lm=proposer,
        seed=_SEED,
        output=output,
        on_progress=_tell,
    )
    seconds = time.perf_counter() - begin
    judge = language_model(data, model, base_url)
    plain = _run(_pipeline(judge, index), deep)
    loaded = _run(_pipeline(judge, index, output), deep)
    asked, spent = judge.counts, program.language_model.counts
    compiled = _run(report.program, deep)  # equal prompts find the answers kept; one other word, and the model is asked again
    equal = sum(one == other for (_, one), (_, other) in zip(compiled, loaded, strict=True))
    moved = program.language_model.counts - spent
    families = [example.family for example in deep]
    values = {
        name: np.array([recall(example, found) for example, (found, _) in zip(deep, runs, strict=True)])
        for name, runs in (("plain", plain), ("compiled", compiled))
    }
    low, high = bootstrap_interval(values["compiled"] - values["plain"], families, bounds=(-1, 1))
    gain = float((values["compiled"] - values["plain"]).mean())
    (predictor,) = [one for _, one in report.program.named_predictors()]
    return (
        document(
            "# Optimising claim decomposition",
            f"""- Written by `python -m bench.hover_optimize DATA MODEL BASE_URL` on {datetime.now(UTC):%Y-%m-%d};
        {machine()}. The model is {model}.""",
            f"""- `HoverMultiHopPipeline` over BM25, phrases alone, MIPROv2, about {_BUDGET} runs: {len(train)} claims of two
        hops to draw demonstrations from, {len(validation)} to choose by, no family of which has a deeper claim.
        {report.runs} runs and {report.counts} in {seconds / 60:.0f} minutes (at most {_MAX_CALLS} calls).""",
            f"""- Recall@21 on the {len(validation)} claims chosen by: {report.before:.3f} before, {report.after:.3f} after: the
        best of several on these very claims.""",
            f"""- Recall@21 on the {len(deep)} claims of three and four hops, one of each family,
        which had no part in it ({asked}): plain
        {shown(values["plain"], families, bounds=(-1, 1))}, compiled
        {shown(values["compiled"], families)}; difference {gain:+.3f} [{low:+.3f}, {high:+.3f}], over families.""",
            f"""- Saved, loaded, and run again: {equal} of {len(deep)} claims with the same phrases and documents; {moved.calls}
            questions were worded otherwise.""",
            f"- The compiled program has {len(predictor.demos)} demonstrations, and this instruction:",
            "> " + " ".join(predictor.signature.instructions.split()),
        )
        + "\n"
    )


def _pipeline(model: LanguageModel, index: Path, program: Path | None = None) -> HoverMultiHopPipeline:
    """Phrases alone, so that what is measured is what they find."""
    return HoverMultiHopPipeline([Bm25sRetriever()], model, keep_query=False, program=program).open(index)


def _run(program: Any, examples: list[Any]) -> list[tuple[Any, list[str]]]:
    found = []
    for example in examples:
        prediction = program(claim=example.claim)
        found.append((prediction, [*prediction.phrases, *prediction.retrieved_docs]))
    return found


def _tell(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
