"""Items, queries and gold of published collections: BEIR, HoVer, HotpotQA and the catalogue ``ir_datasets``."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, given, may_set
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.records import (
    JsonObject,
    as_id,
    as_text,
    as_title,
    kind,
    make_item,
    make_query,
    metadata_of,
    plain_value,
    quoted,
    with_title,
)
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import DependencyError, RetrievalError, RetrievalWarning, SourceError, install, nearest
from nlp_retrieval.loaders.files import read_json_lines, read_json_objects
from nlp_retrieval.loaders.judgements import Judgement, collect_judgements, judged_queries, read_judgements
from nlp_retrieval.loaders.records import RecordLoader, joined_text, released_field, supporting_titles, without_fields
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
        for location, row in read_json_lines(self._corpus()):
            item_id, content = _id_and_text(location, row)
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
        qrels, path = self._qrels(), self._file("queries.jsonl")
        return judged_queries(path, self._read(path), read_judgements(qrels, "tsv"), qrels)

    def _read(self, path: Path) -> Iterator[tuple[str, Query]]:
        for location, row in read_json_lines(path):
            query_id, text = _id_and_text(location, row)
            metadata = metadata_of(location, row, ("_id", "text"))
            family = metadata.get("family")
            known = None if family is None else as_id(location, "family", family)
            yield location, make_query(location, query_id, text, known, metadata)

    def _corpus(self) -> Path:
        return self._file("corpus.jsonl") if self._folder().is_dir() else self._folder()

    def _qrels(self) -> Path:
        self._require_folder("qrels")
        folder = self._folder() / "qrels"
        for path in (folder / f"{self.split}.tsv", folder / f"{self.split}.tsv.gz"):
            if path.is_file():
                return path
        splits = {path.name.split(".tsv")[0] for path in folder.glob("*.tsv*")}
        raise SourceError(f'{folder}: no judgements for split "{self.split}"; {nearest(self.split, splits)}')

    def _file(self, name: str) -> Path:
        self._require_folder(name)
        for path in (self._folder() / name, self._folder() / f"{name}.gz"):
            if path.is_file():
                return path
        existing = sorted(path.name for path in self._folder().iterdir())
        raise SourceError(f"{self.path}: no {name} or {name}.gz in this folder (found: {quoted(existing)})")

    def _require_folder(self, wanted: str) -> None:
        folder = self._folder()
        if folder.is_dir():
            return
        if folder.exists():
            raise SourceError(
                f"{self.path}: this is only a corpus file, without queries and gold; "
                f"pass the folder that holds {wanted}, or another query loader"
            )
        raise SourceError(f"{self.path}: no such folder; check the path (the current folder is {str(Path.cwd())!r})")

    def _folder(self) -> Path:
        return Path(self.path).expanduser()


def _id_and_text(location: str, row: JsonObject) -> tuple[str, str]:
    for field in ("_id", "text"):
        if field not in row:
            raise SourceError(
                f'{location}: no "{field}" field (found: {quoted(row)}); BEIR\'s rows have "_id" and "text", '
                "JsonlLoader reads items of other layouts"
            )
    return as_id(location, "_id", row["_id"]), as_text(location, "text", row["text"])


_HOVER_NO_GOLD = "HoVer's test release withholds the supporting facts: use the train or dev release"


class HoverLoader(BaseQueryLoader):
    """Claims and gold titles from HoVer's own release files (``hover_train_release_v1.1.json``, ``hover_dev_...``).

    Gold is keyed by title, each distinct supporting title with grade 1. Claims written from the same HotpotQA question have its
    id (``hpqa_id``) as their family. Queries have ``hops`` and ``label`` in their metadata.

    Args:
        path: the release file, one JSON list, plain or gzip.
        hops: keep only claims with these numbers of hops (HoVer has 2, 3 and 4). None: all.
        label: keep only claims with this label. None: both.

    Examples:
        >>> HoverLoader("hover_dev_release_v1.1.json", hops=[3, 4])
        HoverLoader(path='hover_dev_release_v1.1.json', hops=[3, 4])
    """

    name = "hover"
    manifest_may_set = may_set("hops", "label", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        hops: Annotated[Sequence[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None,
        label: Literal["SUPPORTED", "NOT_SUPPORTED"] | None = None,
    ) -> None:
        self.path = path
        self.hops = hops
        self.label = label

    def queries(self) -> list[Query]:
        """Return the kept claims, in the order of the file; the test release has claims too."""
        queries: list[Query] = []
        for location, uid, row in self._claims():
            family = row.get("hpqa_id")
            metadata: JsonObject = {
                name: row[field] for name, field in (("hops", "num_hops"), ("label", "label")) if field in row
            }
            text = as_text(location, "claim", _hover_field(location, row, "claim"))
            queries.append(
                make_query(location, uid, text, None if family is None else as_id(location, "hpqa_id", family), metadata)
            )
        return queries

    def gold(self) -> list[Gold]:
        """Return the supporting titles of these claims, in the same order."""
        return [
            Gold(query_id=uid, relevance=dict.fromkeys(supporting_titles(location, row, _HOVER_NO_GOLD), 1), by="title")
            for location, uid, row in self._claims()
        ]

    def _claims(self) -> Iterator[tuple[str, str, JsonObject]]:
        locations: dict[str, str] = {}
        left_out: Counter[str] = Counter()
        kept = False
        for location, row in read_json_objects(self.path):
            uid = as_id(location, "uid", _hover_field(location, row, "uid"))
            if uid in locations:
                raise SourceError(f'{location}: the uid "{uid}" is taken by {locations[uid]}; uids must be unique')
            locations[uid] = location
            if self._fits(location, row):
                kept = True
                yield location, uid, row
            else:
                left_out[f"{row.get('num_hops')} hops {row.get('label')}"[:80]] += 1
        if not kept:
            counts = ", ".join(f"{what}: {count}" for what, count in sorted(left_out.items())[:8]) or "an empty list"
            raise SourceError(
                f"{self.path}: no claim fits hops={self.hops!r}, label={self.label!r} (found: {counts}); change the filter"
            )

    def _fits(self, location: str, row: JsonObject) -> bool:
        return (self.hops is None or _hover_field(location, row, "num_hops") in self.hops) and (
            self.label is None or _hover_field(location, row, "label") == self.label
        )


def _hover_field(location: str, row: JsonObject, field: str) -> JsonValue:
    return released_field(location, row, field, "HoVer")


_HOTPOT_NO_GOLD = "HotpotQA's test release withholds the supporting facts: use the train or dev release"


class HotpotqaLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold from HotpotQA's own release files (``hotpot_dev_distractor_v1.json``).

    The contexts of all questions together are the corpus: one item per title, with the title as its id. If a title has
    different texts, the first is kept and a warning counts the others. While streaming, only two digests per title are held in
    memory. Queries have the release's ``answer``, ``type`` and ``level`` in their metadata, if present.

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
        seen: dict[bytes, bytes] = {}
        differing = 0
        first = ""
        for location, row in _hotpot_rows(self.path):
            for title, sentences in _contexts(location, row):
                content, starts = _join(sentences)
                key, text = _digest(title), _digest(content)
                if key not in seen:
                    seen[key] = text
                    metadata: JsonObject = {"title": title}
                    if self.sentence_facts:
                        metadata[SENTENCE_STARTS] = starts
                    yield make_item(location, title, content, metadata)
                elif seen[key] != text:
                    differing += 1
                    first = first or f'"{title}" ({location})'
        if differing:
            warnings.warn(
                f"{self.path}: {differing} contexts have a title seen before with another text, first {first}; "
                "the first text of each title was kept",
                RetrievalWarning,
                stacklevel=2,
            )

    def queries(self) -> list[Query]:
        """Return the questions in the order of the file."""
        queries: list[Query] = []
        for location, query_id, row in self._questions():
            metadata: JsonObject = {field: row[field] for field in ("answer", "type", "level") if field in row}
            if self.sentence_facts:
                metadata["supporting_facts"] = _facts(location, query_id, row)
            text = as_text(location, "question", _hotpot_field(location, row, "question"))
            queries.append(make_query(location, query_id, text, metadata=metadata))
        return queries

    def gold(self) -> list[Gold]:
        """Return the titles that support each answer, which are item ids, in the order of the questions."""
        gold: list[Gold] = []
        titles: set[bytes] = set()
        wanted: dict[str, str] = {}
        for location, query_id, row in self._questions():
            titles.update(_digest(title) for title, _ in _contexts(location, row))
            supporting = supporting_titles(location, row, _HOTPOT_NO_GOLD)
            for title in supporting:
                wanted.setdefault(title, location)
            gold.append(Gold(query_id=query_id, relevance=dict.fromkeys(supporting, 1)))
        absent = [title for title in wanted if _digest(title) not in titles]
        if absent:
            raise SourceError(
                f'{wanted[absent[0]]}: the supporting fact "{absent[0]}" is in no context of the file, the first of '
                f"{len(absent)} such titles; the fullwiki release may lack them: use the distractor release"
            )
        return gold

    def _questions(self) -> Iterator[tuple[str, str, JsonObject]]:
        locations: dict[str, str] = {}
        for location, row in _hotpot_rows(self.path):
            field = next((name for name in ("_id", "id") if name in row), None)
            query_id = str(len(locations)) if field is None else as_id(location, field, row[field])
            if query_id in locations:
                raise SourceError(f'{location}: the id "{query_id}" is taken by {locations[query_id]}; ids must be unique')
            locations[query_id] = location
            yield location, query_id, row
        if not locations:
            raise SourceError(f"{self.path}: it holds no questions; is this a release file of HotpotQA?")


def _hotpot_rows(path: str | Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield the records; contexts and facts in columns, as the copy on the Hugging Face hub has them, become pairs."""
    for location, row in read_json_objects(path):
        pairs: JsonObject = {}
        for field, columns in (("context", ("title", "sentences")), ("supporting_facts", ("title", "sent_id"))):
            held = row.get(field)
            lists = [held.get(column) for column in columns] if isinstance(held, dict) else []
            match lists:
                case [list(first), list(second)] if len(first) == len(second):
                    pairs[field] = [[*pair] for pair in zip(first, second, strict=True)]
        yield location, row | pairs


