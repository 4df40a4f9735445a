"""DSPy's access to a client with ``complete(prompt)``: a request becomes one text, and the answer a response."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from nlp_retrieval.lm.answers import Answer, AnswerStore, Question
from nlp_retrieval.lm.dspy_package import lm15


class ClientWire:
    """Asks a client.

    Args:
        client: has a method ``complete(prompt)``.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def complete(self, request: Any) -> Any:
        """Answer a ``dspy.lm15.Request``.

        Raises:
            LM15Error: the client raised an error, or returned no text.
        """
        try:
            answer = self._client.complete(prompt_of(request))
        except Exception as error:
            raise lm15.LM15Error(f"complete() raised {type(error).__name__}: {error}") from error
        text = answer if isinstance(answer, str) else getattr(answer, "text", None)
        if not isinstance(text, str):
            if inspect.iscoroutine(answer):
                answer.close()
            raise lm15.LM15Error(
                f"complete() returned {type(answer).__name__}; it must return the answer as text, or an object with it as .text"
            )
        return lm15.Response(
            id=None, model=request.model, message=lm15.Message.assistant(text), finish_reason="stop", usage=lm15.Usage()
        )

    def close(self) -> None:
        """Do nothing: the client is its owner's."""


def prompt_of(request: Any) -> str:
    """Return a request as one text; demonstrations, if there are any, as turns of a conversation."""
    system = request.system
    parts = [] if system is None else [system if isinstance(system, str) else "".join(part.text for part in system)]
    if len(request.messages) == 1:
        return "\n\n".join([*parts, request.messages[0].text])
    turns = [f"{message.role}:\n{message.text}" for message in request.messages]
    return "\n\n".join([*parts, *turns, "assistant:"])


class NoAnswers(AnswerStore):
    """Keeps nothing: two clients may answer differently, and nothing tells them apart."""

    def __init__(self) -> None:
        super().__init__(Path())

    def find(self, question: Question) -> Answer | None:
        del question
        return None

    def keep(self, question: Question, answer: Answer) -> None:
        del question, answer
