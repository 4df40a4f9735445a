"""Items, queries and gold of published collections: BEIR, HoVer, HotpotQA and the catalogue ``ir_datasets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, given, may_set
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.records import (
    JsonObject,
    as_id,
    as_text,
    as_title,
    make_item,
    make_query,
    metadata_of,
    plain_value,
    quoted,
    with_title,
)
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import DependencyError, RetrievalError, SourceError, install, nearest
from nlp_retrieval.loaders.files import read_json_lines, read_json_objects
from nlp_retrieval.loaders.judgements import Judgement, collect_judgements, judged_queries, read_judgements
from nlp_retrieval.loaders.records import RecordLoader
from nlp_retrieval.text.sentences import SENTENCE_STARTS


class BeirLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in BEIR's layout; every file may be gzip (``corpus.jsonl.gz``).

    ``corpus.jsonl`` has ``_id``, ``text`` and optionally ``title``; ``queries.jsonl`` has ``_id`` and ``text``;
    ``qrels/<split>.tsv`` has a query's id, an item's id and an integer grade. An object named ``metadata`` and all further
    fields become metadata. A ``family`` in a query's metadata is its family.

    Args:
        path: the folder; or a corpus file alone, without queries.
        split: the judgements: ``train``, ``dev``, ``test``. Queries without a judgement in it are left out.

    Examples:
        >>> loader = BeirLoader("data/scifact", split="test")
        >>> loader.config
        {'name': 'beir', 'path': 'data/scifact', 'split': 'test'}
    """

    name = "beir"
    manifest_may_set = may_set("split", path=READS_FILE)

    def __init__(self, path: str | Path, split: Annotated[str, Field(pattern=r"^\w[\w.-]*$")] = "test") -> None:
        self.path = path
        self.split = split

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items of the corpus in the order of the file."""
        folder = expanded(self.path)
        for location, row in read_json_lines(self._file("corpus.jsonl") if folder.is_dir() else folder):
            item_id, content = as_id(location, "_id", _own(location, row, "_id")), _text(location, row, "text")
            title = as_title(location, "title", row.get("title"))
            metadata = metadata_of(location, row, ("_id", "text", "title"))
            yield make_item(location, item_id, content, with_title(location, title, metadata))

    def queries(self) -> list[Query]:
        """Return the queries that are judged in the split, in the order of the file."""
        return self._judged()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order."""
        return self._judged()[1]

    def _judged(self) -> tuple[list[Query], list[Gold]]:
        qrels, path = self._file(f"qrels/{self.split}.tsv"), self._file("queries.jsonl")
        return judged_queries(path, self._read(path), read_judgements(qrels), qrels)

    def _read(self, path: Path) -> Iterator[tuple[str, Query]]:
        for location, row in read_json_lines(path):
            query_id, text = as_id(location, "_id", _own(location, row, "_id")), _text(location, row, "text")
            metadata = metadata_of(location, row, ("_id", "text"))
            family = metadata.get("family")
            known = None if family is None else as_id(location, "family", family)
            yield location, make_query(location, query_id, text, known, metadata)

    def _file(self, name: str) -> Path:
        folder = expanded(self.path)
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
        if not folder.exists():
            raise SourceError(f"{self.path}: there is no such file or folder; check path")
        there = [str(path.relative_to(folder)) for path in sorted([*folder.glob("*"), *folder.glob("qrels/*")])]
        raise SourceError(f"{self.path}: no {name} or {name}.gz in this folder (found: {quoted(there)}); check path, split")


def _own(location: str, row: JsonObject, field: str) -> JsonValue:
    """Return a field that a published collection always has."""
    if field not in row:
        raise SourceError(
            f'{location}: no "{field}" field (found: {quoted(row)}); is this the right file? JsonlLoader reads other forms'
        )
    return row[field]


def _text(location: str, row: JsonObject, field: str) -> str:
    return as_text(location, field, _own(location, row, field))


