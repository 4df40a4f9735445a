"""A key or a password that stands in a configuration, an address or the environment is written nowhere and said nowhere."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker, collection, configuration
from cli.commands import run as run_command
from hashed_words import HashedWords, items_of

from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    PgvectorRetriever,
    RetrievalError,
    Searcher,
)
from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.secrets import HIDDEN, read_variable, without_secrets
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.loaders.database import DatabaseLoader
from nlp_retrieval.reports.write import write_run_files

SECRET = "tr0ub4dor-and-3-horses"
FORMS = {
    "openai": "sk-proj-abcdefghijklmnopqrstuvwx",
    "github": "ghp_abcdefghijklmnopqrstuvwx",
    "amazon": "AKIAIOSFODNN7EXAMPLE",
    "web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "user and password": f"https://me:{SECRET}@host/v1",
    "password alone": f"redis://:{SECRET}@host/0",
    "setting": f"postgresql://host/db?sslmode=on&sslpassword={SECRET}",
    "bearer": f"Authorization: Bearer {SECRET}",
    "basic": f"Authorization: Basic {SECRET}",
}


class Keyed(BaseUserQueryProcessor):
    """A plug-in that holds what it should not: a key, and an address with one in it.

    Args:
        api_key: a key.
        address: of a server.
        headers: sent with every request.
    """

    name = "keyed"

    def __init__(
        self, api_key: str = SECRET, address: str = FORMS["user and password"], headers: dict[str, str] | None = None
    ) -> None:
        self.api_key = api_key
        self.address = address
        self.headers = headers

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [[nlq] for nlq in nlqs]


OPAQUE = "Zx9Qw8Er7Ty6Ui5Op4As3D"
"""A key that has no form of its own."""
SPELLINGS = (
    *(f"{OPAQUE[:5]}{sign}Bearer {OPAQUE}".join(["Bearer x2345678", ""]) for sign in ",;|<"),
    *(f"Bearer{between}{OPAQUE}" for between in ("\t", "%20", "=")),
    f"curl -H 'X-API-Key: {OPAQUE}' https://a.org",
    f"Cookie: theme=dark; session={OPAQUE}",
    f"OPENAI_API_KEY={OPAQUE}",
    f"https%3A%2F%2Fa.org%3Fapi_key%3D{OPAQUE}%26x",
    *(
        f"-----BEGIN RSA PRIVATE KEY-----\n{head}{OPAQUE}\n-----END RSA PRIVATE KEY-----"
        for head in ("", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n")
    ),
)


def test_a_key_is_hidden_in_every_spelling_also_in_json_within_json(subtests: pytest.Subtests) -> None:
    values: list[object] = [
        *SPELLINGS,
        json.dumps({"Authorization": f"Basic {OPAQUE}=="}),
        json.dumps({"password": OPAQUE, "more": {"x-api-key": OPAQUE}}),
        json.dumps([f"Bearer {SECRET}-{OPAQUE}-{number}" for number in range(4)], separators=(",", ":")),
    ]
    for value in values:
        with subtests.test(value=value):
            for text in (value, json.dumps(value), json.dumps({"query": json.dumps({"body": value})})):
                shown = without_secrets(text)
                assert OPAQUE not in json.dumps(shown)
                if text is not value:
                    json.loads(shown)


def test_prose_about_keys_is_left_as_it_is() -> None:
    for text in (
        "the ring bearer of Gondor",
        "Password: the film of 2016",
        "sort_key=year",
        'Her secret: "I never learned to swim."',
        '{"password": {"type": "string"}}',
    ):
        assert without_secrets(text) == text


def test_what_looks_like_a_secret_is_hidden_wherever_it_stands(subtests: pytest.Subtests) -> None:
    for form, text in FORMS.items():
        with subtests.test(form=form):
            secret = SECRET if SECRET in text else text
            for value in (text, f"before {text} after", {"a": [{"b": text}]}, (text,)):
                assert secret not in json.dumps(without_secrets(value))
                assert HIDDEN in json.dumps(without_secrets(value))


def test_what_the_environment_holds_is_hidden_whatever_it_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"https://host/{SECRET}/v1"
    assert without_secrets(base) == base
    monkeypatch.setenv("SOME_SERVICE_TOKEN", SECRET)
    assert without_secrets({"base_url": base}) == {"base_url": f"https://host/{HIDDEN}/v1"}
    monkeypatch.setenv("MY_PASSWORD", "fox")  # a plain word, which is not a secret worth the name
    assert without_secrets("red fox") == "red fox"


def test_repr_and_errors_of_a_component_show_no_secret() -> None:
    component = Keyed(api_key=SECRET, address=f"https://{SECRET}@host", headers={"Authorization": f"Bearer {SECRET}"})
    searcher = Searcher([FaissRetriever(HashedWords(api_key=SECRET))], processor=component)
    for text in (repr(component), str(component), repr(searcher)):
        assert SECRET not in text
    with pytest.raises(ConfigurationError) as found:
        Keyed(headers={"token": [SECRET]})  # type: ignore[dict-item]
    assert SECRET not in str(found.value)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Everything that indexing and a benchmark with secrets write, and what they log and say."""
    folder = tmp_path_factory.mktemp("secrets")
    with closing(sqlite3.connect(folder / "docs.db")) as connection:
        connection.execute("CREATE TABLE docs (id TEXT, content TEXT)")
        connection.executemany("INSERT INTO docs VALUES (?, ?)", [(f"d{n}", f"fox whale number{n}") for n in range(80)])
        connection.commit()
    said: list[str] = []
    logged: list[str] = []
    handler = logging.Handler(0)
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    before = os.environ.get("SOME_SERVICE_TOKEN")
    os.environ["SOME_SERVICE_TOKEN"] = f"{SECRET}-env"
    try:
        run = benchmarker(
            folder / "out" / "index",
            searchers={
                "plain": Searcher([Bm25Retriever()]),
                "keyed": Searcher([FaissRetriever(HashedWords(api_key=SECRET))], processor=Keyed()),
                "broken": Searcher([Bm25Retriever()], processor=Broken()),
            },
            loader=DatabaseLoader(f"sqlite:///file:{folder / 'docs.db'}?uri=true&password={SECRET}", table="docs"),
            queries=QUERIES,
            gold=GOLD,
            stage_folder=folder / "out" / "stages",
            on_progress=said.append,
            query_loader={"name": "database", "url": f"postgresql://me:{SECRET}@host/db"},
        ).run()
        write_run_files(run, folder / "out" / "run")
    finally:
        logging.getLogger().removeHandler(handler)
        os.environ.pop("SOME_SERVICE_TOKEN") if before is None else os.environ.update(SOME_SERVICE_TOKEN=before)
    return folder / "out", "\n".join([*said, *logged])


