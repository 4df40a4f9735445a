"""Rules for component settings in the manifest of an index or a run, listed in a component's ``manifest_may_set``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], str | None]
"""Returns, as a phrase, what a value would do that a manifest is not allowed to ask for; None if nothing."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def reads_model(model: Any) -> str | None:
    """Allow a name of the hub, refuse a path.

    Examples:
        >>> reads_model("intfloat/e5-small-v2"), reads_model("./model")
        (None, "read the model at './model'")
    """
    if not isinstance(model, str) or (_HUB_NAME.fullmatch(model) and ".." not in model):
        return None  # looked for only in the cache of this machine: see Component.local_only
    return f"read the model at {model!r}"


def loads_pipeline(pipeline: Any) -> str | None:
    """Allow the rules of this package, refuse a spaCy pipeline."""
    return None if pipeline in (None, "rules") else f"load the spaCy pipeline {pipeline!r}, with the code that it names"


def _like(pattern: str, subject: str) -> Rule:
    """Return a rule that allows None and texts that match a pattern."""
    return lambda value: None if isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) else given(subject)(value)


def given(what: str) -> Rule:
    """Return a rule that allows only None.

    Examples:
        >>> given("read")(None), given("read")("/etc/passwd")
        (None, "read '/etc/passwd'")
    """
    return lambda value: None if value is None else f"{what} {value!r}"


def runs_code(trusted: Any) -> str | None:
    """Allow only False."""
    return None if trusted is False else "run the Python code that comes with the model"


def may_set(*free: str, **ruled: Rule) -> dict[str, Rule]:
    """Return the rule of each parameter that a manifest may set: ``free`` may have any valid value.

    Examples:
        >>> sorted(may_set("k1", "b", path=given("read")))
        ['b', 'k1', 'path']
    """
    return dict.fromkeys(free, lambda _: None) | ruled


MODEL_RULES: dict[str, Rule] = {
    "model": reads_model,
    "device": _like(r"(cpu|cuda|mps)(:\d{1,3})?", "use the device"),
    "revision": _like(r"[A-Za-z0-9](?:[\w-]|\.(?!\.)){0,127}", "read the revision"),
}
"""Trust rules of the usual parameters of a component with a model, for ``manifest_may_set``."""

ENCODER_RULES = may_set(
    "precision", "batch_size", "max_length", "query_prompt", "passage_prompt", **MODEL_RULES, trust_remote_code=runs_code
)
PART_RULES = may_set("retrievers", "fusion", "reranker")
"""Trust rules of the parameters that hold the parts of a searcher."""

READS_FILE = given("read")
"""The trust rule of a parameter that names a file to read: only the user may set it."""

FIELD_NAMES = ("id_field", "content_field", "title_field", "metadata_fields")
