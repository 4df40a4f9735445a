"""The base of all components: parameters are declared once, in the signature of ``__init__``, and checked by its type hints."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from os import fspath
from pathlib import Path
from types import CodeType, FunctionType, NoneType, UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from nlp_retrieval.core.components.trust_rules import Rule
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.secrets import HIDDEN, without_secrets
from nlp_retrieval.core.unicode import refuse_lone_surrogates
from nlp_retrieval.errors import ConfigurationError

_MEANT = {
    "dict_type": "Input should be a mapping",
    "sequence_str": "Input should be a list",
    "Input should be an instance of Sequence": "Input should be a list",
    "String should match pattern '^[^/\\s]+/\\S+$'": "write provider/model, such as openai/gpt-4o-mini; your own "
    "server's is openai/<model> with base_url",
    "Input should be an instance of LanguageModel": "Input should be a LanguageModel or an object with complete(prompt)",
    "Input should be an instance of BaseEncoder": "Input should be a BaseEncoder or an object with encode(texts) and dimension",
    "Input should be an instance of FirstCandidates": "Input should be an instance of BaseReranker",
}
"""pydantic's types of errors and messages in plain words."""


# The code of components of other packages, by which indexes are told apart; this one's have a ``format_version`` instead. The
# text of a class's module counts, as it was when the class was created; of a class in no file, the code of its functions.

_OWN_PACKAGE = __name__.partition(".")[0]
_checksums: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""For each class of others, the checksum of its module when it was created."""


def code_of(cls: type) -> dict[str, str] | None:
    """Return class, package with its version, and checksum of the code of a class; None where all of it is this package's."""
    foreign = [base for base in cls.__mro__ if base in _checksums]
    if not foreign:
        return None
    described = "".join(f"{base.__module__}:{base.__qualname__}\0{_checksums[base]}\n" for base in foreign)
    code = {"class": f"{cls.__module__}:{cls.__qualname__}", "checksum": hashlib.sha256(described.encode()).hexdigest()}
    return code | _package(cls.__module__.partition(".")[0])


@cache
def _package(name: str) -> dict[str, str]:
    try:
        return {"package": f"{name} {version(name)}"}
    except PackageNotFoundError:
        return {}


def is_own_module(name: str) -> bool:
    """Return whether a module belongs to this package."""
    return name.partition(".")[0] == _OWN_PACKAGE


def _checksum(cls: type) -> str:
    codes = [code for value in vars(cls).values() for code in _codes_in(value)]
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is not None and Path(file).is_file() and (not codes or file in {code.co_filename for code in codes}):
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return hashlib.sha256(f"{sys.implementation.cache_tag}\0{_in_words(tuple(codes))}".encode()).hexdigest()


def _codes_in(value: Any) -> list[CodeType]:
    """The code of an attribute that is a function, and of the functions that it wraps."""
    inner = (getattr(value, name, None) for name in ("__wrapped__", "fget", "fset", "fdel"))
    own = [value.__code__] if isinstance(value, FunctionType) else []
    return own + [code for part in inner if part is not None for code in _codes_in(part)]


