"""What changed alone is judged, in judging projects, and decides as gold for everything would."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nlp_retrieval import SearchableItem, TopicsLoader, evaluate
from nlp_retrieval.cli.app import app
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.gate import Gate, GateSettings
from nlp_retrieval.gate.verdict import in_every_case, judge
from nlp_retrieval.gate.writing import lines_of
from nlp_retrieval.judging import JudgingProject

from .test_gate import ITEMS, searcher

OTHER = {"k1": 0.1, "b": 0.0}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Queries with a family each, and qrels with about half of all passages."""
    rng = random.Random(4)
    lines = [f"q{n}\t{' '.join(rng.sample(item.content.split()[:14], 3))}" for n, item in enumerate(ITEMS[:100])]
    (tmp_path / "queries.tsv").write_text("\n".join(["id\ttext", *lines]) + "\n")
    rows = [f"q{n} 0 {item.item_id} {int(is_relevant(f'q{n}', item.item_id))}" for n in range(100) for item in ITEMS]
    (tmp_path / "qrels.txt").write_text("\n".join(rows) + "\n")
    return tmp_path


def is_relevant(query_id: str, item_id: str) -> bool:
    return random.Random(f"{query_id} {item_id}").random() < 0.5


@pytest.fixture
def settings(files: Path) -> GateSettings:
    made = GateSettings(
        files / "base.jsonl", TopicsLoader(files / "queries.tsv"), {"precision@5": 0.05, "precision@10": 0.05},
        judging=files / "judged",
    )  # fmt: skip
    Gate(made, searcher(files / "accepted")).update("the first")
    return made


def say(project: JudgingProject, judgement: Callable[[str, str], bool] = is_relevant, most: int = 10**6) -> None:
    item_ids = project.pool().item_ids
    for pair in project.next_pairs("Ann", most):
        project.judge(pair.number, int(judgement(pair.query_id, item_ids[pair.number])), "Ann")


def test_judgements_of_what_changed_give_the_difference_that_gold_for_everything_gives(
    settings: GateSettings, files: Path
) -> None:
    before, now = searcher(files / "before"), searcher(files / "now", **OTHER)
    first = Gate(settings, now).check(judge_change=True)
    assert (first.verdict, first.change.unjudged, first.change.gone) == ("cannot tell", first.change.passages, 0)
    assert f"judge serve {first.change.projects[0]}" in "".join(lines_of(Gate(settings, now).check()))  # asked for until judged
    project = JudgingProject(first.change.projects[0])
    assert len(project.pool().item_ids) == first.change.passages < 500  # most are common to both, and not asked for
    say(project)
    report = Gate(settings, now).check()
    assert (report.change.unjudged, report.verdict) == (0, "no worse")
    loader = TopicsLoader(files / "queries.tsv", files / "qrels.txt")
    expected = []
    for each in (before, now):
        results = each.search([query.text for query in loader.queries()], 20)
        for hits, query in zip(results, loader.queries(), strict=True):
            hits.query_id = query.query_id
        expected.append(evaluate(results, loader.gold(), list(settings.margins)).per_query)
    for each in report.measures:
        assert each.difference == pytest.approx((expected[1][each.measure] - expected[0][each.measure]).mean(), abs=1e-12)


def test_a_loss_is_worse_before_all_is_judged_and_what_left_the_corpus_is_asked_of_nobody(
    settings: GateSettings, files: Path
) -> None:
    new = [SearchableItem(item_id=f"new-{item.item_id}", content=item.content) for item in ITEMS]
    now = searcher(files / "now", [*ITEMS[:110], *new])
    first = Gate(settings, now).check(judge_change=True)
    assert 0 < first.change.gone < first.change.passages / 4
    assert "cannot be, because their texts are not in the corpus" in "\n".join(lines_of(first))
    project, most = JudgingProject(first.change.projects[0]), first.change.passages * 4 // 5
    say(project, lambda query_id, item_id: not item_id.startswith("new"), most)
    report = Gate(settings, now).check()
    assert report.change.unjudged > report.change.gone
    assert (report.verdict, report.passes) == ("worse", False)
    assert report.lost[0].documents[0].item_id in {item.item_id for item in ITEMS}


def test_a_verdict_before_all_is_judged_is_that_of_every_outcome():
    rng = np.random.default_rng(5)
    every = {"": np.ones(80, bool)}
    decided = set()

    def verdicts(differences):
        before = np.full(80, 0.5)
        return judge({"m": before}, {"m": before + differences}, {"m": 0.05}, [None] * 80, every, level=0.05, looks=1)

    for number in range(16):
        known = np.round(rng.normal((-0.06, 0.05)[number % 2], 0.1, 80), 1).clip(-0.5, 0.5)
        unknown = np.where(rng.random(80) < rng.uniform(0, 0.4), 0.1, 0.0)
        (early,) = in_every_case(verdicts(known), verdicts(known - unknown), verdicts(known + unknown))
        if early.verdict != "cannot tell":
            decided.add(early.verdict)
            outcomes = [verdicts(known + unknown * rng.choice([-1, 0, 1], 80))[0].verdict for _ in range(3)]
            assert set(outcomes) == {early.verdict}
    assert decided == {"worse", "no worse"}


