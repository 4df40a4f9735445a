"""Rules of every component: a config that builds it again; and of those that answer a batch: the same answer in any."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

import pytest

from nlp_retrieval.core.components.component import Component, canonical_json, parameters_of
from nlp_retrieval.core.components.registry import build, component_class, describe_parameters
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.testing.verdict import broken, in_threads, shown

C = TypeVar("C", bound=Component)


class ComponentRules(Generic[C]):
    """Rules of every component; the classes for the kinds of components extend it.

    A subclass defines the component to check. It overrides no test: a rule that a component cannot keep yet is overridden with
    ``@pytest.mark.xfail(reason=...)``, so that it is reported.
    """

    component: ClassVar[type[Component]]
    """The class to check."""

    tolerance: ClassVar[float] = 0.0
    """Tolerance for scores (for encoders, vectors) that should be equal: relative above 1, absolute below. The order of
    results may differ only where their scores are that close. Exactly equal by default; a neural model needs about 1e-5."""

    folder: Path
    """An empty folder for this class, created before :meth:`prepare`."""

    kept: ClassVar[dict[str, object]]
    """Slow objects shared by the tests of this class."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def prepared(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Create the folder, and let the author fill it; after the last test, release shared objects and their open files."""
        own = request.cls
        own.folder = tmp_path_factory.mktemp(own.__name__)
        own.kept = {}
        own().prepare()
        yield
        own.kept.clear()

    def prepare(self) -> None:
        """Write the files that :meth:`make` needs into ``self.folder``; called once per class. Does nothing by default."""

    def make(self) -> C:
        """Return a new component, with the same settings at every call; only constructors are called."""
        return cast(C, self.component())

    @property
    def shared(self) -> C:
        """One component for all tests of the class."""
        if "component" not in self.kept:
            self.kept["component"] = self.make()
        return cast(C, self.kept["component"])

    def require(self, holds: object, rule: str, seen: object) -> None:
        """Report a broken rule, and what was found, unless it holds."""
        if not holds:
            broken(rule, self.shared, str(seen))

    def test_the_component_is_of_the_class_that_is_checked(self) -> None:
        made = type(self.make())
        self.require(made is self.component, "make() returns a component of the class named as 'component'", made)

    def test_equal_settings_make_equal_components(self) -> None:
        first, other = self.make(), self.make()
        is_equal = first == other and hash(first) == hash(other)
        self.require(is_equal, "two components of equal settings are equal", f"{first.config} and {other.config}")
        one, two = canonical_json(first.identity), canonical_json(other.identity)
        self.require(one == two, "components of equal settings have one identity", f"{one}, {two}")

    def test_the_config_is_json_and_builds_an_equal_component(self) -> None:
        component = self.make()
        rule = "the config holds plain JSON values, and the registry builds an equal component from it"
        try:
            config = json.loads(json.dumps(component.config, allow_nan=False))
            rebuilt = build(component.kind, config)
        except (TypeError, ValueError, ConfigurationError) as error:
            broken(
                rule,
                component,
                f"{shown(component.config)}: {error}. An unknown name means that the component, or one inside it, is not an "
                f"installed entry point of the group nlp_retrieval.{component.kind}",
            )
        self.require(config == component.config, rule, f"{shown(component.config)} comes back from JSON as {shown(config)}")
        self.require(rebuilt == component, rule, f"{rebuilt!r} with the config {shown(rebuilt.config)}")

    def test_the_registry_name_stands_for_this_class(self) -> None:
        component = self.make()
        try:
            registered = component_class(component.kind, component.name)
        except ConfigurationError as error:
            broken(f"a component is registered as an entry point of nlp_retrieval.{component.kind}", component, str(error))
        rule = "the registry name stands for this class"
        self.require(registered is self.component, rule, f"{component.name!r} stands for {registered.__qualname__}")

    def test_every_parameter_is_described(self) -> None:
        missing = [name for name, _, text, _ in describe_parameters(self.component) if not text]
        rule = "the Args section of the class docstring describes every parameter: it is the help"
        self.require(not missing, rule, f"not {missing}")
        has_docstring = (self.component.__doc__ or "").strip()
        self.require(has_docstring, "a component has a docstring: it is the help", "none")

    def test_search_only_names_parameters(self) -> None:
        unknown = sorted(self.make().search_only - parameters_of(self.component).keys())
        self.require(not unknown, "search_only names parameters of the constructor", f"no parameter is called {unknown}")

    def test_no_rule_is_left_out(self) -> None:
        """An override hides a rule as silently as a skipped test does; an expected failure is reported."""
        rules = {
            name: rule
            for cls in reversed(type(self).__mro__)
            if cls.__module__.startswith(__package__ + ".")
            for name, rule in vars(cls).items()
            if name.startswith("test_")
        }
        for name, rule in rules.items():
            mine = getattr(type(self), name)
            is_told = any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in getattr(mine, "pytestmark", []))
            wanted = "no rule of the kit is overridden, but with pytest.mark.xfail(reason=...)"
            self.require(mine is rule or is_told, wanted, f"{name} of {type(self).__name__} is")


