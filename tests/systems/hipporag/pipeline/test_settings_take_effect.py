"""No setting of the pipeline is accepted and then read by nothing."""

from __future__ import annotations

import pytest
from core.components.test_settings_take_effect import check_fields
from pydantic import BaseModel

from nlp_retrieval.systems.hipporag import settings

MODELS = [
    value
    for value in vars(settings).values()
    if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == settings.__name__
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_of_settings_is_read(model: type[BaseModel]) -> None:
    check_fields(model, unless=["pipeline"])  # the name of the system, which has one value
