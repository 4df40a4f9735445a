"""Simulated agents, by rules alone. Each keeps a plain log of what it did, from which its true figures are computed."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from nlp_retrieval.agents import AgentAnswer, AgentTools

MODEL = "rule/agent"
"""Name of the model that the simulated agents pay."""

_WORD = re.compile(r"\w+")
_BREAKS = re.compile(r", | and | that | which | who | whose | where | when | in which | for which ", re.IGNORECASE)
_LONGEST_TITLE = 8


@dataclass
class Log:
    """What an agent did, in its own words: ``("search", query, ids)`` and ``("open", id)``, with the tokens it paid before."""

    steps: list[tuple[str, str, list[str], int]] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)


class RuleAgent:
    """An agent without a model that pays for what it has read as if it had one: a token for four characters.

    Args:
        titles: ids by title in lower case, of the whole collection.
        seed: of whatever it draws, together with the question.
    """

    k: ClassVar[int] = 5

    def __init__(self, titles: Mapping[str, str], seed: int = 0) -> None:
        self.titles, self.seed = titles, seed
        self.logs: dict[str, Log] = {}

    def __call__(self, question: str, tools: AgentTools) -> AgentAnswer:
        self.logs[question] = self._log = Log()
        self._tools, self._read = tools, len(question)
        self._texts: dict[str, str] = {}
        self._draw = random.Random(f"{self.seed} {question}")
        self.run(question)
        self._log.cited = [step[1] for step in self._log.steps if step[0] == "open"][:3]
        return AgentAnswer("done", self._log.cited)

    def run(self, question: str) -> None:
        """Search and read."""
        raise NotImplementedError

    def search(self, query: str) -> list[str]:
        """Search, and return what was found."""
        tokens = self._pay()
        hits = self._tools.search(query, k=self.k)
        found = [hit.item.item_id for hit in hits]
        self._texts |= {hit.item.item_id: f"{hit.item.title}. {hit.item.content}" for hit in hits}
        self._read += sum(len(hit.item.title) for hit in hits)
        self._log.steps.append(("search", query, found, tokens))
        return found

    def open(self, item_id: str) -> str:
        """Read an item."""
        tokens = self._pay()
        self._tools.open(item_id)
        self._read += len(self._texts[item_id])
        self._log.steps.append(("open", item_id, [], tokens))
        return self._texts[item_id]

    def open_first(self, found: list[str]) -> str:
        """Read the first item that was not read; nothing if all were."""
        read = {step[1] for step in self._log.steps if step[0] == "open"}
        item_id = next((item_id for item_id in found if item_id not in read), None)
        return "" if item_id is None else self.open(item_id)

    def _pay(self) -> int:
        self._tools.count_tokens(MODEL, self._read // 4, 20)
        return self._read // 4 + 20


class TitleFollower(RuleAgent):
    """Follows titles: searches for what the passages that it reads mention, nearest to the question's words first."""

    most = 4

    def goes_on(self) -> bool:
        """Whether it searches once more."""
        return True

    def run(self, question: str) -> None:
        """Search for the question, read, and search for titles."""
        asked, wanted = {question.lower()}, set(_WORD.findall(question.lower()))
        mentioned: dict[str, int] = {}
        found = self.search(question)
        for _ in range(self.most):
            if not self.goes_on():
                return
            text = self.open_first(found)
            for title in self._titles_in(text):
                mentioned.setdefault(title, len(wanted & set(_WORD.findall(title))))
            left = {title: shared for title, shared in mentioned.items() if title not in asked}
            if not left:
                return
            title = max(left, key=lambda title: left[title])
            asked.add(title)
            found = self.search(title)

    def _titles_in(self, text: str) -> list[str]:
        words = [(word[0], word.start(), word.end()) for word in _WORD.finditer(text)]
        spans = []
        for begin in range(len(words)):
            if not words[begin][0][0].isupper():
                continue
            for end in range(min(begin + _LONGEST_TITLE, len(words)), begin, -1):
                title = text[words[begin][1] : words[end - 1][2]].lower()
                if title in self.titles:
                    spans.append(title)
                    break
        return list(dict.fromkeys(spans))


class Decomposer(RuleAgent):
    """Breaks the question into its clauses, searches for each, and reads the best of each."""

    def run(self, question: str) -> None:
        """Search for the question and its clauses."""
        clauses = [clause.strip(" ?.") for clause in _BREAKS.split(question)]
        for query in [question, *(clause for clause in clauses if len(clause.split()) > 1 and clause != question)][:5]:
            self.open_first(self.search(query))


class Repeater(RuleAgent):
    """Repeats itself: searches for the question four times, in other cases, and reads once."""

    def run(self, question: str) -> None:
        """Search for the same."""
        for query in (question, question.upper(), question.lower(), question):
            found = self.search(query)
        self.open_first(found)


class RandomStopper(TitleFollower):
    """Follows titles, and stops before each further search by chance."""

    chance = 0.4

    def goes_on(self) -> bool:
        """Whether it searches once more."""
        return self._draw.random() > self.chance
