"""Figures agree with ir-measures on small random runs, by every way in, and with each other.

Runs and judgements are drawn with 1 to 6 queries and 0 to 8 documents: fewer hits than cutoffs and relevant documents, ties,
grades from -2 to 3, queries that are missing or not judged, and lists that were cut. One difference is documented: a measure
that counts all hits is compared over as many as the lists of all runs have.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from soaking import Figures

from nlp_retrieval import Benchmarker, Gold, Query, RetrievalResult, SearchableItem, TrecRun, evaluate
from nlp_retrieval.benchmarks.comparing import compare_runs
from nlp_retrieval.benchmarks.runs import read_run_folder, read_sources
from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.tables import RankedLists
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.trec import write_qrels, write_run
from nlp_retrieval.gate import Gate, GateSettings
from nlp_retrieval.reports.write import write_run_files

pytestmark = pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")

DOCUMENTS = [f"d{number}" for number in range(8)]
ITEMS = [SearchableItem(item_id=name, content=f"passage {name}") for name in DOCUMENTS]
OURS = ["P@2", "R@3", "AP", "AP@3", "nDCG", "nDCG@5", "nDCG@10", "RR", "RR@2"]
THEIRS = [
    "SetP", "SetF", "SetR", "Bpref", "infAP", "Rprec", "Success@2", "Judged@3", "IPrec@0.5",
    "nDCG(judged_only=True)@5", "AP(judged_only=True)", "nDCG(gains={1:3,2:1})@5", "P(rel=1)@2", "AP(rel=2)", "Bpref(rel=2)",
]  # fmt: skip
MEASURES = [*OURS, *THEIRS]
PER_FOLDER = 10

Grades = dict[str, dict[str, int]]
Run = dict[str, list[tuple[str, float]]]


def drawn_qrels(draw: random.Random) -> Grades:
    qrels = {
        f"q{number}": {name: draw.choice([-2, -1, 0, 0, 1, 1, 2, 3]) for name in draw.sample(DOCUMENTS, draw.randint(1, 8))}
        for number in range(draw.randint(1, 6))
    }
    some = draw.choice([*qrels])
    return qrels | {some: qrels[some] | {draw.choice(DOCUMENTS): 2}}


def drawn_run(draw: random.Random, query_ids: Sequence[str]) -> Run:
    """Lists of some of the queries, at least one of them, and of foreign ones; best first as trec_eval has it, with ties."""
    asked = draw.sample(list(query_ids), draw.randint(1, len(query_ids))) + draw.sample(["x1", "x2"], draw.randint(0, 2))
    run = {}
    for query_id in asked:
        scored = [(name, float(draw.randint(1, 5))) for name in draw.sample(DOCUMENTS, draw.randint(0, 8))]
        run[query_id] = sorted(scored, key=lambda pair: (pair[1], pair[0]), reverse=True)
    run[asked[0]] = run[asked[0]] or [("d0", 1.0)]
    return run


def by_oracle(measures: Sequence[str], qrels: Grades, run: Run, relevant_from: int) -> dict[str, list[float]]:
    """``[queries]`` by measure as it was written; ir-measures leaves out queries that score its default, 0."""
    # its programs crash where all grades are below 0; such a query scores 0 in all measures but Judged
    judged = {query_id: grades if max(grades.values()) >= 0 else {**grades, "none": 0} for query_id, grades in qrels.items()}
    positive = {query_id: {name: max(0, grade) for name, grade in grades.items()} for query_id, grades in judged.items()}
    # by rank: some of its programs break ties by id ascending, and trec_eval descending, as runs are read here
    lists = {query_id: {name: -float(rank) for rank, (name, _) in enumerate(hits)} for query_id, hits in run.items() if hits}
    values = {}
    for name in measures:
        measure = ir_measures.parse_measure(name)
        if "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
            measure = measure(rel=relevant_from)
        grades = positive if "gains" in measure.params else judged  # some gains loop for ever at -1
        column = dict.fromkeys(qrels, 0.0)
        column |= {one.query_id: one.value for one in ir_measures.iter_calc([measure], grades, lists) if one.query_id in qrels}
        values[name] = list(column.values())
    return values


def different(got: Mapping[str, Sequence[float]], expected: Mapping[str, Sequence[float]], way: str) -> list[str]:
    """What differs, in words."""
    return [
        f"{way}: {name} is {list(got[str(Measure.read(name))])}, expected {values}"
        for name, values in expected.items()
        if np.abs(np.array(got[str(Measure.read(name))]) - values).max() > 1e-9
    ]


class Stored(BaseQueryLoader):
    """Queries and judgements at hand."""

    name = "stored"

    def __init__(self, judged: list[Gold]) -> None:
        self._judged = judged

    def queries(self) -> list[Query]:
        return [Query(query_id=each.query_id, text=each.query_id, metadata={"id": each.query_id}) for each in self._judged]

    def gold(self) -> list[Gold]:
        return self._judged


class Replaying:
    """A searcher that returns a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def search(self, queries: Sequence[str], k: int) -> RankedLists:
        lists = [results_of(self._run.get(query, []))[:k] for query in queries]
        return RankedLists(queries, lists, queries)