def _in_words(value: object) -> str:
    """Code, or one of its constants, as text; the order of a set is another in every process."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {_in_words(value.co_consts)}"
    if isinstance(value, tuple | frozenset):
        return str(list(map(_in_words, value)) if isinstance(value, tuple) else sorted(map(_in_words, value)))
    return repr(value)


class _Suggested:
    """The registry name of a class that states none: ``my_retriever`` for ``MyRetriever``."""

    def __get__(self, instance: object, owner: type) -> str:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", owner.__name__.lstrip("_")).lower()


def is_abstract(cls: type, *methods: str) -> bool:
    """Return whether a class lacks all of these methods, which its bases only declare."""
    return all(getattr(getattr(cls, method), "__isabstractmethod__", False) for method in methods)


Config = dict[str, Any]
"""Settings of a component as plain values: its registry name under ``name``, and its parameters."""


class Component:
    """Base of loaders, processors, retrievers, rerankers, encoders, fusions and searchers.

    Two components are equal if they have the same type and ``config``. A constructor does nothing slow: models and
    indexes are opened at first use.

    Examples:
        >>> Bm25Retriever(k1=1.2) == Bm25Retriever(k1=1.2), ReciprocalRankFusion().config
        (True, {'name': 'rrf', 'k': 60.0, 'weights': None, 'found_by': 1})
    """

    kind: ClassVar[str]
    """Kind of component; the registry has one list of names per kind."""

    name: ClassVar[str] = cast(str, _Suggested())
    """The registry name, as used in configuration files."""

    format_version: ClassVar[int] = 1
    """Version of the component's index format, to be increased on changes, so that old indexes are refused."""

    search_only: ClassVar[frozenset[str]] = frozenset()
    """Parameters that do not change the index (k1, nprobe, a batch size). All others belong to the index."""

    manifest_may_set: ClassVar[Mapping[str, Rule]] = {}
    """A rule for each parameter that a manifest may set without the user's trust; not inherited. A class of another package
    without rules lets a manifest set numbers and plain words."""

    local_only: bool = False
    """True for components of a manifest: models are looked for in the hub's cache and in installed packages alone."""

    only_in_memory: ClassVar[bool] = False
    """True for a class whose components hold an object of this program, which no file can describe."""

    _arguments: dict[str, Any]

    _index_lock: Lock
    """Held while this component opens an index."""

    def __init__(self) -> None:
        # no docstring here: it would become the help of every class whose own constructor has none
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not is_own_module(cls.__module__):
            _checksums[cls] = _checksum(cls)

    @classmethod
    def of_value(cls, value: object) -> Component | None:
        """Return the component that another object stands for, where a component of this class is wanted; None if for none."""
        del value
        return None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Check the arguments against the signature of ``__init__`` and store them."""
        self = super().__new__(cls)
        self._index_lock = Lock()
        try:
            bound = inspect.signature(cls.__init__).bind_partial(self, *args, **kwargs)
        except TypeError:
            return self  # __init__ will raise Python's own message
        given = set(bound.arguments)
        bound.apply_defaults()
        self._arguments = dict(list(bound.arguments.items())[1:])
        for key, value in self._arguments.items():
            if key in given:
                self._arguments[key] = check_parameter(cls, key, value)
            elif isinstance(value, int | list | tuple | dict):
                with suppress(ConfigurationError):  # a default that its own type does not allow is left unchanged
                    self._arguments[key] = check_parameter(cls, key, value)
        return self

    @property
    def config(self) -> Config:
        """The registry name and every parameter as plain JSON values; the registry builds an equal component from it."""
        return {"name": self.name} | {key: to_plain(value) for key, value in self._arguments.items()}

    @property
    def recorded_config(self) -> Config:
        """The ``config`` as the manifest of an index records it: of a file that the index includes, the content."""
        return {"name": self.name} | {
            key: to_plain(value, lambda part: part.recorded_config) for key, value in self._arguments.items()
        }

    @property
    def identity(self) -> Config:
        """Identity of the component's indexes: :meth:`index_identity`, and the code if it is not this package's."""
        code = code_of(type(self))
        return self.index_identity() | ({} if code is None else {"code": code})

    def index_identity(self) -> Config:
        """All that determines the content of an index: the index parameters of this component and of its parts."""
        settings = {
            key: to_plain(value, lambda part: part.identity)
            for key, value in self._arguments.items()
            if key not in self.search_only
        }
        return {"name": self.name, "format": self.format_version} | settings

    def provenance(self) -> dict[str, str]:
        """Return the sources of the models of this component and its parts, by model name."""
        sources: dict[str, str] = {}
        for part in held_components(self):
            sources |= part.provenance()
        return sources

    def check_ready(self) -> None:
        """Raise errors that would otherwise occur at first use, if they are cheap to detect: missing packages, missing keys."""

    def calls_per_query(self) -> int | None:
        """Most language model calls for one query, not counting retries; None if unknown."""
        return None if any(part.kind == "language_models" for part in with_held(self)) else 0

    def extra_state(self) -> dict[str, Any]:
        """Attributes that a pickled or deep copy keeps besides the arguments; opened models and indexes are opened again."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as class and arguments, without opened models or indexes."""
        refuse_secrets(self, "pickled")
        return _recreate, (type(self), self._arguments, {"local_only": self.local_only} | self.extra_state())

    def __deepcopy__(self, memo: dict[int, Any]) -> Component:
        state = {"local_only": self.local_only} | self.extra_state()
        return _recreate(type(self), *copy.deepcopy((self._arguments, state), memo))

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._index_lock = Lock()
        return other

    def __repr__(self) -> str:
        defaults = {key: parameter.default for key, parameter in parameters_of(type(self)).items()}
        changed = {key: value for key, value in self._arguments.items() if value != defaults.get(key)}
        shown = (f"{key}={value!r}" for key, value in without_secrets(changed).items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Component) and other.config == self.config

    def __hash__(self) -> int:
        return hash((type(self), canonical_json(self.config)))


