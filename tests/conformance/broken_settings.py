"""Components whose settings, constructor or registration are not in order, in one thing each; the kit has to find it."""

from __future__ import annotations

import itertools

from nlp_retrieval.testing import ProcessorRules

from .breaking import breaks
from .broken_processors import Quiet

_counter = itertools.count()


@breaks(ProcessorRules, "test_equal_settings_make_equal_components")
class NeverEqual(Quiet):
    @property
    def config(self):
        return super().config | {"lower": bool(next(_counter) % 2)}


@breaks(ProcessorRules, "test_the_config_is_json_and_builds_an_equal_component", "no parameter 'loud'")
class ConfiguredByMore(Quiet):
    @property
    def config(self):
        return super().config | {"loud": True}


@breaks(ProcessorRules, "test_the_registry_name_stands_for_this_class", "no processor called 'nobody'")
class Unregistered(Quiet):
    pass


@breaks(ProcessorRules, "test_every_parameter_is_described", "loud")
class Undescribed(Quiet):
    """Does something.

    Args:
        lower: whether in lower case.
    """

    def __init__(self, lower: bool = False, loud: bool = False) -> None:
        super().__init__(lower)


class _LeavesOneOut(ProcessorRules):
    def test_sub_queries_are_texts_that_ask_something(self):
        """Says nothing."""


@breaks(_LeavesOneOut, "test_no_rule_is_left_out", "test_sub_queries_are_texts_that_ask_something")
class HasARuleLess(Quiet):
    def __repr__(self):
        return "HasARuleLess()"


Unregistered.name = "nobody"