def _contexts(location: str, row: JsonObject) -> Iterator[tuple[str, list[JsonValue]]]:
    contexts = _hotpot_field(location, row, "context")
    for context in contexts if isinstance(contexts, list) else [contexts]:
        match context:
            case [str(title), list(sentences)] if title.strip() and all(isinstance(sentence, str) for sentence in sentences):
                yield title, sentences
            case _:
                raise SourceError(
                    f'{location}: "context" is not a list of [title, [sentences]] pairs; is this a release file of HotpotQA?'
                )


def _facts(location: str, query_id: str, row: JsonObject) -> list[JsonValue]:
    """The supporting facts of a question, each of which names a sentence of its contexts."""
    supporting_titles(location, row, _HOTPOT_NO_GOLD)  # refuses anything but a list of facts
    counts: dict[str, int] = {}
    number_of: dict[tuple[str, JsonValue], int] = {}
    for title, sentences in _contexts(location, row):
        counts.setdefault(title, len(sentences))
        for number, sentence in enumerate(sentences):
            number_of.setdefault((title, str(sentence).strip()), number)
    facts = row["supporting_facts"]
    read: dict[tuple[str, int], None] = {}
    for fact in facts if isinstance(facts, list) else []:
        match fact:
            case [str(title), int(number)] if not isinstance(number, bool) and 0 <= number < counts.get(title, 0):
                read[title, number] = None
            case [str(title), str(sentence)] if (title, sentence.strip()) in number_of:
                read[title, number_of[title, sentence.strip()]] = None
            case [str(title), int(number)] if not isinstance(number, bool):
                held = f"has {counts[title]} sentences" if title in counts else "is in none of its contexts"
                raise SourceError(
                    f'{location}: question "{query_id}": the supporting fact names sentence {number} of "{title}", which '
                    f"{held} (numbers begin at 0); correct it, leave the question out, or read the file without sentence_facts"
                )
            case _:
                wrong = fact[1] if isinstance(fact, list) and len(fact) == 2 else None
                raise SourceError(
                    f'{location}: question "{query_id}": a supporting fact is not a title and the number of a sentence '
                    f"(its number is {kind(wrong)}); read the file without sentence_facts where it has none"
                )
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