def _once(rows: Iterator[tuple[str, JsonObject]], fields: Sequence[str]) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield the entries of a release file with their ids, each of which occurs once; without one, the number of the entry."""
    locations: dict[str, str] = {}
    for location, row in rows:
        field = next((name for name in fields if name in row), None)
        entry_id = str(len(locations)) if field is None else as_id(location, field, row[field])
        if locations.setdefault(entry_id, location) is not location:
            raise SourceError(f'{location}: the id "{entry_id}" is taken by {locations[entry_id]}; ids must be unique')
        yield location, entry_id, row


def _supporting(location: str, row: JsonObject) -> list[tuple[str, JsonValue]]:
    """Return the supporting facts, in order: a title and the number of a sentence, or its text."""
    facts = row.get("supporting_facts")
    if not facts:
        raise SourceError(
            f'{location}: no "supporting_facts" (found: {quoted(row)}), so there is no gold; use the train or dev release, the '
            "test release withholds them"
        )
    pairs: list[tuple[str, JsonValue]] = []
    for fact in facts if isinstance(facts, list) else [facts]:
        match fact:
            case [str(title), sentence, *_] if title:
                pairs.append((title, sentence))
            case _:
                raise SourceError(f'{location}: "supporting_facts" is not a list of [title, sentence number] pairs')
    return pairs


class HoverLoader(BaseQueryLoader):
    """Claims and gold titles from HoVer's own release files (``hover_train_release_v1.1.json``, ``hover_dev_...``).

    Gold is keyed by title, each distinct supporting title with grade 1. Claims written from the same HotpotQA question have its
    id (``hpqa_id``) as their family. Queries have ``hops`` and ``label`` in their metadata.

    Args:
        path: the release file, one JSON list, plain or gzip.
        hops: keep only claims with these numbers of hops (HoVer has 2, 3 and 4). None: all.

    Examples:
        >>> HoverLoader("hover_dev_release_v1.1.json", hops=[3, 4])
        HoverLoader(path='hover_dev_release_v1.1.json', hops=[3, 4])
    """

    name = "hover"
    manifest_may_set = may_set("hops", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        hops: Annotated[Sequence[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None,
    ) -> None:
        self.path = path
        self.hops = hops

    def queries(self) -> list[Query]:
        """Return the kept claims, in the order of the file; the test release has claims too."""
        queries: list[Query] = []
        for location, uid, row in self._claims():
            family = row.get("hpqa_id")
            known = None if family is None else as_id(location, "hpqa_id", family)
            fields = {"hops": "num_hops", "label": "label"}
            metadata: JsonObject = {name: row[field] for name, field in fields.items() if field in row}
            queries.append(make_query(location, uid, _text(location, row, "claim"), known, metadata))
        return queries

    def gold(self) -> list[Gold]:
        """Return the supporting titles of these claims, in the same order."""
        return [
            Gold(query_id=uid, relevance={title: 1 for title, _ in _supporting(location, row)}, by="title")
            for location, uid, row in self._claims()
        ]

    def _claims(self) -> Iterator[tuple[str, str, JsonObject]]:
        kept = False
        for location, uid, row in _once(read_json_objects(self.path), ["uid"]):
            _own(location, row, "uid")
            if self.hops is None or _own(location, row, "num_hops") in self.hops:
                kept = True
                yield location, uid, row
        if not kept:
            raise SourceError(f"{self.path}: no claim fits hops={self.hops!r} (None: any); check path and filter")


class HotpotqaLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold from HotpotQA's own release files (``hotpot_dev_distractor_v1.json``).

    The contexts of all questions together are the corpus: one item per title, with the title as its id; if a title has
    different texts, the first is kept. Queries have the release's ``answer``, ``type`` and ``level`` in their metadata, if
    present.

    With ``sentence_facts``, items also have ``sentence_starts`` and queries ``supporting_facts`` in their metadata, so that an
    answer's supporting facts can be judged. To an index, items with and without them are different.

    A question's id is its ``_id``, else its ``id``, else its number in the file, from 0.

    Args:
        path: the release file, one JSON list, plain or gzip.
        sentence_facts: whether items hold the starts of the release's sentences, and queries the sentences that support the
            answer.

    Examples:
        >>> HotpotqaLoader("hotpot_dev_distractor_v1.json", sentence_facts=True)
        HotpotqaLoader(path='hotpot_dev_distractor_v1.json', sentence_facts=True)
    """

    name = "hotpotqa"
    manifest_may_set = may_set("sentence_facts", path=READS_FILE)

    def __init__(self, path: str | Path, sentence_facts: bool = False) -> None:
        self.path = path
        self.sentence_facts = sentence_facts

    def stream(self) -> Iterator[SearchableItem]:
        """Yield one item per title, in the order of first occurrence."""
        seen: set[str] = set()
        for location, row in read_json_objects(self.path):
            for title, sentences in _contexts(location, row):
                if title not in seen:
                    seen.add(title)
                    content, starts = _join(sentences)
                    metadata: JsonObject = {"title": title} | ({SENTENCE_STARTS: starts} if self.sentence_facts else {})
                    yield make_item(location, title, content, metadata)

    def queries(self) -> list[Query]:
        """Return the questions in the order of the file."""
        queries: list[Query] = []
        for location, query_id, row in self._questions():
            metadata: JsonObject = {field: row[field] for field in ("answer", "type", "level") if field in row}
            if self.sentence_facts:
                metadata["supporting_facts"] = _facts(location, query_id, row)
            queries.append(make_query(location, query_id, _text(location, row, "question"), metadata=metadata))
        return queries

    def gold(self) -> list[Gold]:
        """Return the titles that support each answer, which are item ids, in the order of the questions."""
        gold: list[Gold] = []
        titles: set[str] = set()
        wanted: dict[str, str] = {}
        for location, query_id, row in self._questions():
            titles.update(title for title, _ in _contexts(location, row))
            relevance = {title: 1 for title, _ in _supporting(location, row)}
            for title in relevance:
                wanted.setdefault(title, location)
            gold.append(Gold(query_id=query_id, relevance=relevance))
        if lost := [title for title in wanted if title not in titles]:
            raise SourceError(
                f'{wanted[lost[0]]}: the supporting fact "{lost[0]}" is in no context of the file; the fullwiki release may '
                "lack it: use the distractor release"
            )
        return gold

    def _questions(self) -> Iterator[tuple[str, str, JsonObject]]:
        return _once(read_json_objects(self.path), ["_id", "id"])


