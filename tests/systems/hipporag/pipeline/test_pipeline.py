"""HippoRAG 2 as one system: nine passages to an answer, as docs/HIPPORAG.md has it, against a model that plays by rule."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
import yaml
from chat_server import asked, fields
from embedding_server import embedding_server
from fuzz.command_lines import ended

from nlp_retrieval.errors import ConfigurationError, ModelError, QueryError

DOCUMENT = (Path(__file__).parents[4] / "docs" / "HIPPORAG.md").read_text("utf-8")
QUESTION = "What county is Erik Hort's birthplace a part of?"
SAYS = {"was born in": "was born in", "grew up in": "grew up in", "belongs to": "belongs to", "looks down on": "looks down on"}


def file_in_the_document(name):
    """What the document writes into a file."""
    (written,) = re.findall(rf"^\$ cat > {re.escape(name)} <<'END'\n(.*?)^END$", DOCUMENT, re.DOTALL | re.MULTILINE)
    return written


CORPUS = file_in_the_document("people.jsonl")


def extracted(passage):
    """The triple of a passage: its title, a verb that the test knows, and the names after it."""
    title, _, text = passage.partition(" ")
    names = re.findall(r"(?:[A-Z]\w+ ?)+", passage)
    for verb in SAYS:
        if verb in text:
            subject = names[0].strip()
            target = re.findall(r"(?:[A-Z]\w+ ?)+", text.partition(verb)[2])[-1].strip()
            return {"entities": [[subject, "concept"], [target, "place"]], "triples": [[subject, verb, target]]}
    return {"entities": [[title, "concept"]], "triples": []}


def reader(body):
    """A model that extracts by a rule, and answers from the passages it was given, or not at all."""
    if '"question' not in json.dumps(body) and "[[ ## question ## ]]" not in body["messages"][-1]["content"]:
        lines = (line.partition(": ") for line in asked(body, "passages").splitlines())
        return fields(knowledge=json.dumps({number: extracted(text) for number, _, text in lines}))
    passages = asked(body, "passages")
    born = re.search(r"^(\d+\.\d+) Erik Hort.* was born in (\w+)", passages, re.MULTILINE)
    county = born and re.search(rf"^(\d+\.\d+) {born[2]} .* belongs to ([\w ]+)", passages, re.MULTILINE)
    if born is None or county is None:
        return fields(reasoning="It is not there.", citations="", answer="no answer")
    return fields(reasoning=f"Born in {born[2]}.", citations=f"{born[1]}, {county[1]}", answer=county[2])


@pytest.fixture
def world(server, tmp_path, monkeypatch):
    """A folder with the document's files, whose models are servers of the test's own."""
    monkeypatch.chdir(tmp_path)
    server.answer = reader
    Path("people.jsonl").write_text(CORPUS)
    with embedding_server() as embeddings:
        llm = {"provider": "openai-compatible", "model_name": "small", "base_url": server.url}
        embedding = {"provider": "custom", "model_name": "e", "base_url": embeddings.url, "dimension": 16}
        described = yaml.safe_load(file_in_the_document("hipporag2.yaml")) | {"llm": llm, "embedding": embedding}
        described["indexing"] = {"retry_attempts": 0}
        Path("hipporag2.yaml").write_text(yaml.safe_dump(described))
        yield described


def run(*words):
    return ended(["hipporag", *words, "--config", "hipporag2.yaml"])


def test_nine_passages_end_in_rockland_county(world, server):
    done = run("index", "people.jsonl", "--json")
    assert done.code in (0, None), done.err
    told = json.loads(done.out)
    assert told["extraction"]["extracted"] == 9
    assert told["metrics"] == {"queries_processed": 0, "documents_indexed": 9}
    calls = server.calls

    asked_for = run("ask", QUESTION, "--json")
    assert asked_for.code in (0, None), asked_for.err
    one = json.loads(asked_for.out)
    prompt = asked(server.bodies[-1], "passages")
    assert "was born in Montebello" in prompt
    assert "Montebello is a village that belongs to Rockland County" in prompt
    assert server.calls == calls + 1
    assert one["text"] == "Rockland County"
    assert set(one["passages"]) == {"1", "2"}
    assert len(one["read"]) == 3
    named = {passage["item_id"]: passage["supporting_entities"] for passage in one["read"]}
    assert "montebello" in named["1"]
    assert "rockland county" in named["2"]
    assert one["metrics"] == {"queries_processed": 1, "documents_indexed": 0}

    people = run("ask", QUESTION).out
    assert "Rockland County" in people
    assert "cites Montebello  2, sentences 1" in people


def test_a_passage_that_failed_is_indexed_and_known_after_the_next_run(world, server):
    server.answer = lambda body: "I would rather not." if "Montebello is a village" in str(body) else reader(body)
    long = {"item_id": "long", "title": "Hills", "content": "They are green. " * 1000}
    Path("people.jsonl").write_text(f"{CORPUS}{json.dumps(long)}\n")
    failed = run("index", "people.jsonl")
    assert failed.code == 1
    assert "9 extracted, 0 already stored, 1 without a usable answer" in failed.err
    assert ", 1 shown to it in part" in failed.err
    server.answer = reader
    assert run("index", "people.jsonl").code in (0, None)
    assert json.loads(run("ask", QUESTION, "--json").out)["text"] == "Rockland County"


@pytest.mark.parametrize("named", ["sqlite:///store/of/knowledge.db", "${STORE}"])
def test_knowledge_in_a_database_is_indexed_resumed_and_asked(world, server, monkeypatch, named):
    monkeypatch.setenv("STORE", "sqlite:///store/of/knowledge.db")
    Path("store/of").mkdir(parents=True)
    world["storage"] = {"save_dir": named, "index_dir": "an/index"}
    Path("hipporag2.yaml").write_text(yaml.safe_dump(world))
    assert run("ask", QUESTION).code == 3
    assert run("index", "people.jsonl").code in (0, None)
    calls = server.calls
    assert run("index", "people.jsonl").code in (0, None)
    assert server.calls == calls
    assert json.loads(run("ask", QUESTION, "--json").out)["text"] == "Rockland County"
    assert Path("store/of/knowledge.db").is_file()
    assert Path("an/index/manifest.json").is_file()
    assert not Path("outputs").exists()
    with sqlite3.connect("store/of/knowledge.db") as database:
        assert database.execute("select status, processed_documents from indexing_progress").fetchall()[-1] == ("completed", 9)


def test_evaluating_judges_answers_and_supporting_facts(world):
    passages = [[row["title"], [row["content"]]] for row in map(json.loads, CORPUS.splitlines())]
    question = {"_id": "q1", "question": QUESTION, "answer": "Rockland County", "context": passages}
    question["supporting_facts"] = [["Erik Hort", 0], ["Montebello", 0]]
    other = question | {"_id": "q2", "answer": "Saltmarsh County"}
    Path("hotpot.json").write_text(json.dumps([question, other]))
    assert run("evaluate").code == 2
    assert "nothing is downloaded" in run("evaluate").err
    run("index", "hotpot.json", "--loader", "hotpotqa", "--option", "sentence_facts=true")
    done = run("evaluate", "hotpot.json", "--json")
    assert done.code in (0, None), done.err
    told = json.loads(done.out)
    assert told["questions"] == 2
    assert told["measures"]["answer_em"] == 0.5
    assert told["measures"]["sp_cited"] == told["measures"]["sp_recall"] == 1.0
    absent = other | {"_id": "q3", "supporting_facts": [["Erik Hort", passages[0][1][0]], ["Tomas Berg", 0]]}  # also a text
    Path("absent.json").write_text(json.dumps([absent]))
    assert json.loads(run("evaluate", "absent.json", "--json").out)["measures"]["sp_recall"] == 0.5
    assert told["metrics"]["queries_processed"] == 2
    assert re.search(r"^answer_em +1\.0000$", run("evaluate", "hotpot.json", "--first", "1").out, re.MULTILINE)


GROWN = '{"id": "10", "title": "Rosa Holt", "content": "Rosa Holt was born in Kestrel Hill."}\n'


def write_corpus(*added, name="people.jsonl"):
    Path(name).write_text(CORPUS.rstrip("\n") + "\n" + "".join(added))


def test_a_corpus_that_grew_is_paid_for_what_is_new_and_indexed_as_a_whole(world, server):
    run("index", "people.jsonl")
    calls = server.calls
    write_corpus(GROWN)
    done = run("index", "people.jsonl", "--json")
    assert done.code in (0, None), done.err
    assert server.calls == calls + 1
    assert json.loads(done.out)["metrics"]["documents_indexed"] == 10
    asked_for = run("ask", QUESTION, "Where was Rosa Holt born?", "--json")
    assert "more was extracted" not in asked_for.err
    assert "10" in [passage["item_id"] for passage in json.loads(asked_for.out.splitlines()[1])["read"]]
    assert run("index", "people.jsonl").code in (0, None)
    assert server.calls == calls + 1 + 2


def choosing(*numbers):
    """The reader, which also says which facts help."""
    return lambda body: fields(helpful=list(numbers)) if "[[ ## facts ## ]]" in str(body) else reader(body)


@pytest.mark.parametrize(
    ("in_the_settings", "words", "asks"),
    [(True, [], 1), (True, ["--no-filter-facts"], 0), (False, ["--filter-facts"], 1), (False, [], 0)],
)
def test_facts_are_filtered_by_the_settings_or_the_command_line(world, server, in_the_settings, words, asks):
    server.answer = choosing(1)
    world["retrieval"]["filter_facts"] = in_the_settings
    Path("hipporag2.yaml").write_text(yaml.safe_dump(world))
    run("index", "people.jsonl")
    before = len(server.bodies)
    done = run("ask", QUESTION, "--json", *words)
    assert done.code in (0, None), done.err
    assert sum("[[ ## facts ## ]]" in str(body["messages"]) for body in server.bodies[before:]) == asks
    assert len(server.bodies) - before == asks + 1  # supporting entities ask nothing again


def test_documents_are_loaded_retrieved_and_queried_by_the_pipeline(world, server):
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline
    from nlp_retrieval.systems.hipporag.settings import HippoRagSettings

    pipeline = HippoRagPipeline(HippoRagSettings.of(world))
    assert HippoRagPipeline("hipporag2.yaml").settings == HippoRagSettings.read("hipporag2.yaml")
    with pytest.raises(ConfigurationError, match="settings are dict: pass HippoRagSettings, or a path of a YAML file"):
        HippoRagPipeline(world)
    rows = [json.loads(line) for line in CORPUS.splitlines()]
    assert pipeline.load_documents("people.jsonl").n_items == 9
    assert pipeline.load_documents(rows).n_items == 9
    with pytest.raises(QueryError, match="k must be an integer of at least 1, not 0"):
        pipeline.retrieve(QUESTION, top_k=0)
    passages = pipeline.retrieve(QUESTION, top_k=2)
    assert [passage.item.item_id for passage in passages] == [
        hit.item.item_id for hit in pipeline.ask([QUESTION])[0].results[:2]
    ]
    assert pipeline.metrics.to_dict() == {"queries_processed": 2, "documents_indexed": 18}  # one retrieved, one answered
    for passage in passages:
        assert passage.supporting_entities
        text = f"{passage.item.title} {passage.item.content}".lower()
        assert all(word in text for entity in passage.supporting_entities for word in entity.split())
    result = pipeline.query(QUESTION, top_k=4).to_dict()
    assert result["answer"] == "Rockland County"
    assert set(result["citations"]) == {"1", "2"}
    assert len(result["retrieved_documents"]) == 4
    assert result["metadata"]["calls"] == 1
    server.answer = lambda body: 401
    with pytest.raises(ModelError, match="1 of 10 passages have no usable answer"):
        pipeline.load_documents([*rows, json.loads(GROWN)])


class Reader:
    """A model of one method that knows one fact."""

    def complete(self, prompt):
        if "triples" in prompt:
            return '{"entities": ["Erik Hort"], "triples": [["Erik Hort", "was born in", "Montebello"]]}'
        return '{"answer": "Montebello", "citations": "1.1"}'


def test_a_client_is_asked_in_place_of_the_endpoint_and_its_knowledge_found_again(world, server):
    from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline

    pipeline = HippoRagPipeline("hipporag2.yaml", lm=Reader())
    assert pipeline.load_documents("people.jsonl").n_items == 9
    assert HippoRagPipeline("hipporag2.yaml", Reader()).query("Where was Erik Hort born?").answer.text == "Montebello"
    assert server.calls == 0
