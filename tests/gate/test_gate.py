"""A gate compares a searcher with its accepted baseline, says why it became worse, and refuses a baseline of something else."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from nlp_retrieval import BeirLoader, Bm25Retriever, SearchableItem, Searcher, TopicsLoader
from nlp_retrieval.cli.app import app
from nlp_retrieval.errors import ConfigurationError, GoldError, RetrievalWarning, SourceError
from nlp_retrieval.gate import Gate, GateSettings, read_gate
from nlp_retrieval.gate.baseline import read_baseline
from nlp_retrieval.gate.checking import GateReport
from nlp_retrieval.gate.verdict import MeasureVerdict, overall
from nlp_retrieval.gate.writing import as_json, headline, junit, lines_of, markdown

WORDS = [a + b for a in "ba be bi bo bu ka ke ki ko ku la le li lo lu".split() for b in "mon rat sil tak vor den gup".split()]


def corpus(n: int = 120) -> list[SearchableItem]:
    rng = random.Random(3)
    return [
        SearchableItem(item_id=f"d{number}", content=" ".join(rng.choices(WORDS, k=14) + [f"topic{number}"] * 2))
        for number in range(n)
    ]


ITEMS = corpus()


@pytest.fixture
def queries(tmp_path: Path) -> BeirLoader:
    rng = random.Random(4)
    folder = tmp_path / "queries"
    (folder / "qrels").mkdir(parents=True)
    lines, qrels = [], ["query-id\tcorpus-id\tscore"]
    for number, item in enumerate(ITEMS[:100]):
        text = " ".join(rng.sample(item.content.split()[:14], 3))
        lines.append(json.dumps({"_id": f"q{number}", "text": text, "metadata": {"half": "even odd".split()[number % 2]}}))
        qrels.append(f"q{number}\t{item.item_id}\t1")
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n")
    return BeirLoader(folder)


def searcher(folder: Path, items: list[SearchableItem] = ITEMS, **settings: object) -> Searcher:
    made = Searcher([Bm25Retriever(**settings)])  # type: ignore[arg-type]
    made.index(items, folder)
    return made


@pytest.fixture
def settings(queries: BeirLoader, tmp_path: Path) -> GateSettings:
    return GateSettings(tmp_path / "base.jsonl", queries, {"ndcg@10": 0.05, "recall@10": 0.05})


@pytest.fixture
def accepted(settings: GateSettings, tmp_path: Path) -> GateSettings:
    Gate(settings, searcher(tmp_path / "accepted")).update("the first")
    return settings


def test_the_same_searcher_passes_and_the_file_is_readable(accepted: GateSettings, tmp_path: Path) -> None:
    report = Gate(accepted, searcher(tmp_path / "again")).check()
    assert (report.verdict, bool(report), report.same, report.agreement) == ("no worse", True, 100, 1.0)
    assert (report.changes, report.lost) == ([], [])
    head, *lines = Path(accepted.baseline).read_text().splitlines()
    assert json.loads(head)["reason"] == "the first"
    assert sum(line.startswith('{"query_id"') for line in lines) == 100


def shuffled(items: list[SearchableItem]) -> list[SearchableItem]:
    contents = [item.content for item in items]
    random.Random(1).shuffle(contents)
    return [SearchableItem(item_id=item.item_id, content=text) for item, text in zip(items, contents, strict=True)]


@pytest.mark.parametrize(
    ("items", "settings_of_retriever", "kind", "detail"),
    [
        (ITEMS[60:], {}, "corpus", "120 -> 60 items"),
        (shuffled(ITEMS), {}, "corpus", "119 have another text"),
        ([*(SearchableItem(item_id=f"copy{n}-{i.item_id}", content=i.content) for n in range(9) for i in ITEMS), *ITEMS], {},
         "corpus", "have the text of another one"),
        (ITEMS, {"b": 1.0, "k1": 0.0}, "settings", "retrievers[0].k1: 0.9 -> 0.0"),
    ],
)  # fmt: skip
def test_what_became_worse_is_seen_with_the_reason_first(
    accepted: GateSettings, tmp_path: Path, items: list[SearchableItem], settings_of_retriever: dict[str, float], kind: str,
    detail: str,
) -> None:  # fmt: skip
    report = Gate(accepted, searcher(tmp_path / "now", items, **settings_of_retriever)).check()
    assert report.changes[0].kind == kind
    assert detail in " ".join(change.detail for change in report.changes)
    if kind == "corpus":
        assert (report.verdict, report.passes) == ("worse", False)
        assert report.lost[0].before > report.lost[0].now
        assert report.lost[0].documents[0].before <= 10


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda text: text.replace('"d1"', '"d2"', 1), "was edited since it was written"),
        (lambda text: text.replace("\n", "\n<<<<<<< ours\n", 1), r":2 has the mark of a merge conflict \(<<<<<<<\)"),
        (lambda text: text.replace('"format": 4', '"format": 3', 1), "was made by another version of nlp_retrieval"),
        (lambda text: text[: len(text) // 2], "a line of it was lost"),
        (lambda _: "baseline: base.jsonl\n", "is no baseline"),
    ],
)
def test_a_baseline_that_was_changed_by_hand_is_refused(accepted: GateSettings, how: Callable[[str], str], said: str) -> None:
    path = Path(accepted.baseline)
    path.write_text(how(path.read_text()))
    with pytest.raises(SourceError, match=said) as refused:
        read_baseline(path)
    assert "--update --reason" in str(refused.value)


def test_a_baseline_of_other_queries_or_another_corpus_is_refused(accepted: GateSettings, tmp_path: Path) -> None:
    path = Path(str(accepted.query_loader.config["path"])) / "queries.jsonl"
    text = path.read_text()
    for changed, said in (
        ("\n".join(text.splitlines()[:-3]) + "\n", "3 of 100 queries of .* are gone .*'q97'"),
        (text.replace('"text": "', '"text": "really ', 1), "1 of 100 queries of .* have another text .*'q0'"),
    ):
        path.write_text(changed)
        other = GateSettings(accepted.baseline, TopicsLoader(path), accepted.margins)
        with pytest.raises(ConfigurationError, match=said):
            Gate(other, searcher(tmp_path / "again")).check()
    path.write_text(text)
    others = [SearchableItem(item_id=f"other{item.item_id}", content=item.content) for item in ITEMS]
    with pytest.raises(ConfigurationError, match=r"none of the .* items of .* is in the index"):
        Gate(accepted, searcher(tmp_path / "other", others)).check()


def test_gold_that_changed_is_used_for_both_sides(accepted: GateSettings, tmp_path: Path) -> None:
    path = Path(str(accepted.query_loader.config["path"])) / "qrels" / "test.tsv"
    path.write_text(re.sub(r"d(\d)\t", r"d10\1\t", path.read_text()))
    report = Gate(accepted, searcher(tmp_path / "again")).check()
    assert [(change.kind, "gold of 10 queries" in change.detail) for change in report.changes] == [("gold", True)]
    assert {each.difference for each in report.measures} == {0.0}
    assert "gold of 10 queries changed" in Gate(accepted, searcher(tmp_path / "again")).update("other gold")[0]


def test_a_baseline_is_renewed_only_by_who_sees_what_it_costs(accepted: GateSettings, tmp_path: Path) -> None:
    kept = Path(accepted.baseline).read_bytes()
    same = Gate(accepted, searcher(tmp_path / "again")).update("nothing changed")
    assert re.fullmatch(r"nDCG@10: 0\.\d{3} -> 0\.\d{3} \(\+0\.000\)", same[0])
    renewed = Path(accepted.baseline).read_bytes()
    assert renewed != kept
    prefixed = [SearchableItem(item_id=f"v2-{item.item_id}", content=item.content) for item in ITEMS]
    for name, items, error, said in (
        ("prefixed", prefixed, GoldError, "100 of 100 relevant documents.* stays as it is"),
        ("less", ITEMS[5:], GoldError, "5 of 100 relevant documents.* stays as it is"),
        ("shuffled", shuffled(ITEMS), ConfigurationError, "falls from .* by more than its margin of 0.05.* stays as it is"),
    ):
        gate = Gate(accepted, searcher(tmp_path / name, items))
        with pytest.raises(error, match=said):
            gate.update("all well")
        assert Path(accepted.baseline).read_bytes() == renewed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetrievalWarning)
            assert gate.update("on purpose", accept_losses=True)
        Path(accepted.baseline).write_bytes(renewed)
    for settings in (replace(accepted, k=10), replace(accepted, margins={"recall@20": 0.05})):
        said = Gate(settings, searcher(tmp_path / "again")).update("deeper")
    assert said[0] == "the earlier baseline keeps 10 hits a query, so what needs more cannot be compared"
    Path(accepted.baseline).write_text("damaged")
    assert "cannot be compared" in Gate(accepted, searcher(tmp_path / "again")).update("a new one")[0]


def test_looks_follow_the_number_of_queries_unless_they_are_set(accepted: GateSettings, tmp_path: Path) -> None:
    """A fall beyond the margin in 100 queries is found at 10 looks, and is not at 100."""
    verdicts = {}
    for looks in (None, 100, 1):
        report = Gate(replace(accepted, looks=looks), searcher(tmp_path / "worse", ITEMS[9:])).check()
        verdicts[looks] = (report.looks, report.verdict)
    assert verdicts == {None: (10, "worse"), 100: (100, "fell"), 1: (1, "worse")}


def test_a_group_that_gained_is_not_said_to_have_fallen_and_rows_of_junit_are_by_their_own_verdict() -> None:
    def report(*differences: float) -> GateReport:
        measures = [
            MeasureVerdict(
                "ndcg@10", group, 5, 0.5, 0.5 + change, -0.2, 0.03, 0.3, 40, "fell" if change < -0.03 else "cannot tell"
            )
            for group, change in zip(("", "hops=2", "hops=3"), differences, strict=False)
        ]
        return GateReport(overall(measures), False, measures, 0.9, 3, 15, [], [])

    assert headline(report(-0.01, 0.1)) == (
        "Cannot tell: nDCG@10 fell, and may have lost more than the margin; about 40 more queries could tell."
    )
    assert headline(report(0.01, 0.1)).startswith(
        "Cannot tell: nDCG@10 and nDCG@10, hops=2 did not fall, but so few queries do"
    )
    mixed = report(-0.01, 0.1, -0.2)
    assert (
        headline(mixed) == "Beyond the margin, and whether by chance cannot be told: nDCG@10, hops=3 fell from 0.500 to 0.300."
    )
    cases = ElementTree.fromstring(junit(mixed)).findall("testcase")
    assert [(case.get("name"), case.find("failure") is not None) for case in cases] == [
        ("nDCG@10", False), ("nDCG@10, hops=2", False), ("nDCG@10, hops=3", True)
    ]  # fmt: skip


def test_no_line_of_a_report_is_a_command_to_a_runner(accepted: GateSettings, tmp_path: Path, monkeypatch) -> None:
    path = Path(str(accepted.query_loader.config["path"]))
    monkeypatch.chdir(tmp_path)
    for name in ("queries.jsonl", "qrels/test.tsv"):
        (path / name).write_text(re.sub(r"\bq(\d)", r"::error::##[add-mask]q\1", (path / name).read_text()))
    for folder, items in (("index", ITEMS), ("other", ITEMS[60:])):
        lines = [json.dumps({"id": item.item_id, "content": item.content}) for item in items]
        Path("corpus.jsonl").write_text("\n".join(lines))
        Path("gate.yaml").write_text(CONFIG.replace("index: index", f"index: {folder}"))
        done = CliRunner().invoke(app, ["gate", "gate.yaml", *(["--update"] if folder == "index" else [])])
    assert ": :error::## [add-mask]q" in done.stdout, done.output
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in done.stdout.splitlines())


def test_without_gold_agreement_is_a_tripwire_that_claims_no_quality(accepted: GateSettings, tmp_path: Path) -> None:
    asked = TopicsLoader(Path(str(accepted.query_loader.config["path"])) / "queries.jsonl")
    for act in (Gate.check, lambda gate: gate.update("without gold")):
        with pytest.raises(ConfigurationError, match=r"100 queries of .* had gold, and now none has"):
            act(Gate(GateSettings(accepted.baseline, asked, accepted.margins), searcher(tmp_path / "gone")))
    with pytest.raises(ConfigurationError, match=r"'nDCG@10' is ndcg@10, which has a margin already"):
        replace(accepted, margins={"ndcg@10": 0.02, "nDCG@10": 0.5})
    with pytest.raises(ConfigurationError, match=r"ndcg@10 has 1e-300, and it must be at least 0\.000003"):
        replace(accepted, margins={"ndcg@10": 1e-300})
    with pytest.raises(ConfigurationError, match="the gate has no margins"):
        Gate(GateSettings(tmp_path / "no.jsonl", accepted.query_loader), searcher(tmp_path / "gone"))
    blind = GateSettings(tmp_path / "blind.jsonl", asked)
    Gate(blind, searcher(tmp_path / "first")).update("without gold")
    report = Gate(blind, searcher(tmp_path / "again")).check()
    assert (report.verdict, report.passes, report.agreement) == (None, True, 1.0)
    other = Gate(blind, searcher(tmp_path / "now", ITEMS[60:])).check()
    assert (other.verdict, other.passes) == (None, False)
    printed = "\n".join(lines_of(other))
    assert re.search(r"Rankings agree with those of the baseline by 0\.\d\d of 1, which is too little", printed)
    assert "says nothing about quality" in printed
    assert f"Queries whose results changed most:\n  {other.lost[0].query_id}: agreement " in printed
    assert other.lost[0].text in printed


def test_reports_hold_the_verdict_and_no_markup_of_a_query(accepted: GateSettings, tmp_path: Path) -> None:
    path = Path(str(accepted.query_loader.config["path"])) / "queries.jsonl"
    hostile = ITEMS[0].content.split()[0] + " </testsuite> <script> ```` | [x](http://e.org) \\u0007"
    path.write_text(re.sub(r'("_id": "q0", "text": ")[^"]*', lambda at: at[1] + hostile, path.read_text(), count=1))
    Gate(accepted, searcher(tmp_path / "a")).update("again")
    report = Gate(accepted, searcher(tmp_path / "b", ITEMS[60:])).check()
    assert "&lt;script&gt; ````" in (page := MarkdownIt().render(markdown(report)))
    assert "<script>" not in page
    assert "<a " not in page
    suite = ElementTree.fromstring(junit(report))
    assert [suite.get("tests"), suite.get("failures")] == ["2", "2"]
    assert "what changed" in (suite[0][0].text or "").lower()
    assert json.loads(as_json(report))["verdict"] == "worse"


CONFIG = """
baseline: base.jsonl
queries: {loader: beir, path: queries}
corpus: {loader: jsonl, path: corpus.jsonl}
index: index
searcher: {retrievers: [bm25]}
margins: {ndcg@10: 0.05}
"""


def test_the_command_updates_checks_and_fails(queries: BeirLoader, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": item.item_id, "content": item.content}) for item in ITEMS]
    Path("corpus.jsonl").write_text("\n".join(lines))
    Path("gate.yaml").write_text(CONFIG)
    runner = CliRunner()
    assert runner.invoke(app, ["gate", "gate.yaml"]).exit_code == 2
    assert "it exists and is not a file" in runner.invoke(app, ["gate", "missing.yaml", "--json", "."]).stderr
    assert runner.invoke(app, ["gate", "gate.yaml", "--update", "--reason", "first"]).exit_code == 0
    Path("gate.yaml").write_text(CONFIG.replace("{retrievers: [bm25]}", "bm25"))
    same = runner.invoke(app, ["gate", "gate.yaml"])
    assert (same.exit_code, same.stdout.startswith("PASS  No worse")) == (0, True)
    Path("corpus.jsonl").write_text("\n".join(lines[60:]))
    other = runner.invoke(app, ["gate", "gate.yaml"])
    assert (other.exit_code, "or index with --replace to overwrite" in other.stderr) == (3, True)
    Path("gate.yaml").write_text(CONFIG.replace("index: index", "index: other"))
    worse = runner.invoke(app, ["gate", "gate.yaml", "--markdown", "a.md", "--junit", "a.xml", "--json", "a.json"])
    assert (worse.exit_code, worse.stdout.startswith("FAIL  Worse: nDCG@10 fell")) == (1, True)
    asked = runner.invoke(app, ["gate", "gate.yaml", "--update", "--reason", "a smaller corpus"])
    assert (asked.exit_code, "or pass --accept-losses" in asked.stderr) == (2, True)
    taken = runner.invoke(app, ["gate", "gate.yaml", "--update", "--reason", "a smaller corpus", "--accept-losses"])
    assert (taken.exit_code, "nDCG@10: 0." in taken.stderr) == (0, True)
    assert all(Path(name).stat().st_size for name in ("a.md", "a.xml", "a.json"))
    assert read_gate("gate.yaml").margins == {"ndcg@10": 0.05}


def test_the_pytest_plug_in_gives_the_same_verdict(accepted: GateSettings, tmp_path: Path) -> None:
    searcher(tmp_path / "good")
    searcher(tmp_path / "bad", ITEMS[60:])
    (tmp_path / "gate.yaml").write_text(CONFIG)
    (tmp_path / "test_search.py").write_text(
        "import pytest\nfrom nlp_retrieval import Searcher\n"
        "@pytest.mark.parametrize('folder', ['good', 'bad'])\n"
        "def test_search(retrieval_gate, folder):\n    retrieval_gate(Searcher.open(folder), 'gate.yaml')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_search.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAIL  Worse: nDCG@10 fell" in done.stdout
    done = subprocess.run([*command, "--update-gate", "new"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "base.jsonl was renewed by test_search.py::test_search[good]; give each test a baseline" in done.stdout