def _contexts(location: str, row: JsonObject) -> Iterator[tuple[str, list[JsonValue]]]:
    contexts = _own(location, row, "context")
    for context in contexts if isinstance(contexts, list) else [contexts]:
        match context:
            case [str(title), list(sentences)] if title.strip() and all(isinstance(sentence, str) for sentence in sentences):
                yield title, sentences
            case _:
                raise SourceError(
                    f'{location}: "context" is not a list of [title, [sentences]] pairs; is this a release file of HotpotQA?'
                )


def _facts(location: str, query_id: str, row: JsonObject) -> list[JsonValue]:
    """The supporting facts of a question by the number of the sentence, which may be told by its text."""
    numbers: dict[tuple[str, JsonValue], int] = {}
    for title, sentences in _contexts(location, row):
        for number, sentence in enumerate(sentences):
            numbers.setdefault((title, number), number)
            numbers.setdefault((title, str(sentence).strip()), number)
    read: dict[tuple[str, int], None] = {}
    for title, fact in _supporting(location, row):
        wanted = fact.strip() if isinstance(fact, str) else fact
        if not isinstance(wanted, str | int) or isinstance(wanted, bool) or (title, wanted) not in numbers:
            raise SourceError(
                f'{location}: question "{query_id}": the supporting fact [{title!r}, {fact!r:.40}] names no sentence of its '
                "contexts (numbers begin at 0); correct it, or read the file without sentence_facts"
            )
        read[title, numbers[title, wanted]] = None
    return [[title, number] for title, number in read]


