"""What processors that ask with a compiled program have in common: the file is read when they are made, and told by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import CompiledProgram, read_program


class CompiledProcessor(BaseUserQueryProcessor):
    """A processor that asks once for each query; its ``program`` is the JSON file of a compiled DSPy program, or None."""

    lm: LanguageModel
    program: str | Path | None = None
    compiled: CompiledProgram | None = None
    """What the file held when the processor was made."""

    def _take_program(self, program: str | Path | None, fields: Mapping[str, Sequence[str]]) -> None:
        """Read a program whose predictors have these fields.

        Raises:
            SourceError: there is no such file, or it is no JSON.
            ConfigurationError: it is no state of a DSPy program, or that of another one.
        """
        self.program = program
        self.compiled = read_program(program, fields) if program is not None else None

    def calls_per_query(self) -> int:
        return 1

    def index_identity(self) -> Config:
        # what was read decides, not the path
        told = {} if self.compiled is None else {"program": self.compiled.fingerprint}
        return super().index_identity() | told

    def provenance(self) -> dict[str, str]:
        told = {} if self.compiled is None else {str(self.program): self.compiled.fingerprint}
        return super().provenance() | told
