"""A language model as a ReAct agent: ``python -m bench.agents.model DATA URL MINUTES`` keeps its trajectories for the page.

The questions are the same for every model, in an order drawn once; as many are asked as the minutes allow. A further call
goes on with the next question.
"""

from __future__ import annotations

import json
import sys
import time

from bench.agents.questions import QUESTIONS, collection
from bench.common import Data
from nlp_retrieval import LanguageModel, Searcher
from nlp_retrieval.agents import ReactAgent
from nlp_retrieval.lm import ModelEndpoint

STEPS, K = 4, 3
MOST = 30


def agent(data: Data, url: str) -> ReactAgent:
    """The agent; its trajectories are kept beside the index."""
    lm = LanguageModel("openai/local", base_url=url, max_tokens=120, endpoint=ModelEndpoint(timeout=600, calls_at_once=1))
    record = data.work / "agents" / "model.jsonl"
    return ReactAgent(Searcher(["bm25"]), lm, steps=STEPS, k=K, passage_characters=600, record=record)


def main(root: str, url: str, minutes: str) -> None:
    """Ask until the time is over."""
    data, begin = Data.of(root), time.monotonic()
    questions, _, index = collection(data, QUESTIONS[1])
    searcher, state = agent(data, url).open(index), data.work / "agents" / "model.json"
    asked = json.loads(state.read_text()) if state.exists() else {"questions": 0, "minutes": 0.0}
    for number, question in enumerate(questions[asked["questions"] : MOST], start=asked["questions"] + 1):
        took = (time.monotonic() - begin) / 60
        if took > float(minutes):
            break
        searcher.search([question])
        took = (time.monotonic() - begin) / 60
        state.write_text(json.dumps({"questions": number, "minutes": asked["minutes"] + took}))
        print(f"{number} {took:.1f} min", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
