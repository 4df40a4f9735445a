"""The rules of processors: one list of sub-queries per query, independent of the other queries in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import QUERIES, SILENT
from nlp_retrieval.testing.verdict import broken, in_threads, shown, without_warnings


class ProcessorRules(ComponentRules):
    """Rules of components that turn queries into sub-queries."""

    component: ClassVar[type[BaseUserQueryProcessor]]

    def make(self) -> BaseUserQueryProcessor:
        return self.component()

    def extra_queries(self) -> Sequence[str]:
        """Return additional queries to process."""
        return ()

    def process(self, processor: BaseUserQueryProcessor, queries: list[str]) -> list[list[str]]:
        """Process queries, ignoring warnings."""
        with without_warnings():
            return processor.process(queries)

    @property
    def queries(self) -> list[str]:
        """The kit's queries and the author's."""
        return [*QUERIES, *self.extra_queries(), "Who directed the film that Velda Marsh, the painter of lighthouses, liked?"]

    def test_the_lists_line_up_with_the_queries(self) -> None:
        processor, queries = self.make(), self.queries
        for asked in ([], queries[:1], queries, [*SILENT, *queries], list(SILENT)):
            found = self.process(processor, list(asked))
            if not isinstance(found, list) or len(found) != len(asked):
                broken("process returns one list per query", processor, f"{shown(found)} for {len(asked)} queries")
        turned = self.process(processor, queries[::-1])[::-1]
        for query, one, other in zip(queries, self.process(processor, queries), turned, strict=True):
            if one != other:
                broken("each list stands where its query stands", processor, f"{query!r}: {one}, in reverse {other}")

    def test_sub_queries_are_text(self) -> None:
        processor = self.make()
        for query, subqueries in zip(self.queries, self.process(processor, self.queries), strict=True):
            if not isinstance(subqueries, list) or not all(isinstance(one, str) for one in subqueries):
                broken("the sub-queries of a query are a list of strings", processor, f"{query!r}: {shown(subqueries)}")
            try:
                "".join(subqueries).encode()
            except UnicodeEncodeError as error:
                broken("sub-queries are valid Unicode text", processor, f"{query!r}: {error}")

    def test_a_query_that_says_something_is_searched_for_something(self) -> None:
        processor = self.make()
        for query, subqueries in zip(self.queries, self.process(processor, self.queries), strict=True):
            if all(map(has_no_words, subqueries)):
                broken("no query that says something is lost, in any script", processor, f"{query!r}: {subqueries}")

    def test_a_query_that_says_nothing_asks_nothing(self) -> None:
        processor = self.make()
        for query, subqueries in zip(SILENT, self.process(processor, list(SILENT)), strict=True):
            if not all(map(has_no_words, subqueries)):
                broken(
                    "a query without a word becomes no question that nobody asked",
                    processor,
                    f"{query!r}: {subqueries}",
                )

    def test_no_sub_query_stands_twice(self) -> None:
        processor = self.make()
        for query, subqueries in zip(self.queries, self.process(processor, self.queries), strict=True):
            if len(set(subqueries)) != len(subqueries):
                broken("the sub-queries of a query differ from one another", processor, f"{query!r}: {subqueries}")

    def test_the_same_call_twice_gives_the_same_answer(self) -> None:
        processor, queries = self.make(), self.queries
        for made in (processor, self.make()):
            if (one := self.process(processor, queries)) != (other := self.process(made, queries)):
                broken("the same call twice gives the same sub-queries", processor, f"{shown(one)}, then {shown(other)}")

    def test_an_answer_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        processor, queries = self.make(), self.queries
        together = self.process(processor, [*queries, "", *queries])
        for query, *found in zip(queries, together, together[len(queries) + 1 :], strict=False):
            (alone,) = self.process(processor, [query])
            if any(one != alone for one in found):
                broken(
                    "a query gets the same sub-queries alone and within a batch", processor, f"{query!r}: {alone} and {found}"
                )

    def test_the_queries_are_left_as_they_are(self) -> None:
        processor, queries = self.make(), self.queries
        self.process(processor, queries)
        if queries != self.queries:
            broken("the list of queries is not changed", processor, shown(queries))

    def test_threads_get_the_answers_of_one(self) -> None:
        processor, queries = self.make(), self.queries
        batches = [queries, queries[3:], *([query] for query in queries[:3])]
        calls = [partial(self.process, processor, batch) for batch in batches]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            if found != wanted[number]:
                told = f"{shown(found)}, not {shown(wanted[number])}"
                broken("a processor is safe in several threads at once", processor, told)
