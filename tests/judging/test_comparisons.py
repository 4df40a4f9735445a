"""What is compared can be named, and several differences are decided together."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from fuzz.command_lines import ended

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.resampling import family_numbers, family_sums
from nlp_retrieval.judging import JudgingProject, decide
from nlp_retrieval.judging.estimates import query_values
from nlp_retrieval.judging.project_file import PROJECT_FILE, digest_of_design
from nlp_retrieval.judging.report import decided, report_of
from nlp_retrieval.judging.sequences import confidence_sequence

from .test_estimates import judged, world
from .test_report import PASSAGES, QUESTIONS, TWO, N, answers, simulated

THREE = {**TWO, "mixed": answers(0, 2)}


def pairs_of(report):
    return [(each.system, each.baseline) for each in report.decisions]


def test_decisive_judges_what_moves_the_named_difference_and_reports_show_it_alone(tmp_path):
    project = simulated(tmp_path / "p", THREE, lambda n, rank: rank == 0, design="decisive", comparisons=[("mixed", "good")])
    pool = project.pool()
    first = {name: set(np.concatenate(pairs).tolist()) for name, pairs in pool.systems.items()}
    assert set(np.flatnonzero(pool.chosen).tolist()) == first["mixed"] ^ first["good"]
    report = report_of(project)
    assert pairs_of(report) == [("mixed", "good")]
    assert report_of(project, baseline="bad").decisions[0].decision.reason.startswith("the design never chooses")
    assert JudgingProject(project.path).comparisons == [("mixed", "good")]
    with pytest.raises(ConfigurationError, match="'god' is not one of them"):
        JudgingProject.create(tmp_path / "q", QUESTIONS, THREE, PASSAGES, comparisons=[("good", "god")])
    with pytest.raises(ConfigurationError, match="compared with itself"):
        JudgingProject.create(tmp_path / "q", QUESTIONS, THREE, PASSAGES, comparisons=[("good", "good")])


def test_a_project_from_before_comparisons_could_be_named_is_read_and_designed_anew(tmp_path):
    project = JudgingProject.create(tmp_path / "p", QUESTIONS, THREE, PASSAGES, depth=2)
    with sqlite3.connect(tmp_path / "p" / PROJECT_FILE) as connection:
        connection.execute("DELETE FROM about WHERE name = 'comparisons'")
        about = dict(connection.execute("SELECT name, value FROM about"))
        digest = digest_of_design(connection.execute, about)
        connection.execute("UPDATE about SET value = ? WHERE name = 'digest'", (digest,))
    old = JudgingProject(project.path)
    assert old.comparisons is None
    assert len(pairs_of(report_of(old))) == 3
    old.redesign("decisive", comparisons=[("good", "bad")])
    assert JudgingProject(project.path).comparisons == [("good", "bad")]
    assert old.pool().chosen.sum() == 4 * N
    old.redesign("depth-k")
    assert old.comparisons == [("good", "bad")]


def test_the_command_takes_names_with_colons_and_says_how_few_pairs_would_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, ranks in (("k1:2", (0, 1)), ("k1", (0, 2))):
        lines = [f"{q} Q0 {item} {rank} {score} x\n" for q, ranking in answers(*ranks).items()
                 for rank, (item, score) in enumerate(ranking, 1)]  # fmt: skip
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "queries.tsv").write_text("".join(f"{query.query_id}\t{query.text}\n" for query in QUESTIONS))
    corpus = "id,content\n" + "".join(f"{item.item_id},{item.content}\n" for item in PASSAGES)
    (tmp_path / "corpus.csv").write_text(corpus)
    words = ["--runs", "k1:2.trec", "--runs", "k1.trec", "--queries", "queries.tsv", "--corpus", "corpus.csv"]
    made = ended(["judge", "new", "p", *words, "--compare", "k1:2:k1"])
    assert made.code == 0, made.err
    assert JudgingProject(tmp_path / "p").comparisons == [("k1:2", "k1")]
    assert f"{2 * N} pairs would do to compare in precision@10 alone: nlp-retrieval judge design p decisive" in made.err
    refused = ended(["judge", "design", "p", "decisive", "--compare", "k1:3"])
    assert "--compare k1:3: write two systems as A:B" in refused.err
    designed = ended(["judge", "design", "p", "decisive"])
    assert f"{2 * N} pairs to judge" in designed.err


def test_a_report_decides_all_of_its_differences_together(tmp_path):
    """The oracle computes each sequence from the values by family, at 0.05 divided by the number of differences."""
    project = simulated(tmp_path / "p", THREE, lambda n, rank: rank == n % 3, questions=25)
    pool = project.pool()
    values = query_values(pool, "precision@2")
    numbers = family_numbers(pool.families)
    sums = family_sums(values.people, numbers)
    order = [number for number in project.query_order() if values.complete[number]]
    report = report_of(project, ["precision@2"])
    assert len(report.decisions) == 3
    for named in report.decisions:
        row = values.rows.index((named.system, named.baseline))
        low, high = confidence_sequence(sums[row][order], tuple(values.bounds[row]), 0.05 / 3)[-1]
        assert (named.decision.low, named.decision.high) == pytest.approx((low, high))
        alone = decide(pool, "precision@2", named.system, named.baseline, order=project.query_order())
        assert alone.low >= low
        assert alone.high <= high
    assert "At every look, all 3 together:" in ended(["judge", "report", str(project.path)]).out
    assert decided(project)
    with pytest.raises(ConfigurationError, match="together=0"):
        decide(judged(*world(8)), "precision@5", "b", "a", together=0)


def test_ten_differences_that_do_not_exist_are_all_open_in_95_percent_of_the_cases():
    """Ten sequences at once, looked at after every value; alone at 95% each, some one of them errs far more often."""
    draw = np.random.default_rng(4)
    wrong = {0.05: 0, 0.005: 0}
    for _ in range(60):
        streams = draw.choice([-0.2, 0.0, 0.2], size=(10, 50), p=[0.25, 0.5, 0.25])
        for alpha in wrong:
            ends = [confidence_sequence(stream, (-0.2, 0.2), alpha) for stream in streams]
            wrong[alpha] += any((each[:, 0] > 0).any() or (each[:, 1] < 0).any() for each in ends)
    assert wrong[0.005] <= 0.05 * 60
    assert wrong[0.05] > 0.1 * 60
