"""Targets that read what users write: configuration files, and the options of commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

import pydantic

from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.service.endpoints import faults_of

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


def urls(data: bytes) -> bool:
    """A database URL as it is shown: hiding its secrets twice is hiding them once, and a message about it has none."""
    url = as_text(data)
    shown = hide_secrets(url)
    assert hide_secrets(shown) == shown
    assert url in shown or url not in scrub(f"cannot reach {url}", url)  # "***" may hold the secret "*"
    with suppress(SourceError):
        resolve(url)
    return shown != url


def read_bodies(data: bytes, models: Sequence[type[pydantic.BaseModel]]) -> bool:
    """What a service is asked: unknown fields are refused, and the message repeats nothing."""
    taken, said = False, ""
    for body in models:
        try:
            body.model_validate_json(data)
        except pydantic.ValidationError as error:
            said += faults_of([{**fault, "loc": fault["loc"][-1:]} for fault in error.errors()])
            continue
        taken = True
        given = json.loads(data)
        assert set(given) <= set(body.model_fields)
    assert SECRET not in said
    return taken


BY_USERS = [sweep, urls]