def results_of(hits: Sequence[tuple[str, float]]) -> list[RetrievalResult]:
    return [RetrievalResult(item=SearchableItem(item_id=name, content=name), score=score) for name, score in hits]


def by_gate(folder: Path, judged: list[Gold], run: Run, relevant_from: int) -> dict[str, list[tuple[float, float]]]:
    """The values of an accepted baseline by query, each a group of its own, and of the same searcher beside it."""
    names = [name for name in MEASURES if Measure.read(name).cutoff is not None]
    margins = dict.fromkeys(names, 0.02)
    settings = GateSettings(folder / "baseline.jsonl", Stored(judged), margins, relevant_from=relevant_from, group_by="id")
    (folder / "baseline.jsonl").unlink(missing_ok=True)  # a new baseline, compared with none
    gate = Gate(settings, Replaying(run))
    gate.update("these", accept_losses=True)  # a measure may be 0
    found = {(each.measure, each.group): (each.before, each.now) for each in gate.check().measures}
    groups = [f"id={each.query_id}" for each in judged] if len(judged) > 1 else [""]  # what holds all queries is no group
    return {name: [found[str(Measure.read(name)), group] for group in groups] for name in names}


def disagreements(folder: Path, draw: random.Random, *, everywhere: bool) -> list[str]:
    """Draw runs over the same queries, and return what differs between the ways in and ir-measures.

    ``evaluate`` and a gate are asked about each; if ``everywhere``, all are also the configurations of a benchmark, and are
    compared from its folder and as files.
    """
    qrels, relevant_from = drawn_qrels(draw), draw.choice([1, 1, 2])
    judged = [Gold(query_id=query_id, relevance=grades) for query_id, grades in qrels.items()]
    runs = {f"r{number}": drawn_run(draw, [*qrels]) for number in range(PER_FOLDER)}
    write_qrels(folder / "qrels.txt", qrels)
    for name, run in runs.items():
        write_run(folder / f"{name}.trec", list(run), list(run.values()))
    expected = {name: by_oracle(MEASURES, qrels, run, relevant_from) for name, run in runs.items()}
    wrong = []
    for name, run in runs.items():
        forms = {
            "evaluate(scores)": ({query_id: dict(hits) for query_id, hits in run.items()}, qrels),
            "evaluate(file)": (folder / f"{name}.trec", folder / "qrels.txt"),
        }
        for way, (results, grades) in forms.items():
            got = evaluate(results, grades, MEASURES, relevant_from=relevant_from).per_query
            wrong += different(got, expected[name], way)
        asked = [query_id for query_id in qrels if query_id in run]
        if max(grade for query_id in asked for grade in qrels[query_id].values()) < relevant_from:
            continue
        searched = evaluate(Replaying(run).search(list(run), 10), judged, MEASURES, relevant_from=relevant_from)
        assert (searched.query_ids, searched.unasked) == (asked, len(qrels) - len(asked))
        places = [list(qrels).index(query_id) for query_id in asked]
        of_asked = {key: [values[place] for place in places] for key, values in expected[name].items()}
        wrong += different(searched.per_query, of_asked, "evaluate(search)")
        of_gate = by_gate(folder, judged, run, relevant_from) if any(run.get(query_id) for query_id in qrels) else {}
        wrong += [
            f"gate: {key} is {values}, expected {expected[name][key]}"
            for key, values in of_gate.items()
            if np.abs(np.array(values) - np.array(expected[name][key])[:, None]).max() > 1e-9
        ]
    return wrong + (_of_benchmarks(folder, judged, runs, expected, relevant_from, draw) if everywhere else [])