def _digest(text: str) -> bytes:
    # titles are compared by their digests: 128 bits, so that two never collide; unpaired surrogates are refused later
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _hotpot_field(location: str, row: JsonObject, field: str) -> JsonValue:
    return released_field(location, row, field, "HotpotQA")


class IrDatasetsLoader(RecordLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in ``ir_datasets`` (the extra ``ir-datasets``).

    Queries that are not judged are left out. Of judgements by subtopic, the highest grade of a document counts.

    Args:
        path: the name of the data set, such as ``beir/scifact/test`` or ``msmarco-passage/trec-dl-2019/judged``.
        content_field: the field of a document that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the fields to keep as metadata. None: all the others.
        query_field: the field of a query that holds its text, or several. None: the library's default text.

    Examples:
        >>> IrDatasetsLoader("beir/scifact/test")
        IrDatasetsLoader(path='beir/scifact/test')
    """

    name = "ir_datasets"
    manifest_may_set = may_set(
        *("content_field", "title_field", "metadata_fields", "query_field"),
        path=given("load, or download, the data set"),
    )

    def __init__(
        self,
        path: str,
        content_field: str | Sequence[str] = "text",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
        query_field: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__("doc_id", content_field, title_field, metadata_fields)
        self.path = path
        self.query_field = query_field

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
            text = (
                query.default_text()
                if self.query_field is None
                else joined_text(location, row, self.query_field, "query_field")
            )
            used = [self.query_field] if isinstance(self.query_field, str) else self.query_field or ["text"]
            metadata = without_fields(row, ["query_id", *used])
            yield location, make_query(location, as_id(location, "query_id", row["query_id"]), text, metadata=metadata)

    def _all(self, what: str) -> Iterator[tuple[str, Any]]:
        dataset = self._opened()
        if not getattr(dataset, f"has_{what}")():
            raise SourceError(
                f"{self.path}: this data set has no {what}; name the part of it that has (such as {self.path}/test)"
            )
        entries: Callable[[], Any] = getattr(dataset, f"{what}_iter")
        number = 0
        try:
            for number, entry in enumerate(entries(), start=1):
                yield f"{self.path}, {what} {number}", entry
        except RetrievalError:
            raise
        except Exception as error:  # the library and its readers raise any exceptions
            problem = f"after {number:,} it gives no more {what}" if number else f"it gives no {what}"
            raise SourceError(
                f"{self.path}: {problem} ({_first_words(error)}); where it is not downloaded, check the network, or copy the "
                "folder of ir_datasets (IR_DATASETS_HOME) from a machine that has it"
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
            hint = known if known.startswith("did you mean") else "its catalogue lists what there is: https://ir-datasets.com"
            raise SourceError(f"{self.path}: ir_datasets knows no data set of this name; {hint}") from None


def _first_words(error: Exception) -> str:
    """Return the library's own message for an error: it puts the errors of all sources, unshortened, behind a sentence."""
    reason = error.args[0] if error.args else type(error).__name__
    while isinstance(reason, tuple) and reason:
        reason = reason[0]
    return str(reason)[:200]


def _as_row(location: str, entry: Any) -> JsonObject:
    """A named tuple as an object; those within it too."""
    return {name: plain_value(location, name, _plain(value)) for name, value in entry._asdict().items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
