"""Optimising claim decomposition: ``python -m bench.hover.optimize DATA MODEL BASE_URL`` writes ``bench/OPTIMIZE.md``.

A program is compiled on two-hop claims whose families have no deeper claim, and judged on the claims of three and four
hops, one of each family, which it never saw; then it is saved, loaded, and has to find the very same documents again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.common import Data
from bench.sweeps import configured, language_model, read_sweep, run, script
from bench.writing import page
from nlp_retrieval import BeirLoader, Bm25Retriever, LanguageModel, read_run_folder
from nlp_retrieval.systems.hover.compiling import hover_examples, optimize, recall, split_by_family
from nlp_retrieval.systems.hover.programs import HoverMultiHopPipeline

_HERE = Path(__file__).parent
_CLAIMS, _BUDGET, _MAX_CALLS, _PROPOSAL_TOKENS, _SEED = 20, 40, 200, 400, 0


def _measured(data: Data, arguments: list[str]) -> str:
    model, base_url = arguments
    folder = data.work / "optimize"
    folder.mkdir(exist_ok=True)
    output, index, unseen = folder / "decomposition.json", data.work / "wiki-index", folder / "claims.json"
    deep = list({example.family: example for example in hover_examples(data.claims, (3, 4))}.values())
    apart, kept = ({getattr(example, key) for example in deep} for key in ("family", "query_id"))
    unseen.write_text(json.dumps([one for one in json.loads(data.claims.read_text("utf-8")) if one["uid"] in kept]), "utf-8")
    claims = [example for example in hover_examples(data.claims, (2,)) if example.family not in apart][:_CLAIMS]
    train, validation = split_by_family(claims, seed=_SEED)
    lm = LanguageModel(**language_model(data, model, base_url, max_calls=_MAX_CALLS))
    proposing = {"max_tokens": _PROPOSAL_TOKENS, "temperature": 1.0}
    program = HoverMultiHopPipeline([Bm25Retriever()], lm, keep_query=False)
    program.index(BeirLoader(str(data.corpus)), index)
    begin = time.perf_counter()
    report = optimize(
        program,
        train,
        validation=validation,
        metric=recall,
        budget=_BUDGET,
        prompt_lm=LanguageModel(**language_model(data, model, base_url, max_calls=_MAX_CALLS, **proposing)),
        seed=_SEED,
        output=output,
        on_progress=lambda said: print(said, flush=True),
    )
    minutes = (time.perf_counter() - begin) / 60
    values = {"corpus": str(data.corpus), "claims": str(unseen), "index": str(index), "program": str(output)}
    settings = read_sweep(_HERE / "optimize.yaml", **values, lm=language_model(data, model, base_url))
    figures = run(configured(settings, folder), folder)
    costs = [result.cost.language_model for result in figures.results.values() if result.cost]
    lists = read_run_folder(folder).lists.rankings("compiled")
    spent = lm.counts.calls
    # equal prompts find the answers kept; one other word, and the model is asked again
    again = [[one.item.item_id for one in report.program(claim=example.claim).results] for example in deep]
    ranked = dict(zip(read_run_folder(folder).lists.query_ids, lists, strict=True))
    (predictor,) = (one for _, one in report.program.named_predictors())
    return page(
        (_HERE / "optimize.md").read_text("utf-8"),
        model=model,
        budget=_BUDGET,
        n_train=len(train),
        n_validation=len(validation),
        runs=report.runs,
        counts=report.counts,
        minutes=f"{minutes:.0f}",
        max_calls=_MAX_CALLS,
        before=f"{report.before:.3f}",
        after=f"{report.after:.3f}",
        n_deep=len(deep),
        asked=f"{sum(cost.calls for cost in costs if cost)} calls, {sum(cost.degraded for cost in costs if cost)} degraded",
        plain=figures.cell("plain", "recall@21"),
        compiled=figures.cell("compiled", "recall@21"),
        difference=figures.gain("compiled", "plain", "recall@21", bold=False),
        equal=sum([item_id for item_id, _ in ranked[one.query_id]] == ids for one, ids in zip(deep, again, strict=True)),
        moved=lm.counts.calls - spent,
        n_demos=len(predictor.demos),
        instruction="> " + " ".join(predictor.signature.instructions.split()),
    )


if __name__ == "__main__":
    sys.exit(script("bench.hover.optimize DATA MODEL BASE_URL", [2], _HERE.parent / "OPTIMIZE.md", _measured))
