"""Targets that read what users write: configuration files, and the options of commands."""

from __future__ import annotations

from contextlib import suppress

from nlp_retrieval.benchmarks.config import read_benchmark_config
from nlp_retrieval.cli.console import parse_component, parse_options
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.encoders.colbert import is_multi_vector
from nlp_retrieval.errors import ConfigurationError, ModelError, SourceError
from nlp_retrieval.loaders.connection import hide_secrets, resolve, scrub

from .inputs import a_file, a_folder, as_text, parts

CHECKPOINT = ("modules.json", "config_sentence_transformers.json", "config.json")
REFUSED = (ConfigurationError, SourceError)


def sweep(data: bytes) -> bool:
    """The configuration file of a benchmark."""
    try:
        read_benchmark_config(a_file("sweep.yaml", data))
    except REFUSED:
        return False
    return True


def searcher(data: bytes) -> bool:
    """The settings of a searcher: what is built says of itself how an equal one is built."""
    try:
        made = build("searchers", {"name": "searcher"} | read_yaml(a_file("searcher.yaml", data)))
    except REFUSED:
        return False
    assert build("searchers", made.config).config == made.config
    return True


def options(data: bytes) -> bool:
    """``key=value`` words, and a component, on a command line."""
    text, read = as_text(data), 0
    for parse in (lambda: parse_options(text.split("\n")), lambda: parse_component(text)):
        with suppress(ConfigurationError):
            parse()
            read += 1
    return read > 0


def urls(data: bytes) -> bool:
    """A database URL as it is shown: hiding its secrets twice is hiding them once, and a message about it has none."""
    url = as_text(data)
    shown = hide_secrets(url)
    assert hide_secrets(shown) == shown
    assert url in shown or url not in scrub(f"cannot reach {url}", url)  # "***" may hold the secret "*"
    with suppress(SourceError):
        resolve(url)
    return shown != url


def checkpoint(data: bytes) -> bool:
    """The settings of a model folder."""
    files = dict(zip(CHECKPOINT, parts(data, len(CHECKPOINT)), strict=True))
    folder = a_folder("model", files)
    for name in [name for name, content in files.items() if not content]:
        (folder / name).unlink()
    try:
        return is_multi_vector(folder)
    except ModelError:
        return False


BY_USERS = [sweep, searcher, options, urls, checkpoint]
