"""Targets that read what users write: configuration files, and the options of commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

import pydantic

from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.console import parse_component, parse_options
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.rerankers.multi_signal.profile import Profile, load_profile
from nlp_retrieval.service.endpoints import faults_of
from nlp_retrieval.service.index_service import SearchBody

from .inputs import a_file, as_text

REFUSED = (ConfigurationError, SourceError)
SECRET = "sk-0123456789abcdefghij"


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


def profiles(data: bytes) -> bool:
    """A profile: it is read as itself again, and its questions are asked in words."""
    try:
        read = load_profile(a_file("profile.yaml", data))
    except REFUSED:
        return False
    assert Profile.from_mapping(read.model_dump(mode="json")) == read
    assert [question.number for question in map(read.question, range(1, len(read.questions) + 1))] == [
        *range(1, len(read.questions) + 1)
    ]
    for question in read.questions:
        assert "{subject}" not in question.asked_of("Japan")
        assert "{subject}" not in question.asked_of(None)
    return True


def bodies(data: bytes) -> bool:
    """What a service of an index is asked."""
    return read_bodies(data, [SearchBody])


def read_bodies(data: bytes, models: Sequence[type[pydantic.BaseModel]]) -> bool:
    """What a service is asked: unknown fields and converted values are refused, and the message repeats nothing."""
    taken, said = False, ""
    for body in models:
        try:
            read = body.model_validate_json(data)
        except pydantic.ValidationError as error:
            said += faults_of([{"loc": fault["loc"][-1:], "msg": fault["msg"]} for fault in error.errors()])
            continue
        taken = True
        given = json.loads(data)
        assert set(given) <= set(body.model_fields)
        _check_same(read.model_dump(mode="json"), given)
    assert SECRET not in said
    return taken


def _check_same(read: object, given: object) -> None:
    """Whether all that was given was taken as it stands."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            _check_same(read[key], value)
    elif isinstance(given, list) and isinstance(read, list):
        for one, other in zip(read, given, strict=True):
            _check_same(one, other)
    else:
        assert type(read) is type(given) or isinstance(read, int)
        assert read == given


BY_USERS = [sweep, searcher, options, urls, profiles, bodies]
