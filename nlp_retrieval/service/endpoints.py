"""What a service can be asked, apart from how: each endpoint has a name, a model of the request and of the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["BaseService", "Endpoint", "RequestBody", "ResultCount"]


def _whole(value: object) -> object:
    """JSON knows one kind of number: 3.0 is an integer there."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


ResultCount = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=1000)]
"""How many results may be asked for."""


class RequestBody(BaseModel):
    """A request: unknown fields are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked.

    Args:
        path: below the service's address; a part in braces is the argument of ``run``.
        summary: for the schema, a line.
        run: does it, in a thread, and returns JSON; its argument is the body, the part in braces, or None.
        answer: type of the answer.
        body: model of the request; None for GET.
        writes: whether it changes what is served: one at a time, and with more time.
    """

    path: str
    summary: str
    run: Callable[[Any], bytes]
    answer: type[Any]
    body: type[RequestBody] | None = None
    writes: bool = False


class BaseService(ABC):
    """What is served. Its endpoints are used by several threads at once."""

    kind: ClassVar[str]
    """``index`` or ``project``."""

    describes: ClassVar[str]
    """What it is, for the schema."""

    @property
    @abstractmethod
    def endpoints(self) -> list[Endpoint]:
        """All that can be asked."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it can be searched; looked up for every check of health, so it must cost next to nothing."""

    def close(self) -> None:  # noqa: B027 -- most have nothing to close
        """Close files; no request is under way."""
