"""Running an exported model: a text at a time, on one thread each, as many threads as there are cores.

Nothing is padded, so a text's vector does not depend on the others, and 8-bit activations are scaled by one text alone. One
query is computed by the thread that asks: threads that wait for one another lose more on a busy machine than they gain.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlp_retrieval.core.cores import usable_cores
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.model_turns import blamed_on
from nlp_retrieval.errors import DependencyError, ModelError, first_line, install

if TYPE_CHECKING:
    import onnxruntime

GRAPH_FILE, TOKENIZER_FILE, SETTINGS_FILE = "model.onnx", "tokenizer.json", "settings.json"
OF_TOKENS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""The inputs that a graph may have, by what a tokenizer calls them."""
_NO_LIMIT = 1_000_000
_AT_LEAST = 4
"""Texts for a thread: fewer are not worth starting one."""


class OnnxModel:
    """An exported model, open; safe in several threads.

    Args:
        folder: folder that :func:`~nlp_retrieval.encoders.backends.export.exported` made.
        max_length: tokens that are read of a text; None for the model's own limit.

    Raises:
        DependencyError: onnxruntime or tokenizers is not installed.
        ModelError: the folder holds no such model.
    """

    def __init__(self, folder: Path, max_length: int | None = None) -> None:
        require_onnx_extra()
        from tokenizers import Tokenizer

        try:
            settings: dict[str, Any] = read_json_file(folder / SETTINGS_FILE)
            self.prompts: dict[str, str] = settings["prompts"]
            self.default_prompt: str = settings["default_prompt"]
            self.dimension: int = settings["dimension"]
            self.max_seq_length: int | None = max_length or settings["max_seq_length"]
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
            self._session = open_session(folder / GRAPH_FILE)
        except Exception as error:
            raise ModelError(f"{folder} does not load with onnxruntime: {first_line(error)}") from error
        self._name = str(folder)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(OF_TOKENS):
            raise ModelError(f"{folder} needs the inputs {', '.join(sorted(unknown))}, which a text model does not have")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if self.max_seq_length is not None and self.max_seq_length < _NO_LIMIT:
            self._tokenizer.enable_truncation(self.max_seq_length)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return ``[texts, dimension]``, as the model gives them.

        Raises:
            ModelError: the graph fails, as for more tokens than it has places for.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)

        def fill(rows: range) -> None:
            for row in rows:
                vectors[row] = self._vector_of(texts[row])

        in_threads(len(texts), fill)
        return vectors

    def longer(self, texts: Sequence[str]) -> int:
        """How many texts have more tokens than the model reads."""
        with blamed_on(self._name):
            return sum(bool(self._tokenizer.encode(text).overflowing) for text in texts)

    def _vector_of(self, text: str) -> Vectors:
        with blamed_on(self._name):
            encoded = self._tokenizer.encode(text)
        feed = {name: np.array([getattr(encoded, OF_TOKENS[name])], np.int64) for name in self._inputs}
        try:
            vector: Vectors = self._session.run(None, feed)[0][0]
        except Exception as error:
            raise ModelError(
                f"the exported model fails at a text of {len(encoded.ids)} tokens: {first_line(error)}; "
                "set max_length to what the model can read"
            ) from error
        return vector


def open_session(file: Path) -> onnxruntime.InferenceSession:
    """Open a graph that was made on this machine."""
    import onnxruntime

    graph = file.read_bytes()  # not by its path, which could be mapped and overwritten
    return onnxruntime.InferenceSession(graph, session_options(), providers=["CPUExecutionProvider"])


def session_options() -> onnxruntime.SessionOptions:
    """How all graphs are run: each run in the thread that asks, without threads of its own, which spin while they wait.

    Without a number onnxruntime starts as many as the machine has cores, whatever OMP_NUM_THREADS says.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


def in_threads(n_texts: int, work: Callable[[range], None]) -> None:
    """Have texts done on all usable cores; a few by the thread that asks.

    Args:
        n_texts: how many there are.
        work: does the texts with these numbers.
    """
    n_threads = min(usable_cores(), n_texts // _AT_LEAST)
    if n_threads < 2:
        work(range(n_texts))
        return
    with ThreadPoolExecutor(n_threads, "nlp_retrieval-onnx") as threads:
        list(threads.map(work, [range(first, n_texts, n_threads) for first in range(n_threads)]))


def texts_for_all_cores() -> int:
    """How many texts at once have all usable cores work."""
    return _AT_LEAST * usable_cores()


def require_onnx_extra(*also: str) -> None:
    """Raise :class:`DependencyError` unless onnxruntime, tokenizers and the packages named are installed."""
    for package in ("onnxruntime", "tokenizers", *also):
        if importlib.util.find_spec(package) is None:
            raise DependencyError(f"backend='onnx' needs {package}: {install('onnx')}")
