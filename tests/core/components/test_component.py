"""Settings of components: declared once, checked, shown, compared, and split into those of the index and of the search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from core.engines import TermCount
from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.search.joining import WeightedSum


class Encoder(Component):
    kind = "encoders"
    name = "toy-encoder"
    search_only = frozenset({"batch_size"})

    def __init__(self, model: str | Path, batch_size: int = 32) -> None:
        self.model, self.batch_size = model, batch_size


class Vectors(Component):
    kind = "retrievers"
    name = "toy-vectors"
    search_only = frozenset({"nprobe"})

    def __init__(
        self,
        encoder: Encoder,
        nprobe: Annotated[int, Field(ge=1)] = 1,
        sizes: Sequence[int] = (1, 2),
        options: Mapping[str, float] | None = None,
    ) -> None:
        self.encoder, self.nprobe, self.sizes, self.options = encoder, nprobe, sizes, options


def test_config_holds_the_name_and_every_parameter_as_plain_values():
    made = Vectors(Encoder(Path("models/a")), sizes=(3, 4), options={"x": 1.5})
    assert made.config == {
        "name": "toy-vectors",
        "encoder": {"name": "toy-encoder", "model": "models/a", "batch_size": 32},
        "nprobe": 1,
        "sizes": [3, 4],
        "options": {"x": 1.5},
    }
    assert json.loads(json.dumps(made.config)) == made.config


def test_positional_and_named_arguments_and_defaults_make_equal_components():
    assert TermCount() == TermCount(1) == TermCount(min_length=1, boost=1.0)
    assert hash(TermCount()) == hash(TermCount(1))
    assert TermCount() != TermCount(2)


@pytest.mark.parametrize(
    "component",
    [
        TermCount(2, boost=3.0),
        WeightedSum({"terms": 1.0}, normalization="rank"),
    ],
)
def test_repr_and_config_build_an_equal_component(component):
    cls = type(component)
    settings = {key: value for key, value in component.config.items() if key != "name"}
    assert cls(**settings) == component
    assert eval(repr(component), {cls.__name__: cls}) == component


def test_canonical_json_is_one_text_for_equal_values():
    assert canonical_json({"b": [1, None], "a": "ü"}) == '{"a":"ü","b":[1,null]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_a_class_without_a_name_has_that_of_its_class() -> None:
    class SharedYears(Component):
        """Has no name."""

    assert SharedYears().config == {"name": "shared_years"}
    assert SharedYears.name == "shared_years"
