"""The report says in its first sentence which system is better, or what is missing; a model decides nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fuzz.command_lines import ended
from sklearn.metrics import cohen_kappa_score

from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.evaluation.resampling import family_numbers, family_sums
from nlp_retrieval.judging import JudgingProject, ModelGrade, decide, report_of
from nlp_retrieval.judging.health import health_of
from nlp_retrieval.judging.pool import values_by_query
from nlp_retrieval.judging.report import decided
from nlp_retrieval.judging.sequences import confidence_sequence

from .world import ITEMS, QUERIES, RUNS

N = 60
QUESTIONS = [Query(query_id=f"q{n}", text=f"Question {n}?") for n in range(N)]
PASSAGES = [
    SearchableItem(item_id=f"q{n}-{rank}", content=f"Passage {rank} on question {n}.") for n in range(N) for rank in range(4)
]


def answers(*ranks: int) -> dict[str, list[tuple[str, float]]]:
    return {f"q{n}": [(f"q{n}-{rank}", 9.0 - place) for place, rank in enumerate(ranks)] for n in range(N)}


def simulated(folder, runs, relevant, questions: int = N, **settings) -> JudgingProject:
    """A project whose judge answers by a rule, for as many questions."""
    project = JudgingProject.create(folder, QUESTIONS, runs, PASSAGES, depth=2, **settings)
    done: set[str] = set()
    for pair in project.next_pairs("Sim", 1000):
        done.add(pair.query_id)
        if len(done) > questions:
            break
        number, rank = (int(word.rstrip(".")) for word in (pair.content.split()[4], pair.content.split()[1]))
        project.judge(pair.number, int(relevant(number, rank)), "Sim")
    return project


TWO = {"good": answers(0, 1), "bad": answers(2, 3)}
THREE = {**TWO, "mixed": answers(0, 2)}


def test_a_clear_difference_is_decided_and_judging_can_stop(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0)
    report = report_of(project)
    assert report.sentence.startswith("good is better than bad by 0.500 [")
    assert f"in precision@2, after {4 * N} judgements of {N} families of questions." in report.sentence
    assert report.means["precision@2"] == {"good": 0.5, "bad": 0.0}
    assert decided(project).endswith("You can stop.")


def test_a_difference_that_these_questions_cannot_decide_asks_for_more_of_them(tmp_path):
    """A difference of .025 in 60 questions, of which 50 are judged: no judgement of the other ten decides it."""
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == (0, 2, 0)[n % 3] or n % 4 == rank, questions=50)
    sentence = report_of(project).sentence
    assert "more judgements, of" in sentence
    assert "and 10 are left: make a project with more questions" in sentence
    even = simulated(tmp_path / "even", TWO, lambda n, rank: rank == 2 * (n % 2), questions=60)
    assert "thousands more would not decide it: say with --margin" in report_of(even).sentence


def test_the_report_of_a_decisive_project_begins_with_the_named_difference(tmp_path):
    project = simulated(tmp_path / "p", THREE, lambda n, rank: rank == 0, design="decisive", comparisons=[("mixed", "good")])
    report = report_of(project)
    assert [(each.system, each.baseline) for each in report.decisions] == [("mixed", "good")]
    assert report.sentence.startswith("It is open whether mixed or good is better: 0.000")


def test_a_report_decides_all_of_its_differences_together(tmp_path):
    """The oracle computes each sequence from the values by family, at 0.05 divided by the number of differences."""
    project = simulated(tmp_path / "p", THREE, lambda n, rank: rank == n % 3, questions=25)
    pool = project.pool()
    values = values_by_query(pool, "precision@2", list(pool.systems))
    numbers = family_numbers(pool.families)
    order = [number for number in project.query_order if pool.complete[number]]
    report = report_of(project, ["precision@2"])
    assert len(report.decisions) == 3
    for named in report.decisions:
        sums = family_sums((values[named.system] - values[named.baseline])[None], numbers)[0][order]
        lists = zip(pool.systems[named.system], pool.systems[named.baseline], strict=True)
        apart = max(len(set(one) - set(other)) for one, other in lists) / 2
        low, high = confidence_sequence(sums, (-apart, apart), 0.05 / 3)[-1]
        assert (named.low, named.high) == pytest.approx((low, high))
        alone = decide(pool, "precision@2", named.system, named.baseline, order=project.query_order)
        assert alone.low >= low
        assert alone.high <= high
    assert "at every look, all 3 differences together:" in ended(["judge", "report", str(project.path)]).out


def test_a_model_decides_nothing_and_its_agreement_and_bias_are_shown(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0, questions=20)
    before = report_of(project)
    pool = project.pool()
    favours = {pair for ranking in pool.systems["bad"] for pair in ranking.tolist()}
    project.judge_by_model("partial", [ModelGrade(p, 0.9 if p in favours else 0.4) for p in range(len(pool.item_ids))])
    report = report_of(project)
    assert (report.sentence, report.decisions, report.means) == (before.sentence, before.decisions, before.means)
    assert report.model is not None
    biases = {each.part: each.bias for each in report.model.biases}
    assert biases["system bad"] == pytest.approx(0.9)
    assert biases["system good"] == pytest.approx(0.4 - 0.5)
    assert biases["grade 1"] == pytest.approx(0.4 - 1)
    both = np.flatnonzero(~np.isnan(pool.grades))
    kappa = cohen_kappa_score(pool.grades[both].astype(int).tolist(), [int(pair in favours) for pair in both.tolist()])
    assert report.model.agreement is not None
    assert report.model.agreement.kappa == pytest.approx(kappa)
    assert f"partial as a judge: kappa with people {kappa:.2f} [" in ended(["judge", "report", str(project.path)]).out


def test_the_report_is_json_without_any_nan(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: True, questions=0)
    project.judge_by_model("same", [ModelGrade(pair, 1.0) for pair in range(len(project.pool().item_ids))])
    done = ended(["judge", "report", str(project.path), "--measures", "precision@1,ndcg@2", "--json"])
    report = json.loads(done.out, parse_constant=pytest.fail)
    assert set(report["means"]) == {"precision@1", "ndcg@2"}
    assert report["judged"] == 0
    assert report["decisions"][0]["verdict"] == "open"


def test_the_command_takes_names_with_colons_and_says_before_anybody_judges_what_it_takes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, ranks in (("::error::1:2", (0, 1)), ("k1", (0, 2))):
        lines = [f"{q} Q0 {item} {rank} {score} x\n" for q, ranking in answers(*ranks).items()
                 for rank, (item, score) in enumerate(ranking, 1)]  # fmt: skip
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "queries.tsv").write_text("".join(f"{query.query_id}\t{query.text}\n" for query in QUESTIONS))
    corpus = "id,content\n" + "".join(f"{item.item_id},{item.content}\n" for item in PASSAGES)
    (tmp_path / "corpus.csv").write_text(corpus)
    words = ["--runs", "::error::1:2.trec", "--runs", "k1.trec", "--queries", "queries.tsv", "--corpus", "corpus.csv"]
    made = ended(["judge", "new", "p", *words, "--compare", "::error::1:2:k1", "--depth", "2"])
    assert made.code == 0, made.err
    project = JudgingProject(tmp_path / "p")
    assert project.settings.comparisons == (("::error::1:2", "k1"),)
    assert "A difference of 0.05 in precision@2 takes about" in made.err
    assert "families of questions; this project has 60: more questions are needed" in made.err
    for pair in project.next_pairs("Ann", 1000):
        project.judge(pair.number, int(project.pool().item_ids[pair.number].endswith("-1")), "Ann")
    report = ended(["judge", "report", "p"]).out
    assert report.startswith(": :error::1:2 is better than k1")
    assert not any(line.lstrip().startswith("::") for line in report.splitlines()), "a runner would obey such a line"
    assert "--compare k1:3: write two systems as A:B" in ended(["judge", "new", "q", *words, "--compare", "k1:3"]).err


def test_whatever_has_a_figure_over_synthetic_questions_says_so_beside_it(tmp_path):
    note = "2 of 4 queries are synthetic"
    marks: list[dict[str, object]] = [{"synthetic": True}, {"synthetic": "TRUE"}, {}, {}]
    marked = [query.model_copy(update={"metadata": mark}) for query, mark in zip(QUERIES, marks, strict=True)]
    mixed = JudgingProject.create(tmp_path / "mixed", marked, RUNS, ITEMS)
    real = JudgingProject.create(tmp_path / "real", QUERIES, RUNS, ITEMS)
    for project in (mixed, real):
        for pair in project.next_pairs("Ann", 100):
            project.judge(pair.number, pair.number % 2, "Ann")
    assert report_of(mixed).notes[0].startswith(note)
    assert health_of(mixed).warnings[0].startswith(note)
    assert note in decided(mixed)
    assert ended(["judge", "report", str(mixed.path)]).out.splitlines()[2].startswith(f"Note: {note}")
    assert not any("synthetic" in text for text in (*report_of(real).notes, decided(real), *health_of(real).warnings))