class BatchRules(ComponentRules[C]):
    """Rules of components that answer a batch, one answer for each thing asked; a subclass says what is asked and how."""

    @property
    @abstractmethod
    def batch(self) -> list[Any]:
        """What is asked: equal, but new, at every call."""

    @abstractmethod
    def answers(self, batch: list[Any]) -> Sequence[Any]:
        """Ask the component that all tests of the class share."""

    def apart(self, first: Any, other: Any, tolerance: float) -> str | None:
        """Return how two answers differ; None if they do not."""
        del tolerance
        return None if first == other else f"{shown(first)} and {shown(other)}"

    @property
    def whole(self) -> Sequence[Any]:
        """All answers in one batch, asked for once."""
        if "whole" not in self.kept:
            self.kept["whole"] = self.answers(self.batch)
        return cast(Sequence[Any], self.kept["whole"])

    def compare(
        self, rule: str, batch: list[Any], wanted: Sequence[Any], actual: Sequence[Any], tolerance: float | None = None
    ) -> None:
        """Fail where answers differ by more than the tolerance, by default that of the class."""
        are_complete = len(batch) == len(wanted) == len(actual)
        self.require(are_complete, rule, f"{len(wanted)} and {len(actual)} answers for {len(batch)}")
        for asked, first, other in zip(batch, wanted, actual, strict=True):
            difference = self.apart(first, other, self.tolerance if tolerance is None else tolerance)
            self.require(difference is None, rule, f"{shown(asked)}: {difference}")

    def test_there_is_one_answer_each_in_their_order(self) -> None:
        for batch in ([], self.batch[:1], self.batch):
            n = len(self.answers(batch))
            self.require(n == len(batch), "one answer comes back for each thing asked", f"{n} for {len(batch)}")
        self.compare("answers come in the order asked", self.batch, self.whole, self.answers(self.batch[::-1])[::-1])

    def test_the_same_call_twice_gives_the_same_answer(self) -> None:
        rule = "the same call twice gives the same answer, numbers too"
        self.compare(rule, self.batch, self.whole, self.answers(self.batch), 0.0)

    def test_an_answer_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        alone = [self.answers([asked])[0] for asked in self.batch]
        self.compare("the answer is the same alone and within a batch", self.batch, alone, self.whole)

    def test_what_comes_in_is_left_as_it_is(self) -> None:
        batch = self.batch
        before = copy.deepcopy(batch)
        self.answers(batch)
        self.require(batch == before, "the batch that it gets is not changed", shown(batch))

    def test_threads_get_the_answers_of_one(self) -> None:
        parts = [self.batch, self.batch[:3], *([asked] for asked in self.batch[:4])]
        wanted = [self.answers(part) for part in parts]
        for number, actual in in_threads([partial(self.answers, part) for part in parts]):
            self.compare("a component is safe in several threads at once", parts[number], wanted[number], actual)