def _join(sentences: list[JsonValue]) -> tuple[str, list[JsonValue]]:
    """Join sentences with a space where neither side has one; return the content, and the start of each sentence in it."""
    content = ""
    begins = []
    for sentence in map(str, sentences):
        lacks_space = content and sentence and not content[-1].isspace() and not sentence[0].isspace()
        content += " " if lacks_space else ""
        begins.append(len(content))
        content += sentence
    stripped = content.strip()
    before = len(content) - len(content.lstrip())
    return stripped, [min(max(begin - before, 0), len(stripped)) for begin in begins]


class IrDatasetsLoader(RecordLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in ``ir_datasets`` (the extra ``ir-datasets``).

    Queries that are not judged are left out. Of judgements by subtopic, the highest grade of a document counts.

    Args:
        path: the name of the data set, such as ``beir/scifact/test`` or ``msmarco-passage/trec-dl-2019/judged``.
        content_field: the field of a document that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the fields to keep as metadata. None: all the others.

    Examples:
        >>> IrDatasetsLoader("beir/scifact/test")
        IrDatasetsLoader(path='beir/scifact/test')
    """

    name = "ir_datasets"
    manifest_may_set = may_set("content_field", "title_field", "metadata_fields", path=given("load, or download, the data set"))

    def __init__(
        self,
        path: str,
        content_field: str | Sequence[str] = "text",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
    ) -> None:
        super().__init__("doc_id", content_field, title_field, metadata_fields)
        self.path = path

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the documents as objects."""
        for location, document in self._all("docs"):
            yield location, _as_row(location, document)

    def queries(self) -> list[Query]:
        """Return the queries that are judged, in the order of the data set."""
        return self._asked()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order."""
        return self._asked()[1]

    def _asked(self) -> tuple[list[Query], list[Gold]]:
        judgements = collect_judgements(self._judgements(), f"the qrels of {self.path}")
        return judged_queries(f"the queries of {self.path}", self._read(), judgements, f"the qrels of {self.path}")

    def _judgements(self) -> Iterator[Judgement]:
        for location, judged in self._all("qrels"):
            # which differs for each; the library's data cannot be corrected, so of several grades the highest counts
            yield location, str(judged.query_id), str(judged.doc_id), judged.relevance, location

    def _read(self) -> Iterator[tuple[str, Query]]:
        for location, query in self._all("queries"):
            row = _as_row(location, query)
            metadata = {name: value for name, value in row.items() if name not in ("query_id", "text")}
            yield location, make_query(location, str(query.query_id), query.default_text(), metadata=metadata)

    def _all(self, what: str) -> Iterator[tuple[str, Any]]:
        dataset = self._opened()
        if not getattr(dataset, f"has_{what}")():
            raise SourceError(
                f"{self.path}: this data set has no {what}; name the part of it that has (such as {self.path}/test)"
            )
        try:
            for number, entry in enumerate(getattr(dataset, f"{what}_iter")(), start=1):
                yield f"{self.path}, {what} {number}", entry
        except RetrievalError:
            raise
        except Exception as error:  # the library raises any, with the exceptions of all sources after a sentence
            reason = str(error.args[0] if error.args else type(error).__name__)[:200]
            raise SourceError(
                f"{self.path}: its {what} cannot be read ({reason}); where it is not downloaded, check the network, or copy "
                "the folder of ir_datasets (IR_DATASETS_HOME) from a machine that has it"
            ) from error

    def _opened(self) -> Any:
        try:
            import ir_datasets
        except ImportError:
            raise DependencyError(f"IrDatasetsLoader needs ir_datasets: {install('ir-datasets')}") from None
        try:
            return ir_datasets.load(self.path)
        except KeyError:
            known = nearest(str(self.path), ir_datasets.registry).partition(" (valid:")[0]
            raise SourceError(f"{self.path}: ir_datasets knows no data set of this name; {known[:200]}") from None


def _as_row(location: str, entry: Any) -> JsonObject:
    """A named tuple as an object; those within it too."""
    return {name: plain_value(location, name, _plain(value)) for name, value in entry._asdict().items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
