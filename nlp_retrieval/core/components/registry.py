"""Finding components by their short names: entry points of the groups ``nlp_retrieval.<kind>``, imported at first use."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import chain, count
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from nlp_retrieval.core.components.component import (
    Component,
    ComponentT,
    component_for,
    hints_of,
    is_own_module,
    parameters_of,
    to_plain,
    with_held,
)
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, UntrustedError, nearest

_KINDS = tuple("loaders processors retrievers rerankers encoders fusions searchers links answerers language_models".split())
"""The kinds of components of the library; a package adds its own by entry points of the group ``nlp_retrieval.kinds``."""


@cache
def kinds() -> tuple[str, ...]:
    """Return all kinds of components, including those of installed packages."""
    added = {entry.name for entry in entry_points(group="nlp_retrieval.kinds")} - set(_KINDS)
    return _KINDS + tuple(sorted(added))


@cache
def registered(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by their names."""
    if kind not in kinds():
        raise ConfigurationError(f"there is no kind of component called {kind!r}; {nearest(kind, kinds())}")
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"nlp_retrieval.{kind}"):
        other = entries.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigurationError(
                f"two packages register {entry.name!r} under nlp_retrieval.{kind}: {other.value} and {entry.value}; "
                "uninstall one of them"
            )
    return entries


def require_distinct_names(component: Component) -> None:
    """Raise an error if a component or a part of it is of another package, and has a registry name that is taken."""
    for part in with_held(component):
        package = type(part).__module__.partition(".")[0]
        entry = None if is_own_module(package) or part.kind == "searchers" else registered(part.kind).get(part.name)
        if entry is not None and entry.module.partition(".")[0] != package and entry.load() is not type(part):
            raise ConfigurationError(
                f"{type(part).__module__}:{type(part).__qualname__} is called {part.name!r}, as {entry.value} is, and an index "
                "would mix them up: give the class a name of its own (name = ...)"
            )


def numbered_names(names: Iterable[str]) -> list[str]:
    """Return names with a number from the second of each on, whatever their case: ``bm25``, ``bm25-2``."""
    used: dict[str, str] = {}
    for name in names:
        labels = chain([name], (f"{name}-{number}" for number in count(2)))
        label = next(label for label in labels if label.casefold() not in used)
        used[label.casefold()] = label
    return list(used.values())


def labelled(parts: Sequence[ComponentT] | Mapping[str, ComponentT], where: str) -> dict[str, ComponentT]:
    """Return retrievers by label, under which their signals appear: the given labels, or their names, numbered if equal."""
    if len(parts) == 0:
        raise ConfigurationError(f"{where} is empty; pass at least one")
    if not isinstance(parts, Mapping):
        return dict(zip(numbered_names(part.name for part in parts), parts, strict=True))
    for label in parts:
        if not label or "." in label or "[" in label or label == "name":  # which are the settings of one retriever
            raise ConfigurationError(
                f"{where}: {label!r} cannot be a label; leave out '.' and '['; one alone is a list too: [{{name: ...}}]"
            )
    return dict(parts)


_NAMED_BY_MODEL = {"encoders": ("sentence-transformers", "colbert", "splade"), "language_models": ("dspy",)}
"""Kinds of components that may be given by the name of a model, with their classes: the first one that fits is used."""

_BY_NAME = object()
ByName = Annotated[str | Mapping[str, Any], _BY_NAME]
"""A component given by description: its registry name, or a mapping with ``name`` and parameters."""


def names(kind: str) -> list[str]:
    """Return the registry names of a kind, sorted."""
    return sorted(registered(kind))


def component_class(kind: str, name: str) -> type[Component]:
    """Return the class that a registry name stands for."""
    entry = registered(kind).get(name)
    if entry is None:
        raise ConfigurationError(f"there is no {kind[:-1]} called {name!r}; {nearest(name, names(kind))}")
    loaded = entry.load()
    if not (isinstance(loaded, type) and issubclass(loaded, Component)):
        raise ConfigurationError(f"{entry.value}, registered as {kind[:-1]} {name!r}, is not a component")
    return loaded


