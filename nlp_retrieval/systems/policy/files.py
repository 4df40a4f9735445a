"""Content of the file of a subject, and the check that an existing file belongs to the same study."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from nlp_retrieval.rerankers import Profile, ProfileQuestion
from nlp_retrieval.systems.policy.answers import Answers
from nlp_retrieval.systems.policy.asking import Asked
from nlp_retrieval.systems.policy.schema import AnswerMetadata
from nlp_retrieval.systems.policy.settings import METHODS, StudySettings

__all__ = ["belonging", "entry_of", "file_of", "question_key"]


def belonging(there: Answers | None, subject: str, fingerprint: str) -> Answers | None:
    """Return the questions of a file of answers, if they are of this subject and study; else None.

    Args:
        there: the content of the file.
        subject: of the study.
        fingerprint: of the study.
    """
    if there is None or there["metadata"]["fingerprint"] != fingerprint or there["metadata"]["subject"] != subject:
        return None
    questions: Answers = there["questions"]
    return questions


def question_key(number: int) -> str:
    """Return the key of a question in a file."""
    return f"question_{number}"


def entry_of(question: ProfileQuestion, subject: str, answer: Mapping[str, Asked]) -> Answers:
    """Return a question for a file: its passages, by method if there are two.

    Args:
        question: of the profile.
        subject: of the question.
        answer: by method.
    """
    entry: Answers = {"question_number": question.number, "question": question.asked_of(subject)}
    if len(answer) == 1:
        (only,) = answer.values()
        return entry | only.as_dict()
    return entry | {method: one.as_dict() for method, one in answer.items()}


def file_of(
    profile: Profile, subject: str, n_passages: int, entries: Answers, settings: StudySettings, fingerprint: str
) -> Answers:
    """Return the file of a subject.

    Args:
        profile: whose questions were asked.
        subject: of the questions; also written under the profile's own name for it, such as ``country``.
        n_passages: of the subject in the index.
        entries: the questions, by key.
        settings: of the study.
        fingerprint: of the study.
    """
    own = {} if profile.subject in AnswerMetadata.model_fields else {profile.subject: subject}
    metadata = own | {
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_questions": len(entries),
        "retrieval_method": METHODS[settings.method],
        "subject": subject,
        "subject_field": profile.subject,
        "profile": profile.name,
        "passages": n_passages,
        "top_k": settings.top_k,
        "min_similarity": settings.min_similarity,
        "n_per_document": settings.n_per_document,
        "keywords": settings.keywords,
        "where": None if settings.where is None else dict(settings.where),
        "fingerprint": fingerprint,
    }
    return {"metadata": metadata, "questions": dict(sorted(entries.items(), key=lambda pair: pair[1]["question_number"]))}