class Broken(Keyed):
    """Fails with a message that tells."""

    name = "broken"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        raise RetrievalError(f"https://me:{SECRET}@host does not answer (token {SECRET}-env)")


def test_nothing_that_a_benchmark_leaves_behind_holds_a_secret(written: tuple[Path, str]) -> None:
    folder, said = written
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {".html", ".json", ".parquet", ".trec", ".md", ".tex", ".stage", ".arrow", ".npy"} <= {path.suffix for path in files}
    contents = {path: path.read_bytes() for path in files}
    contents |= {path: zlib.decompress(contents[path].partition(b"\n")[2]) for path in files if path.suffix == ".stage"}
    assert [path for path, content in contents.items() if SECRET.encode() in content] == []
    assert SECRET not in said


HOSTILE_ADDRESSES = [
    f"host='db.internal {SECRET}",
    f"postgresql://a:{SECRET}@[x/d",
    f"host=127.0.0.1 port=1 user=alice dbname=ledger password='{SECRET}'",
]


@pytest.mark.parametrize("ask", [
    lambda url: PgvectorRetriever(HashedWords(8), url=url).index(items_of(["red fox"]), Path("unused")),
    lambda url: DatabaseLoader(url, table="docs").load(),
], ids=["pgvector", "database"])  # fmt: skip
def test_no_part_of_what_a_variable_holds_is_quoted(
    ask: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in HOSTILE_ADDRESSES:
        monkeypatch.setenv("DBU", value)
        with pytest.raises(RetrievalError, match="env:DBU") as found:
            ask("env:DBU")
        error: BaseException | None = found.value
        while error is not None:
            said = "" if error is not found.value and error.__suppress_context__ else str(error)
            for part in ("correct", "horse", "battery", "tr0ub4dor", "db.internal", "alice", "ledger", "batteries"):
                assert part not in said, value
            error = None if error.__suppress_context__ else error.__cause__ or error.__context__


def test_a_variable_that_was_read_is_hidden_in_every_text_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBU", "plain-9x")
    monkeypatch.setenv("OTHER", "correct horse battery")
    assert [read_variable(name) for name in ("DBU", "OTHER", "NO_SUCH_NAME")] == ["plain-9x", "correct horse battery", ""]
    shown = without_secrets(["a plain-9x, correct horse battery!", "plain-9xy"])
    assert shown == [f"a {HIDDEN}, {HIDDEN}!", "plain-9xy"]
    monkeypatch.setenv("KEY_OF_A_LOCAL_SERVER", "none")
    assert without_secrets(f"weighting={read_variable('KEY_OF_A_LOCAL_SERVER')}") == "weighting=none"


def test_the_manifest_of_an_index_and_its_errors_show_no_secret(tmp_path: Path) -> None:
    Searcher([FaissRetriever(HashedWords(api_key=SECRET))]).index(items_of(["red fox"]), tmp_path / "index")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []
    with pytest.raises(IndexMismatchError) as found:
        Searcher([FaissRetriever(HashedWords(api_key=f"{SECRET}2", seed=5))]).open(tmp_path / "index")
    assert SECRET not in str(found.value)


def test_a_language_model_takes_no_key(subtests: pytest.Subtests) -> None:
    addresses = (FORMS["user and password"], f"https://host/v1?api_key={SECRET}", f"https://{FORMS['github']}@host/v1")
    settings = [{"base_url": address} for address in addresses]
    for given_settings in (*settings, {"api_key_env": FORMS["openai"]}):
        with subtests.test(settings=given_settings):
            with pytest.raises(ConfigurationError) as found:
                LanguageModel("openai/model", **given_settings)  # type: ignore[arg-type]
            assert SECRET not in str(found.value)
            assert FORMS["openai"] not in str(found.value)


def test_a_command_that_fails_says_no_secret(tmp_path: Path) -> None:
    path = configuration(tmp_path, collection(tmp_path / "data"))
    text = path.read_text().replace(f"path: {tmp_path / 'data'}", f"path: https://me:{SECRET}@host/{SECRET}", 1)
    path.write_text(text)
    done = run_command("benchmark", str(path), folder=tmp_path, SOME_SERVICE_TOKEN=SECRET)
    assert done.returncode != 0
    assert "error: " in done.stderr
    assert HIDDEN in done.stderr
    assert SECRET not in done.stdout + done.stderr
