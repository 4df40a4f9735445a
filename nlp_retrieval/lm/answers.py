"""Answers of language models on disk: one JSON file each, named by a hash of the question, the model and its settings.

A file holds the whole question with the answer and is written atomically. It is used only if it holds exactly the same question
and no other user could have written it; anything else is a miss. DSPy's own disk cache is never used: it is pickle.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.files.cache import ContentCache, cache_folder, digest_of_key

Question = dict[str, JsonValue]
Answer = dict[str, JsonValue]

FORMAT = 1


def default_folder() -> Path:
    """Return the default folder of answers, in the user's cache folder."""
    return cache_folder() / "answers"


class AnswerStore:
    """Answers by question, in a folder that is created with the first one."""

    def __init__(self, folder: Path) -> None:
        self._files = ContentCache(folder, ".json", "answers of the language model", durable=True)

    def path_of(self, question: Question) -> Path:
        """Return the file of a question."""
        return self._files.path_of(digest_of_key(question))

    def find(self, question: Question) -> Answer | None:
        """Return the stored answer to a question, or None."""
        try:
            entry = json.loads(self._files.find(digest_of_key(question)) or b"")
        except (ValueError, RecursionError):
            return None
        if not isinstance(entry, dict) or entry.get("format") != FORMAT or entry.get("question") != question:
            return None
        answer = entry.get("answer")
        return answer if isinstance(answer, dict) and isinstance(answer.get("text"), str) else None

    def keep(self, question: Question, answer: Answer) -> None:
        """Store an answer; if it cannot be written, warn once and continue."""
        content = json.dumps({"format": FORMAT, "question": question, "answer": answer}, ensure_ascii=False, indent=1)
        self._files.keep(digest_of_key(question), content.encode("utf-8", "surrogatepass"))


@dataclass
class AnswerScope:
    """One question, from asking to judging its answer."""

    program: str
    """Fingerprint of the program that asks."""
    only_kept: bool = False
    fresh: list[tuple[AnswerStore, Question, Answer]] = field(default_factory=list)
    """The server's answers, with their stores and questions."""

    def keep(self) -> None:
        """Store the server's answers, which were usable."""
        while self.fresh:
            store, question, answer = self.fresh.pop()
            store.keep(question, answer)