def test_a_judgement_counts_for_the_text_that_was_judged_and_is_not_asked_for_twice(
    settings: GateSettings, files: Path
) -> None:
    now = searcher(files / "now", **OTHER)
    project = JudgingProject(Gate(settings, now).check(judge_change=True).change.projects[0])
    say(project, most=5)
    again = Gate(settings, now).check(judge_change=True)
    assert (again.change.passages - again.change.unjudged, again.change.projects) == (5, (project.path,))
    judged = {(each.query_id, each.item_id) for each in project.judgements()}
    edited = sorted(item_id for _, item_id in judged)[0]
    lost = sum(item_id == edited for _, item_id in judged)
    items = [
        SearchableItem(item_id=item.item_id, content=f"{item.content} edited") if item.item_id == edited else item
        for item in ITEMS
    ]
    other = Gate(settings, searcher(files / "edited", items, **OTHER)).check()
    assert other.change.passages - other.change.unjudged <= 5 - lost
    assert other.change.projects == (project.path,)
    assert other.change.unasked >= lost
    edited_all = [SearchableItem(item_id=item.item_id, content=f"{item.content} x") for item in ITEMS]
    anew = Gate(settings, searcher(files / "all", edited_all, **OTHER)).check(judge_change=True).change
    assert anew.unjudged == anew.passages
    assert project.path not in anew.projects


@pytest.mark.parametrize("lowest", [1, 2])
def test_gold_that_lacks_a_passage_gets_it_from_people(files: Path, settings: GateSettings, lowest: int) -> None:
    first = {f"q{n}": item.item_id for n, item in enumerate(ITEMS[:100])}
    (files / "few.txt").write_text("".join(f"{query} 0 {item} {lowest}\n" for query, item in first.items()))
    known = replace(
        settings, baseline=files / "gold.jsonl", query_loader=TopicsLoader(files / "queries.tsv", files / "few.txt"),
        margins={"ndcg@10": 0.05, "mrr@10": 0.05}, relevant_from=lowest,
    )  # fmt: skip
    Gate(known, searcher(files / "gold")).update("the first")
    copies = [SearchableItem(item_id=f"copy-{item.item_id}", content=f"{item.content} {item.content}") for item in ITEMS]
    now = searcher(files / "now", [*ITEMS, *copies])
    before = Gate(known, now).check(judge_change=True)
    assert (before.verdict, before.change.alone) == ("worse", False)
    asked = JudgingProject(before.change.projects[0])
    pool = asked.pool()
    pairs = {(pool.query_ids[query], item) for query, item in zip(pool.pair_query.tolist(), pool.item_ids, strict=True)}
    assert not pairs & set(first.items())  # gold says that these are relevant
    say(asked, lambda query, item: item == f"copy-{first[query]}")
    after = Gate(known, now).check()
    assert all(one.now > other.now for one, other in zip(after.measures, before.measures, strict=True))


def test_what_cannot_be_judged_so_is_refused(settings: GateSettings, files: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ndcg@10 needs all relevant passages.* write {precision@10: 0.02}"):
        Gate(replace(settings, margins={"ndcg@10": 0.05}), searcher(files / "now"))
    with pytest.raises(ConfigurationError, match="write 'judging: FOLDER'"):
        Gate(replace(settings, judging=None), searcher(files / "now")).check(judge_change=True)
    runs = {"a": {"q1": [("d1", 1.0)]}}
    queries = settings.query_loader.queries()
    JudgingProject.create(files / "judged", queries, runs, ITEMS, unit="title")
    with pytest.raises(ConfigurationError, match="judges titles"):
        Gate(settings, searcher(files / "now")).check()


def test_the_command_makes_the_project(files: Path, settings: GateSettings, monkeypatch) -> None:
    monkeypatch.chdir(files)
    (files / "corpus.jsonl").write_text("\n".join(json.dumps({"id": i.item_id, "content": i.content}) for i in ITEMS))
    (files / "gate.yaml").write_text(
        "{baseline: base.jsonl, queries: {loader: topics, path: queries.tsv}, corpus: {loader: jsonl, path: corpus.jsonl}, "
        "index: now, searcher: {retrievers: [{name: bm25, k1: 0.1, b: 0.0}]}, margins: {precision@5: 0.05}, judging: judged}"
    )
    runner = CliRunner()
    made = runner.invoke(app, ["gate", "gate.yaml", "--judge", "--json", "a.json", "--markdown", "a.md"])
    assert made.exit_code == 0, made.output
    assert "passages that differ are not judged" in made.stdout
    (folder,) = (files / "judged").iterdir()
    assert f"nlp-retrieval judge serve judged/{folder.name} --judge NAME" in made.stdout
    assert json.loads((files / "a.json").read_text())["change"]["projects"] == [f"judged/{folder.name}"]
    say(JudgingProject(folder))
    decided = runner.invoke(app, ["gate", "gate.yaml"])
    assert (decided.exit_code, decided.stdout.startswith("PASS  No worse")) == (0, True)
    both = runner.invoke(app, ["gate", "gate.yaml", "--judge", "--update"])
    assert both.exit_code == 2
