"""What the page about answers says can be run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from chat_server import fields

from nlp_retrieval import HotpotqaLoader
from nlp_retrieval.benchmarks.checked import keys_of
from nlp_retrieval.benchmarks.settings import BenchmarkConfig
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.models import Answer
from nlp_retrieval.evaluation.answers import ANSWER_MEASURES, FACT_MEASURES

PAGE = (Path(__file__).parents[3] / "docs" / "ANSWERS.md").read_text("utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return found


def test_the_example_answers(index, server, tmp_path, capsys):
    server.answer = lambda body: fields(reasoning="r", citations="1.1", answer="Paris")
    names: dict[str, object] = {}
    exec(block("python").replace("http://localhost:8000/v1", server.url), names)
    names["ask"](index, "Who wrote the novel about the film director?")
    assert capsys.readouterr().out.startswith("Paris [('")


def test_the_configuration_names_what_is_there():
    settings = yaml.safe_load(block("yaml"))
    assert set(settings) <= {*keys_of(BenchmarkConfig).values()}
    assert build("answerers", settings["answerer"]).passages == 5
    fields_of = dict(settings["queries"])
    assert fields_of.pop("loader") == HotpotqaLoader.name
    assert HotpotqaLoader(**fields_of).sentence_facts


def test_the_page_names_the_measures_and_the_fields():
    assert set(re.findall(r"`((?:answer|sp|joint)_\w+)`", PAGE)) == {*ANSWER_MEASURES, *FACT_MEASURES, "sp_recall"}
    table = PAGE.partition("An `Answer` has")[2].partition("\n- ")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(Answer.model_fields)