def _of_benchmarks(
    folder: Path,
    judged: list[Gold],
    runs: Mapping[str, Run],
    expected: Mapping[str, dict[str, list[float]]],
    relevant_from: int,
    draw: random.Random,
) -> list[str]:
    wrong: list[str] = []
    qrels = {each.query_id: dict(each.relevance) for each in judged}
    depth = draw.choice([8, 100])
    benchmark = Benchmarker(
        {name: TrecRun(str(folder / f"{name}.trec")) for name in runs}, ITEMS, Stored(judged).queries(), judged,
        measures=[name for name in MEASURES if (Measure.read(name).cutoff or 0) <= depth], depth=depth,
        relevant_from=relevant_from, index_path=folder / "index", resamples=10,
    )  # fmt: skip
    ran = benchmark.run()
    write_run_files(ran, folder / "run")
    of_folder = compare_runs(read_sources([str(folder / "run")]))
    for name in runs:
        known = {key: values for key, values in expected[name].items() if str(Measure.read(key)) in ran.per_query[name]}
        wrong += different(ran.per_query[name], known, "benchmark")
        wrong += different(read_run_folder(folder / "run").evaluations[name].per_query, known, "its folder")
        wrong += different(of_folder.per_query[name], known, "compare(folder)")
    files = compare_runs(
        read_sources([str(folder / f"{name}.trec") for name in runs], folder / "qrels.txt"),
        measures=MEASURES,
        relevant_from=relevant_from,
    )
    shortest = min(max(map(len, run.values())) for run in runs.values())
    for name, run in runs.items():
        near = by_oracle(MEASURES, qrels, {query_id: hits[:shortest] for query_id, hits in run.items()}, relevant_from)
        known = {key: near[key] if Measure.read(key).counts_all else values for key, values in expected[name].items()}
        wrong += different(files.per_query[name], known, "compare(files)")
    return wrong


@pytest.mark.parametrize("part", range(5))
def test_evaluate_and_gate_agree_with_ir_measures(part: int, tmp_path: Path) -> None:
    for seed in range(8 * part, 8 * part + 8):
        assert disagreements(tmp_path, random.Random(seed), everywhere=False) == []


@pytest.mark.parametrize("seed", range(100, 110))
def test_a_benchmark_its_folder_and_comparisons_agree_with_them(seed: int, tmp_path: Path) -> None:
    assert disagreements(tmp_path, random.Random(seed), everywhere=True) == []


@pytest.mark.soak
def test_they_agree_on_20_000_runs_and_none_ends_the_process(figures: Figures, tmp_path: Path) -> None:
    """Each part in a process of its own: the programs behind ir-measures are written in C."""
    code = "import random, sys, tempfile, pathlib; from evaluation.test_agreement import disagreements\n"
    code += "for seed in range(int(sys.argv[1]), int(sys.argv[1]) + 100):\n"
    code += "    with tempfile.TemporaryDirectory() as folder:\n"
    code += "        for line in disagreements(pathlib.Path(folder), random.Random(seed), everywhere=seed % 10 == 0): "
    code += "print(seed, line)\n"
    tests = Path(__file__).parent.parent
    parts = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(begin)], cwd=tests, capture_output=True, text=True, check=False
        )
        for begin in range(1_000, 3_000, 100)
    ]
    whole = sum(part.returncode == 0 and not part.stdout for part in parts)
    figures.add("Figures", "100 folders of 10 small random runs against ir-measures", len(parts), whole)
    assert [(part.returncode, part.stdout, part.stderr[-500:]) for part in parts if part.returncode or part.stdout] == []