def _recreate(cls: type[Component], arguments: dict[str, Any], kept: dict[str, Any]) -> Component:
    component = cls(**arguments)
    component.__dict__.update(kept)
    return component


def refuse_secrets(component: Component, done: str) -> None:
    """Raise a :class:`ConfigurationError` if an argument of a component, or of its parts, holds a secret."""
    for part in reversed(list(with_held(component))):  # the part is named, not what holds it
        shown = without_secrets(part.config)
        for key, value in part._arguments.items():
            plain = to_plain(value)
            if HIDDEN in str(plain) or (shown.get(key) is not plain and shown.get(key) != plain):
                raise ConfigurationError(
                    f"{type(part).__name__}: {key} holds what looks like a secret, and is not {done}; name an environment "
                    "variable instead, or create the component in the other process"
                )


def held_components(component: Component) -> Iterator[Component]:
    """Yield the components among a component's arguments, including those in lists and mappings."""
    for value in component._arguments.values():
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
        yield from (part for part in parts if isinstance(part, Component))


def codes_in(component: Component) -> list[dict[str, str]]:
    """Fingerprints of the code of a component and all its parts, except for code of this package.

    Examples:
        >>> codes_in(Searcher(["bm25"]))  # components of this package have a version instead
        []
    """
    codes = (code_of(type(part)) for part in with_held(component))
    return [code for code in codes if code is not None]


def with_held(component: Component) -> Iterator[Component]:
    """Yield a component and all its parts, at any depth."""
    yield component
    for part in held_components(component):
        yield from with_held(part)


def parameters_of(cls: type[Component]) -> dict[str, inspect.Parameter]:
    """The parameters of a component, by name, in the order of its ``__init__``."""
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])


def to_plain(value: Any, of: Callable[[Component], Any] = lambda component: component.config) -> Any:
    """Turn a parameter into plain values for JSON and YAML; components become their ``config``, or what ``of`` says."""
    if isinstance(value, Component):
        return of(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner, of) for key, inner in value.items()}
    if isinstance(value, Path):
        return fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_plain(inner, of) for inner in value]
    return value + 0.0 if isinstance(value, float) else value  # -0.0 and 0.0 are equal, too


def canonical_json(value: Any) -> str:
    """Return canonical JSON, the same text for equal values; ConfigurationError for what is no plain value.

    Examples:
        >>> canonical_json({"b": 1.0, "a": [True, None]})
        '{"a":[true,null],"b":1.0}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ConfigurationError(
            f"{error}: settings of components are text, numbers, lists and mappings, by which indexes and results are known; "
            "take a model by its name or path, and open it at first use"
        ) from None


def digest_of_key(key: object) -> bytes:
    """Return the SHA-256 of a key: everything that decides a content, in values of JSON.

    Examples:
        >>> digest_of_key(["krill", 3]).hex()[:8]
        'd0d9508a'
    """
    return hashlib.sha256(canonical_json(key).encode("utf-8", "surrogatepass")).digest()


@cache
def hints_of(init: Callable[..., None]) -> dict[str, Any]:
    """Return the type hints of a constructor."""
    return get_type_hints(init, include_extras=True)


@cache
def _adapter(init: Callable[..., None], parameter: str) -> TypeAdapter[Any]:
    hint = hints_of(init).get(parameter, Any)
    is_model = isinstance(hint, type) and issubclass(hint, BaseModel)  # which has a configuration of its own
    return TypeAdapter(hint, config=None if is_model else ConfigDict(arbitrary_types_allowed=True, strict=True))


def component_for(cls: type[Component], parameter: str, value: Any) -> Any:
    """Return the component that a value stands for where a parameter takes components of its kind; else the value."""
    if isinstance(value, list):
        return [component_for(cls, parameter, part) for part in value]
    if value is None or isinstance(value, Component | str | int | float | Mapping | Sequence | Path):
        return value
    hint = hints_of(cls.__init__).get(parameter)
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    made = (option.of_value(value) for option in options if isinstance(option, type) and issubclass(option, Component))
    return next((component for component in made if component is not None), value)


ComponentT = TypeVar("ComponentT", bound=Component)

_of_objects: WeakValueDictionary[tuple[str, int], Any] = WeakValueDictionary()
"""The component of each object in use, by its kind and the object's id: a component holds its object, so no other has that."""
_of_objects_lock = Lock()