@dataclass(frozen=True)
class PlannedComponent:
    """The description of a component that has not been created yet."""

    name: str
    cls: type[Component]
    fields: dict[str, Any]
    where: str

    def make(self, wanted: type[ComponentT]) -> ComponentT:
        """Create the component, which must be of this class, and the components inside it."""
        fields = {key: _created(value) for key, value in self.fields.items()}
        missing = [key for key, p in parameters_of(self.cls).items() if p.default is p.empty and key not in fields]
        with error_place(self.where):
            if missing:
                raise ConfigurationError(f"{self.name} needs {', '.join(map(repr, missing))}")
            if not isinstance(component := self.cls(**fields), wanted):
                raise ConfigurationError(f"{component.name!r} is not a {wanted.__name__}; name another")
            return component


def build(kind: str, settings: str | Mapping[str, Any], where: str = "") -> Component:
    """Build a component of a kind, and those inside it, from a registry name, or a mapping with ``name`` and parameters.

    ``kind`` is one of :func:`~nlp_retrieval.core.components.registry.kinds`. A ConfigurationError, where they fit no component,
    begins with ``where``, the path of the settings in a configuration.

    Examples:
        >>> build("retrievers", {"name": "bm25", "k1": 1.2})
        Bm25Retriever(k1=1.2)
    """
    return plan(kind, settings, where).make(Component)


@contextmanager
def error_place(where: str) -> Iterator[None]:
    """Put the place in a configuration in front of the message of an error."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}" if where else str(error)) from None


def plan(
    kind: str, settings: str | Mapping[str, Any], where: str = "", wanted: type[Component] = Component
) -> PlannedComponent:
    """Plan the component that plain values describe, without creating it; the name of a model makes its component."""
    with error_place(where):
        if isinstance(settings, str):
            settings = {"name": settings}
        if not isinstance(settings, Mapping):
            raise ConfigurationError(f"expected a name or a mapping with 'name', found {without_secrets(settings)!r}")
        fields = dict(settings)
        by_model = _NAMED_BY_MODEL.get(kind, ())
        name = fields.pop("name", None) or fields.pop("loader" if kind == "loaders" else "model" if by_model else "", None)
        if not isinstance(name, str):
            given = ", ".join(map(repr, settings)) or "nothing"
            raise ConfigurationError(f"no 'name' that is text (found: {given}); {nearest('', names(kind))}")
        if by_model and name not in registered(kind):
            model = fields.setdefault("model", name)
            if model != name and not str(model).startswith(f"{name}/"):
                raise ConfigurationError(f"name: {name!r} and `model` name two models; leave out name")
            name = next((each for each in by_model if issubclass(component_class(kind, each), wanted)), by_model[0])
        cls = component_class(kind, name)
        parameters = parameters_of(cls)
        for key in fields:
            if key not in parameters:
                raise ConfigurationError(f"{name} has no parameter {key!r}; {nearest(str(key), parameters)}")
    hints = hints_of(cls.__init__)
    fields = {key: _planned(hints.get(key), value, f"{where}.{key}" if where else key) for key, value in fields.items()}
    return PlannedComponent(name, cls, fields, where)


def build_as(cls: type[ComponentT], kind: str, settings: str | Mapping[str, Any], where: str = "") -> ComponentT:
    """Build a component as :func:`build` does; a ConfigurationError if it is not of a given class.

    Examples:
        >>> build_as(Searcher, "searchers", {"name": "searcher", "retrievers": ["bm25"]})
        Searcher(retrievers=[Bm25Retriever()])
    """
    return plan(kind, settings, where, cls).make(cls)


def resolve_components(component: Component, owner: type[Component], **given: Any) -> dict[str, Any]:
    """Return arguments of a component with :data:`ByName` descriptions replaced by components, for ``owner.__init__``.

    Examples:
        >>> Searcher(["bm25"]).config["retrievers"][0]["name"]  # its constructor calls resolve_components(self, ...)
        'bm25'
    """
    hints = hints_of(owner.__init__)
    resolved = {
        key: _created(_planned(hints[key], list(value) if isinstance(value, tuple) else value, f"{owner.__name__}: {key}"))
        for key, value in ((key, component_for(owner, key, value)) for key, value in given.items())
    }
    component._arguments |= {key: value for key, value in resolved.items() if key in component._arguments}
    return resolved


def _planned(hint: Any, value: Any, where: str) -> Any:
    """Plan the components that a parameter's type hint asks for, and make paths of text; leave everything else as it is."""
    options = _options(hint)
    if isinstance(value, str):
        options = [] if str in options else options
        if Path in options:
            return Path(value)
    for option in options:
        inner = get_args(option)[-1] if get_args(option) else None
        if isinstance(option, type) and issubclass(option, Component) and isinstance(value, str | Mapping):
            return plan(option.kind, value, where, option)
        if get_origin(option) in (Sequence, list) and isinstance(value, list):
            return [_planned(inner, part, f"{where}[{number}]") for number, part in enumerate(value)]
        if get_origin(option) in (Mapping, dict) and isinstance(value, Mapping):
            return {key: _planned(inner, part, f"{where}.{key}") for key, part in value.items()}
    return value


