"""pgvector's type in SQLAlchemy, by its text form: values are plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.types import UserDefinedType

from nlp_retrieval.systems.policy.chunk_tables.vector_text import Floats, as_text, from_text

__all__ = ["Vector"]


class Vector(UserDefinedType[Any]):
    """``vector(dimension)``, or another of pgvector's types, with the schema of the extension if it is given.

    Args:
        dimension: of the vectors; None: any.
        schema: of the extension.
        kind: ``vector`` or ``halfvec``.
    """

    cache_ok = True

    def __init__(self, dimension: int | None = None, schema: str | None = None, kind: str = "vector") -> None:
        self.dimension = dimension
        self.schema = schema
        self.kind = kind

    def get_col_spec(self, **_: Any) -> str:
        """Return the type for ``CREATE TABLE``."""
        place = "" if self.schema is None else f'"{self.schema.replace(chr(34), chr(34) * 2)}".'
        return f"{place}{self.kind}" + ("" if self.dimension is None else f"({self.dimension:d})")

    def bind_processor(self, dialect: Any) -> Callable[[Any], str | None]:
        """Return the conversion of numbers to PostgreSQL's text."""
        del dialect
        return lambda value: value if value is None or isinstance(value, str) else as_text(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Floats | None]:
        """Return the conversion of PostgreSQL's text to numbers."""
        del dialect, coltype
        return lambda value: None if value is None else from_text(value)
