"""Every public class and function of a system has an example in its docstring, and the examples do what they say."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from docstring_examples import check_examples

from nlp_retrieval.systems.policy import functions

SYSTEMS = {entry.name: entry.value for entry in entry_points(group="nlp_retrieval.systems")}

HIPPORAG = """
from hashed_words import HashedWords

encoder = HashedWords(64)
known = {"whale": ["Blue whale", "eats", "krill"], "krill": ["krill", "lives in", "Southern Ocean"]}
known["fox"] = ["Arctic fox", "hunts", "lemmings"]
Path("knowledge.jsonl").write_text(
    "".join(
        json.dumps({"doc_id": name, "extracted_entities": triple[::2], "extracted_triples": [triple]}) + "\\n"
        for name, triple in known.items()
    )
)
Path("hipporag.yaml").write_text("llm: {provider: openai, model_name: gpt-4o-mini, api_key: '${OPENAI_API_KEY}'}")
"""
"""An encoder, the knowledge of the items, and a file of settings."""

EVIDENCE = """
from nlp_retrieval import Searcher
from nlp_retrieval.agents import AgentStep, Trajectory
from nlp_retrieval.systems.evidence import EvidenceIndex

whale, fox = "The blue whale eats four tons of krill a day.", "An Arctic fox weighs 3 kilograms, and hunts lemmings."
index = EvidenceIndex("project", Searcher(["bm25"]))
index.add_document(whale, "https://example.org/whale", "Blue whale", source_quality="A")
index.add_document(fox, "https://example.net/fox", "Arctic fox", source_quality="B")
index.build_index()

Path("report.md").write_text(
    "Blue whales eat four tons of krill a day [1]. An Arctic fox weighs 9 kilograms [2].\\n\\n## References\\n\\n"
    "[1] Blue whale. https://example.org/whale\\n[2] Arctic fox. https://example.net/fox\\n"
)
Path("pages/example.org").mkdir(parents=True)
Path("pages/example.org/krill.html").write_text(
    "<title>Krill</title><p>Krill live in swarms in the Southern Ocean, and eat the algae below the ice.</p>"
)
"""
"""An index of two sources, a report that cites them, and a folder of a page that could be fetched."""

POLICY = """
import yaml
from hashed_words import HashedWords
from systems.policy.study import studies

encoder = HashedWords(64)
study = studies.study(Path("index"), hop=True)
plans = studies.plans()
Path("energy.yaml").write_text(yaml.safe_dump(studies.PROFILE))
Path("plans.jsonl").write_text(
    "".join(json.dumps({"id": item.item_id, "content": item.content, **item.metadata}) + "\\n" for item in plans)
)
Path("study.yaml").write_text('''
profile: energy.yaml
corpus: {name: jsonl, path: plans.jsonl}
index: study_index
searcher: {retrievers: [bm25]}
''')
"""
"""An encoder, an open study of the plans of three countries, and the configuration of one."""

HOVER = """
titles = ["Blue whale", "Krill", "Arctic fox"]
claim = "What eats the small animals of the Southern Ocean hunts no lemmings."
record = {"uid": "1", "claim": claim, "supporting_facts": [[title, 0] for title in titles], "label": "SUPPORTED"}
Path("hover.json").write_text(json.dumps([record | {"num_hops": 3, "hpqa_id": "1"}]))
"""
"""A release file of one claim."""

SETUPS = {"evidence": EVIDENCE, "hipporag": HIPPORAG, "hover": HOVER, "policy": POLICY}


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_examples_of_every_public_name_do_what_they_say(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "_opened", {})  # what an example opens is closed after it
    checked = check_examples(SYSTEMS[system], tmp_path, monkeypatch, SETUPS[system])
    assert checked.without == [], "each needs an example in its docstring"
    assert checked.wrong == []
