"""The page on which people judge, and the service behind it: one judge, on this machine, by a token in the address.

The token is in the fragment of the address, which browsers send nowhere; the page sends it in a header. The page itself holds
nothing of the project. A judge sees neither systems nor ranks, nor what others said unless a disagreement is to be settled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, Field, StringConstraints

from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, RetrievalError
from nlp_retrieval.judging.project import JudgingProject, checked_name
from nlp_retrieval.judging.project_file import PROJECT_FILE
from nlp_retrieval.judging.records import PairToJudge, Progress
from nlp_retrieval.judging.report import decided
from nlp_retrieval.reports.page.templating import asset, rendered
from nlp_retrieval.service.endpoints import BaseService, Endpoint, RequestBody
from nlp_retrieval.text.printing import printable

_FILES = Path(__file__).parent / "page"
_WORD = re.compile(r"[^\W_]+")

Run = tuple[str, bool]
"""Text, and whether it is a word of the question."""


class ShownPair(BaseModel):
    """A pair as the page shows it."""

    number: int
    query_id: str
    question: str
    title: list[Run]
    content: list[Run]
    sha256: str
    grades: Mapping[str, int] | None


class JudgingState(BaseModel):
    """The next pair, and how far judging has come; no pair if there is none for this judge."""

    pair: ShownPair | None
    judge: str
    scale: tuple[str, ...]
    instructions: str
    settles: bool
    progress: Progress


class DecidedAnswer(BaseModel):
    """What is decided so far, in a sentence; empty if nothing can be said."""

    sentence: str


class DecisionBody(RequestBody):
    """A decision about a pair."""

    number: Annotated[int, Field(ge=0, lt=2**63)]
    decision: Literal["graded", "skipped"]
    grade: Annotated[int, Field(ge=0, le=9)] | None = None
    note: Annotated[str, StringConstraints(max_length=10_000)] = ""
    seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    sha256: Annotated[str, StringConstraints(max_length=64)] = ""


class NothingBody(RequestBody):
    """A request that says nothing more."""


class JudgingService(BaseService):
    """The page of one judge, and what it asks for; ``settles`` if disagreements are settled instead of judging on."""

    kind: ClassVar[str] = "judging"
    opens: ClassVar[str] = PROJECT_FILE
    describes: ClassVar[str] = "Pairs of question and passage, to be judged by a person."

    def __init__(self, project: JudgingProject, judge: str, overlap: float = 0.0, *, settles: bool = False) -> None:
        if not 0 <= overlap <= 1:
            raise ConfigurationError(f"overlap={overlap}; take a share from 0 to 1")
        self._project, self._judge, self._overlap, self._settles = project, checked_name(judge), overlap, settles

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether a folder is a judging project."""
        return (path / PROJECT_FILE).is_file()

    @classmethod
    def from_path(
        cls,
        path: Path,
        *,
        retrievers: list[BaseRetriever],  # noqa: ARG003
        trust: bool,  # noqa: ARG003
        judge: str = "",
        overlap: float = 0.0,
        settles: bool = False,
    ) -> Self:
        """Open a project; retrievers and trust have no effect, because its file decides nothing."""
        return cls(JudgingProject(path), judge, overlap, settles=settles)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the page, the next pair, and what a judge can do."""
        return [
            Endpoint("/", "The page for judging.", self._page, str, page=True),
            Endpoint("/next", "The next pair.", self._next, JudgingState, NothingBody, writes=True),
            Endpoint("/judge", "Grade or skip a pair.", self._decide, JudgingState, DecisionBody, writes=True),
            Endpoint("/undo", "Take back the last decision.", self._undo, JudgingState, NothingBody, writes=True),
            Endpoint("/decided", "What is decided so far.", self._decided, DecidedAnswer),
        ]

    def is_ready(self) -> bool:
        return self.recognizes(self._project.path)

    def close(self) -> None:
        self._project.close()

    def _page(self, _: None) -> bytes:
        style = asset("report.css") + asset("passages.css") + asset("judge.css", _FILES)
        return rendered("judge.html", _FILES, connects=True, style=style, script=asset("judge.js", _FILES)).encode()

    def _next(self, _: NothingBody) -> bytes:
        project = self._project
        pairs = project.disputed() if self._settles else project.next_pairs(self._judge, 1, self._overlap)
        return self._state(next(iter(pairs), None))

    def _decide(self, body: DecisionBody) -> bytes:
        said = body.model_dump(exclude={"decision"})
        settled = self._settles and body.decision == "graded"
        self._project.judge(by=self._judge, decision="settled" if settled else body.decision, **said)
        return self._next(NothingBody())

    def _undo(self, _: NothingBody) -> bytes:
        pair = self._project.undo(self._judge)
        if pair is None:
            return self._next(NothingBody())
        again = (each for each in self._project.disputed() if self._settles and each.number == pair.number)
        return self._state(next(again, pair))

    def _decided(self, _: None) -> bytes:
        try:
            sentence = decided(self._project)
        except RetrievalError as error:
            sentence = str(error)
        return DecidedAnswer(sentence=printable(sentence)).model_dump_json().encode()

    def _state(self, pair: PairToJudge | None) -> bytes:
        settings = self._project.settings
        state = JudgingState(
            pair=None if pair is None else _shown(pair),
            judge=self._judge,
            scale=settings.scale,
            instructions=printable(settings.instructions),
            settles=self._settles,
            progress=self._project.progress(self._judge),
        )
        return state.model_dump_json().encode()


def _shown(pair: PairToJudge) -> ShownPair:
    """Return a pair with the words of the question marked."""
    marked = {name: _runs(_lines(getattr(pair, name)), pair.question) for name in ("title", "content")}
    return ShownPair(**asdict(pair) | marked | {"question": _lines(pair.question)})


def _runs(text: str, question: str) -> list[Run]:
    """Return a text in pieces, the words of the question apart."""
    words = {word.casefold() for word in _WORD.findall(question)} - STOP_WORDS
    pieces = [(piece, piece.casefold() in words) for piece in re.split(f"({_WORD.pattern})", text) if piece]
    return [("".join(piece for piece, _ in run), marked) for marked, run in groupby(pieces, key=lambda piece: piece[1])]


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n"))).encode("utf-8", "replace").decode()