def _created(value: Any) -> Any:
    """Create the planned components in a parameter; leave everything else as it is."""
    if isinstance(value, PlannedComponent):
        return value.make(Component)
    if isinstance(value, list):
        return [_created(part) for part in value]
    return {key: _created(part) for key, part in value.items()} if isinstance(value, dict) else value


def _options(hint: Any) -> list[Any]:
    """The types of a union, one by one, without those that :data:`ByName` adds."""
    if get_origin(hint) is Annotated:
        return [] if _BY_NAME in hint.__metadata__ else _options(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [option for part in get_args(hint) for option in _options(part)]
    return [] if hint is None else [hint]


def describe_parameters(cls: type[Component]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each parameter of a component: name, default, description in its docstring, and whether it belongs to the index."""
    section = inspect.cleandoc(cls.__doc__ or "").partition("Args:\n")[2]
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    described = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE))
    for key, parameter in parameters_of(cls).items():
        default = "required" if parameter.default is parameter.empty else repr(parameter.default)
        yield key, default, " ".join(described.get(key, "").split()), key not in cls.search_only


def asked_for(plan: PlannedComponent) -> Iterator[str]:
    """Yield, as phrases, what a component would do that its manifest is not allowed to ask for."""
    without_rules: Mapping[str, Any] | None = {} if is_own_module(plan.cls.__module__) else None
    rules = vars(plan.cls).get("manifest_may_set", without_rules)  # a subclass inherits no trust
    for key, value in plan.fields.items():
        parts = _plans_in(value)
        for part in parts:
            yield from asked_for(part)
        if (parts and (rules is None or key in rules)) or (rules is None and _is_plain(value)):
            continue
        phrase = f"set it to {to_plain(value)!r}" if rules is None or key not in rules else rules[key](value)
        if phrase is not None:
            yield f"{plan.where}.{key}: {without_secrets(phrase)}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and value.isidentifier())


def build_from_manifest(
    cls: type[ComponentT], plans: Sequence[PlannedComponent], source: str, cure: str = "", *, trust: bool = False
) -> list[ComponentT]:
    """Create the components of a manifest; if it asks for more than it is allowed, an error, unless the user trusts it.

    Without trust, they look for models only on this machine.
    """
    listed = "; ".join(phrase for described in plans for phrase in asked_for(described))
    if listed and not trust:
        raise UntrustedError(
            f"{source} asks for more than a manifest may decide: {listed}. If you know who made it and want that, say so with "
            f"--trust (in Python: trust=True){cure}"
        )
    if listed:
        warnings.warn(f"{source} is trusted: {listed}", RetrievalWarning, stacklevel=3)
    made = [described.make(cls) for described in plans]
    for part in (part for component in made for part in with_held(component)):
        part.local_only = not trust
    return made


def _plans_in(value: Any) -> list[PlannedComponent]:
    if isinstance(value, PlannedComponent):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [plan for part in inner for plan in _plans_in(part)]
