"""Study: every question of a profile for every subject of an index, resumable."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core import (
    BaseRetriever,
    BaseSearcher,
    Generation,
    check_folder_for_output,
    file_names,
    progress,
    write_output,
)
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError, IndexMissingError, OutputError, RetrievalError
from nlp_retrieval.rerankers import Profile, ProfileQuestion
from nlp_retrieval.systems.policy.answers import (
    AnswerMetadata,
    Answers,
    StudyReport,
    document_of,
    page_of,
    read_answers,
    to_json,
)
from nlp_retrieval.systems.policy.asking import (
    METHODS,
    AskedText,
    Method,
    StudySettings,
    all_hits,
    asked,
    check_method,
    chosen_subject,
    chosen_subjects,
    subjects_of,
    warn_of_limits,
)
from nlp_retrieval.systems.policy.editions import EditionChanges, changes_of, n_editions
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.systems.policy.running_text import PlainPassages, encoder_of
from nlp_retrieval.systems.policy.silence import RULE, Finding, Silence
from nlp_retrieval.systems.policy.values import values_of

_COMPARED = 11
"""Subjects with which others are compared, to see whether they are silent."""

_NO_HOP = "this study has no retriever that follows relations; pass hop=HopRetriever(...), or an index with `hop`"


class PolicyStudy:
    """Asks the questions of a profile about the subjects of an index: countries, or others that the profile names.

    Models and indexes are opened once, by the searchers. The filter for a subject's passages is applied within the search: all
    of them are compared, and those of other subjects do not take up results.

    Args:
        profile: the questions, and the metadata that names a subject.
        searcher: for the method ``vector``; its index must be opened. With a ``MultiSignalReranker`` each signal is reported.
        hop: for the method ``hop``: a searcher, or a retriever such as ``HopRetriever``; opened on the same index if it is not
            open yet. Its results also show the signals of ``searcher``, which do not affect them.
        keywords: whether a question's keywords are added to the query (passages are scored against the question itself); not
            along relations for a question about changes, because keywords name changes of all kinds.
        where: a filter for all questions, in addition to that of the subject.

    Raises:
        ConfigurationError: the profile has no questions.

    Examples:
        >>> from nlp_retrieval.rerankers import load_profile
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(plans, "plans")
        >>> study = PolicyStudy(load_profile("energy.yaml"), searcher)
        >>> answers = study.ask(1, "Ostland", top_k=1)  # how does Ostland make its power?
        >>> answers["vector"][0]["content"]
        'Solar panels float on the reservoir.'
    """

    def __init__(
        self,
        profile: Profile,
        searcher: BaseSearcher,
        hop: BaseSearcher | BaseRetriever | None = None,
        *,
        keywords: bool = True,
        where: Mapping[str, Any] | None = None,
    ) -> None:
        if not profile.questions:
            raise ConfigurationError(f"the profile {profile.name!r} has no questions; add some under `questions`")
        self.profile = profile
        self.searcher = searcher
        self.hop = Searcher([hop]) if isinstance(hop, BaseRetriever) else hop
        self.keywords = keywords
        self.where = where
        self._subjects: tuple[Generation, dict[str, int]] | None = None

    @property
    def subjects(self) -> dict[str, int]:
        """Return the number of passages of each subject of the index, by name.

        Raises:
            QueryError: no passage has the profile's metadata.
            IndexMissingError: the searcher has no index.
        """
        generation = self.searcher.opened
        if self._subjects is None or self._subjects[0] is not generation:
            self._subjects = generation, subjects_of(generation.items, self.profile.subject)
        return self._subjects[1]

    def settings(
        self,
        method: Method = "vector",
        top_k: int | None = None,
        min_similarity: float | None = None,
        n_per_document: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> StudySettings:
        """Return the settings of a call, with the profile's values as defaults.

        Raises:
            ConfigurationError: a value is out of its range, or the method needs a missing ``hop``.
            QueryError: ``top_k`` or ``n_per_document`` is not a positive integer, or ``where`` is not a filter.
        """
        if check_method(method) != "vector" and self.hop is None:
            raise ConfigurationError(f"method {method!r}: {_NO_HOP}")
        profile = self.profile
        least = profile.min_similarity if min_similarity is None else min_similarity
        if method != "hop":
            warn_of_limits(self.searcher, least, min_similarity)
        return StudySettings(
            method,
            profile.top_k if top_k is None else top_k,
            least,
            profile.n_per_document if n_per_document is None else n_per_document,
            self.keywords,
            {"and": [dict(self.where), dict(where)]} if self.where is not None and where is not None else where or self.where,
        )

    def ask(
        self,
        question: int | str,
        subject: str,
        method: Method = "vector",
        *,
        top_k: int | None = None,
        min_similarity: float | None = None,
        n_per_document: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """Ask one question about one subject, and write nothing.

        Args:
            question: its number in the profile, or any text, in which ``{subject}`` is replaced by the subject.
            subject: its name in the index.
            method: ``vector``, ``hop`` or ``both``.
            top_k: at most this many passages; by default the profile's.
            min_similarity: passages below this combined score are left out; by default the profile's.
            n_per_document: at most this many of one document; by default the profile's.
            where: a further filter, in addition to the study's own.

        Returns:
            The passages by method, best first, in the form of the files.

        Raises:
            QueryError: there is no such subject.
            ConfigurationError: there is no such question, or a value is out of its range.
        """
        settings = self.settings(method, top_k, min_similarity, n_per_document, where)
        name = chosen_subject(subject, self.subjects, self.profile.subject)
        own = ProfileQuestion(number=1, text=question, keywords=()) if isinstance(question, str) else None
        (answer,) = self._ask([own or self.profile.question(int(question))], name, settings)[0]
        return answer

    def run(
        self,
        output: str | Path,
        subjects: str | Sequence[str] | None = None,
        questions: int | Sequence[int] | None = None,
        method: Method = "vector",
        top_k: int | None = None,
        min_similarity: float | None = None,
        n_per_document: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> StudyReport:
        """Ask questions about subjects, and write a JSON file for each subject, whole or not at all.

        Existing answers from the same index, profile and settings are kept, so an interrupted run can be continued. Other
        subjects and questions in the folder stay as they are; the same question about the same subject under another setting is
        replaced.

        Args:
            output: the folder of the files.
            subjects: their names in the index; by default all.
            questions: numbers; by default all of the profile.
            method: ``vector``, ``hop`` or ``both``.
            top_k: at most this many passages for a question; by default the profile's.
            min_similarity: passages below this combined score are left out; by default the profile's.
            n_per_document: at most this many of one document; by default the profile's.
            where: a further filter, in addition to the study's own.

        Raises:
            QueryError: there is no such subject.
            ConfigurationError: there is no such question, or a value is out of its range.
            OutputError: a file cannot be written, or is there and holds no answers.
        """
        begin = time.perf_counter()
        try:
            settings = self.settings(method, top_k, min_similarity, n_per_document, where)
            wanted = self.profile.chosen_questions(questions)
            chosen = chosen_subjects(subjects, self.subjects, self.profile.subject)
            folder = Path(output)
            check_folder_for_output(folder)
            names = zip(self.subjects, file_names(self.subjects), strict=True)
            files = {name: folder / f"{file}.json" for name, file in names}
            answered, kept, replaced = self._run(files, chosen, wanted, settings)
        except RetrievalError as error:
            note(logging.ERROR, "run", f"{type(error).__name__}: {error}")
            raise
        report = StudyReport(
            folder,
            {name: files[name] for name in chosen},
            {name: path for name, path in files.items() if read_answers(path) is not None},
            tuple(question.number for question in wanted),
            tuple(answered),
            tuple(kept),
            tuple(replaced),
            time.perf_counter() - begin,
        )
        counts = f"{len(report.answered)} asked, {len(report.kept)} already answered"
        note(logging.INFO, "run", f"All results completed: {counts}, {report.seconds:.1f} s")
        return report

    def _run(
        self, files: Mapping[str, Path], chosen: list[str], wanted: list[ProfileQuestion], settings: StudySettings
    ) -> tuple[list[str], list[str], list[str]]:
        """Write the files; return the subjects that were asked about, kept, and of which answers were replaced."""
        fingerprint = self.fingerprint(settings)
        numbers = [question.number for question in wanted]
        note(logging.INFO, "run", f"{len(chosen)} of {len(files)}, questions {numbers}, {METHODS[settings.method]}")
        answered: list[str] = []
        kept: list[str] = []
        replaced: list[str] = []
        compared: dict[str, NDArray[np.float64]] = {}
        with progress(f"asking {self.profile.name} by {self.profile.subject}", len(chosen)) as advance:
            for subject in chosen:
                entries = _entries_in(files[subject], subject)
                known = {number: entries.get(f"question_{number}") for number in numbers}
                missing = [each for each in wanted if (known[each.number] or {}).get("fingerprint") != fingerprint]
                (answered if missing else kept).append(subject)
                if any(known[question.number] for question in missing):
                    replaced.append(subject)
                if missing:
                    compared = compared or self.compared(settings)
                    entries |= self._entries(missing, subject, settings, compared, fingerprint)
                    write_output(files[subject], to_json(self._file(subject, entries, settings)))
                advance(1)
        return answered, kept, replaced

    def _entries(
        self,
        questions: list[ProfileQuestion],
        subject: str,
        settings: StudySettings,
        compared: Mapping[str, NDArray[np.float64]],
        fingerprint: str,
    ) -> Answers:
        """Ask questions about a subject; return them for its file: whether each is addressed, and its passages, by method."""
        answers, hits, plain = self._ask(questions, subject, settings)
        others = [covered for name, covered in compared.items() if name != subject]
        findings = self._silence.findings(questions, hits, plain, others)
        entries: Answers = {}
        for question, answer, finding in zip(questions, answers, findings, strict=True):
            lists = {method: {"chunk_count": len(chunks), "top_k_chunks": chunks} for method, chunks in answer.items()}
            entries[f"question_{question.number}"] = {
                "question_number": question.number,
                "question": question.asked_of(subject),
                "retrieval_method": METHODS[settings.method],
                "addressed": finding.addressed,
                "addressed_score": finding.score,
                "best": _best(question, finding),
                "fingerprint": fingerprint,
                **(lists if len(lists) > 1 else next(iter(lists.values()))),
            }
        return entries

    def _file(self, subject: str, entries: Answers, settings: StudySettings) -> Answers:
        profile = self.profile
        own = {} if profile.subject in AnswerMetadata.model_fields else {profile.subject: subject}
        metadata = own | {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "total_questions": len(entries),
            "retrieval_method": METHODS[settings.method],
            "subject": subject,
            "subject_field": profile.subject,
            "profile": profile.name,
            "passages": self.subjects[subject],
            "editions": n_editions(self._items(subject)),
            **{name: value for name, value in asdict(settings).items() if name != "method"},
        }
        return {"metadata": metadata, "questions": dict(sorted(entries.items(), key=lambda pair: pair[1]["question_number"]))}

    def changes(self, subject: str) -> list[EditionChanges]:
        """Return the changes between the editions of a subject's plan, from the earliest on.

        Raises:
            QueryError: there is no such subject.
        """
        name = chosen_subject(subject, self.subjects, self.profile.subject)
        return changes_of(self._items(name))

    def _items(self, subject: str, settings: StudySettings | None = None) -> list[SearchableItem]:
        items = self.searcher.opened.items
        mask = items.mask((settings or StudySettings()).filter_for(self.profile.subject, subject))
        rows = np.arange(len(items)) if mask is None else np.flatnonzero(mask)
        return list(items.items(rows))

    @cached_property
    def _silence(self) -> Silence:
        return Silence(self.profile, encoder_of(self.searcher))

    def compared(self, settings: StudySettings) -> dict[str, NDArray[np.float64]]:
        """Return what the sentences of some subjects cover, evenly drawn: any subject is compared with the others of them."""
        names = sorted(self.subjects)
        drawn = {name: self._items(name, settings) for name in names[:: max(1, len(names) // _COMPARED)][:_COMPARED]}
        return {name: self._silence.covered(items, PlainPassages(items)) for name, items in drawn.items()}

    def fingerprint(self, settings: StudySettings) -> str:
        """Return the fingerprint of index, profile, searchers, settings and rule of silence: the same for the same answers."""
        hop = self.opened_hop().fingerprint if "hop" in settings.methods else None
        corpus = self.searcher.opened.manifest.corpus.fingerprint
        return settings.fingerprint(corpus, self.profile.model_dump(mode="json"), RULE, self.searcher.fingerprint, hop)

    def _ask(
        self, wanted: list[ProfileQuestion], subject: str, settings: StudySettings
    ) -> tuple[list[dict[str, list[Answers]]], list[list[RetrievalResult]], PlainPassages]:
        """Ask questions about a subject, all in one search for each method; also return all hits by signals."""
        where = settings.filter_for(self.profile.subject, subject)
        n_passages, top_k = self.subjects[subject], settings.top_k
        texts = [AskedText.of(question, subject, "vector", keywords=settings.keywords) for question in wanted]
        hits = all_hits(self.searcher, texts, n_passages, where, top_k, "vector")
        plain = PlainPassages({hit.item.item_id: hit.item for one in hits for hit in one}.values())
        hits = plain.rescored(self.searcher, texts, hits)
        columns: dict[str, list[list[Answers]]] = {}
        if "vector" in settings.methods:
            columns["vector"] = asked(self.searcher, texts, hits, settings, "vector", subject)
        if "hop" in settings.methods:
            hop = self.opened_hop()
            texts = [AskedText.of(question, subject, "hop", keywords=settings.keywords) for question in wanted]
            along = all_hits(hop, texts, n_passages, where, top_k, "hop")
            columns["hop"] = asked(hop, texts, along, settings, "hop", subject, (self.searcher, hits))
        return [{method: column[number] for method, column in columns.items()} for number in range(len(wanted))], hits, plain

    def opened_hop(self) -> BaseSearcher:
        """Return the searcher of the method ``hop``, opened on the index of the other.

        Raises:
            ConfigurationError: there is none.
            IndexMismatchError: it is open on other passages.
        """
        if self.hop is None:
            raise ConfigurationError(_NO_HOP)
        generation = self.searcher.opened
        try:
            opened = self.hop.opened
        except IndexMissingError:
            opened = self.hop.open(generation.path).opened
        if opened.manifest.corpus.fingerprint != generation.manifest.corpus.fingerprint:
            raise IndexMismatchError(
                f"searcher and hop are open on different passages ({generation.path} and {opened.path}); open both on one index"
            )
        return self.hop


def _entries_in(path: Path, subject: str) -> Answers:
    """Return the questions of a subject's file; none if there is no file."""
    answers = read_answers(path)
    if answers is None and not path.exists():
        return {}
    if answers is None or answers["metadata"]["subject"] != subject:
        raise OutputError(
            f"{path} holds no answers about {subject!r} of this version; remove it, or choose another output folder"
        )
    questions: Answers = answers["questions"]
    return questions


def _best(question: ProfileQuestion, finding: Finding) -> Answers | None:
    if finding.item is None:
        return None
    values = [] if question.value is None else values_of(finding.sentence, question.value)
    return {
        "id": finding.item.item_id,
        "document": document_of(finding.item),
        "page": page_of(finding.item, finding.sentence),
        "sentence": finding.sentence,
        "values": [value.model_dump(mode="json") for value in values],
    }
