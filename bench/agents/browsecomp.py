"""Public run files of BrowseComp-Plus, read: ``python -m bench.agents.browsecomp FOLDER [QRELS]``.

The authors' script (``evaluate_run.py``) takes recall over ``retrieved_docids``. For each file this prints whether the union of
the trajectory is that list; with ``QRELS`` (TREC) also both mean recalls.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nlp_retrieval.agents import evaluate_trajectories, read_trajectories
from nlp_retrieval.benchmarks.evaluate import read_gold


def main(folder: str, qrels: str | None = None) -> None:
    """Compare, file by file."""
    rows = [json.loads(file.read_text("utf-8")) for file in sorted(Path(folder).glob("*.json"))]
    listed = {str(row["query_id"]): set(map(str, row["retrieved_docids"])) for row in rows}
    trajectories = read_trajectories(folder, agent="public")
    same = sum(set(each.seen()) == listed[each.question_id] for each in trajectories)
    searches = {str(row["query_id"]): row["tool_call_counts"].get("search") for row in rows}
    counted = sum(len(each.searches) == searches[each.question_id] for each in trajectories)
    print(f"{len(trajectories)} run files; the union is their list in {same}, the number of searches is theirs in {counted}")
    if qrels:
        gold = {each.query_id: set(each.relevance) for each in read_gold(qrels) if each.query_id in listed}
        theirs = [len(listed[query] & items) / len(items) for query, items in gold.items()]
        ours = evaluate_trajectories(trajectories, {query: sorted(items) for query, items in gold.items()})
        print(f"recall {ours.means('public')['recall']:.4f}; theirs {sum(theirs) / len(theirs):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
