"""What every task begins with: a corpus, topics and judgements as DataFrames; here those of the demo."""

import json
from importlib.resources import files

import pandas

from nlp_retrieval import BeirLoader

_DEMO = files("nlp_retrieval.demo")
_ITEMS = BeirLoader(str(_DEMO / "corpus.jsonl")).load()
_CLAIMS = json.loads((_DEMO / "claims.json").read_text("utf-8"))[:20]
_ID_OF = {item.title: item.item_id for item in _ITEMS}

corpus = pandas.DataFrame({"docno": [item.item_id for item in _ITEMS], "text": [item.text for item in _ITEMS]})
topics = pandas.DataFrame({"qid": [claim["uid"] for claim in _CLAIMS], "query": [claim["claim"] for claim in _CLAIMS]})
qrels = pandas.DataFrame(
    sorted({(claim["uid"], _ID_OF[title], 1) for claim in _CLAIMS for title, _ in claim["supporting_facts"]}),
    columns=["qid", "docno", "label"],
)