def component_of_object(kind: str, value: object, make: Callable[[], ComponentT]) -> ComponentT:
    """Return the component of a kind that stands for an object of a program; there is one for each, made at first."""
    with _of_objects_lock:
        known: ComponentT | None = _of_objects.get((kind, id(value)))
        if known is None:
            _of_objects[kind, id(value)] = known = make()
        return known


class FunctionComponent(Component):
    """A function where a processor or a reranker is expected; no file can hold it."""

    name = "function"
    only_in_memory = True
    takes: ClassVar[tuple[str, ...]]
    function: Callable[..., Any]

    def __init__(self, function: str) -> None:
        del function

    def extra_state(self) -> dict[str, Any]:
        return {"function": self.function}

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Return the component of a function; None for anything else, ConfigurationError if it takes other arguments."""
        if not callable(value) or isinstance(value, type | Component):
            return None
        try:
            with suppress(ValueError):  # a built-in function may have no signature
                inspect.signature(value).bind(*cls.takes)
        except TypeError as error:
            raise ConfigurationError(f"a function as a {cls.kind[:-1]} gets {' and '.join(cls.takes)} ({error})") from None
        named = f"{getattr(value, '__qualname__', type(value).__name__)} {uuid4().hex[:12]}"
        made = component_of_object(cls.kind, value, lambda: cls(named))
        made.function = value
        return made


def check_parameter(cls: type[Component], parameter: str, value: Any) -> Any:
    """Return a checked value, with whole numbers as floats where the type is float: ``k1: 1`` and ``1.0`` are equal."""
    value = component_for(cls, parameter, value)
    try:
        checked = _adapter(cls.__init__, parameter).validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False)  # of a union, one for each of its types
        first, *others = dict.fromkeys(_MEANT.get(each["type"], _MEANT.get(each["msg"], each["msg"])) for each in problems)
        if first.startswith("Input should be a") and NoneType in get_args(hints_of(cls.__init__).get(parameter)):
            others.append("None")
        expected = " or ".join([first, *(other.removeprefix("Input should be ") for other in others)])
        shown = f"{parameter}={without_secrets({parameter: value})[parameter]!r:.200}"
        raise ConfigurationError(f"{cls.__name__}: {shown}: {expected}") from None
    refuse_lone_surrogates(value, f"{cls.__name__}: {parameter}", ConfigurationError)
    if isinstance(checked, int) and not -(2**63) <= checked < 2**64:  # JSON would give it back rounded
        raise ConfigurationError(f"{cls.__name__}: {parameter}={value}: Input should have at most 64 bits")
    return checked


class BaseQueryLoader(Component, ABC):
    """A source of queries and their gold; SourceError if it is missing or malformed."""

    kind: ClassVar[str] = "loaders"

    @abstractmethod
    def queries(self) -> list[Query]:
        """Return the queries, in the order of the source."""

    @abstractmethod
    def gold(self) -> list[Gold]:
        """Return the gold of exactly these queries, in the same order."""


class BaseUserQueryProcessor(Component, ABC):
    """Turns a user's query into the sub-queries to run."""

    kind: ClassVar[str] = "processors"

    @classmethod
    def of_value(cls, value: object) -> Component | None:
        """Return a function, which takes a query and returns one or a list of sub-queries, as a processor."""
        return FunctionProcessor.of(value)

    @abstractmethod
    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return the sub-queries of each query, in order; an empty list means that nothing is searched."""


class FunctionProcessor(FunctionComponent, BaseUserQueryProcessor):
    """A function of a query, which returns the sub-query, or a list of sub-queries."""

    takes = ("a query",)

    def process(self, nlqs: list[str]) -> list[list[str]]:
        made = map(self.function, nlqs)
        return [[subqueries] if isinstance(subqueries, str) else subqueries for subqueries in made]
