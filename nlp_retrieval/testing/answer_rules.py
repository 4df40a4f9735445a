"""The rules of what a retriever answers: how many, in which order, to what, and always the same."""

from __future__ import annotations

from functools import partial

from nlp_retrieval.testing.retriever_base import RetrieverChecks
from nlp_retrieval.testing.samples import SILENT, STOP_WORDS_ALONE, TWINS, UNKNOWN, WITHOUT_TEXT
from nlp_retrieval.testing.verdict import broken, difference, ids_of, in_threads, pairs_of, shown


class AnswerRules(RetrieverChecks):
    """Rules of the lists that a retriever returns."""

    def test_the_lists_line_up_with_the_queries(self) -> None:
        queries = list(self.queries)
        for asked in ([], queries[:1], queries, [UNKNOWN, *queries], [*queries[::-1], "", queries[0]]):
            found = self.ask([[query] for query in asked])
            if len(found) != len(asked):
                broken("one list comes back per query", self.opened, f"{len(found)} lists for {len(asked)} queries")
        turned = self.ask([[query] for query in reversed(queries)])[::-1]
        for query, one, other in zip(queries, self.ask_each().values(), turned, strict=True):
            if told := difference(one, other, self.tolerance):
                broken(
                    "each list stands where its query stands", self.opened, f"{query!r}, asked in order and in reverse: {told}"
                )

    def test_no_more_than_k_results(self) -> None:
        for k in (1, 2, 3, len(self.items)):
            for query, found in self.ask_each(k).items():
                if len(found) > k:
                    broken("at most k results come back", self.opened, f"{len(found)} for {query!r}, k={k}: {pairs_of(found)}")

    def test_no_item_comes_twice(self) -> None:
        for query, found in self.ask_each().items():
            if len(set(ids_of(found))) != len(found):
                broken("an item stands once in a list", self.opened, f"{query!r}: {ids_of(found)}")

    def test_the_best_comes_first(self) -> None:
        for query, found in self.ask_each().items():
            scores = [result.score for result in found]
            if scores != sorted(scores, reverse=True):
                broken("results come best first", self.opened, f"{query!r}: {pairs_of(found)}")

    def test_ties_are_broken_by_row(self) -> None:
        rows = self.rows
        for query, found in self.ask_each().items():
            keys = [(-result.score, rows[result.item.item_id]) for result in found]
            if keys != sorted(keys):
                broken("of equal scores the lower row comes first", self.opened, f"{query!r}: {pairs_of(found)}; rows {rows}")

    def test_items_that_are_alike_come_together_and_by_row(self) -> None:
        for query, found in self.ask_each().items():
            twins = [item_id for item_id in ids_of(found) if item_id in TWINS]
            scores = {result.score for result in found if result.item.item_id in TWINS}
            if twins and (twins != list(TWINS) or len(scores) > 1):
                broken(
                    "items that differ in nothing but their ids have one score, and come in the order of their rows",
                    self.opened,
                    f"{query!r}: {[pair for pair in pairs_of(found) if pair[0] in TWINS]}; indexed as {list(TWINS)}",
                )

    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self) -> None:
        whole = self.ask_each()
        for k in range(1, 7):
            for query, found in self.ask_each(k).items():
                if ids_of(found) != ids_of(whole[query])[:k]:
                    broken(
                        "the k best come back, ties broken by row at the cut too",
                        self.opened,
                        f"{query!r}, k={k}: {pairs_of(found)}; the whole list begins {pairs_of(whole[query][: k + 3])}",
                    )

    def test_nothing_is_found_that_does_not_match(self) -> None:
        by_id = {item.item_id: item for item in self.items}
        for query in (*self.queries, UNKNOWN):
            (found,) = self.ask([[query]])
            padding = [pair for pair in pairs_of(found) if not self.may_match(query, by_id[pair[0]])]
            if padding:
                broken(
                    "a list is not padded with items that do not match (may_match says which may)",
                    self.opened,
                    f"{query!r}: {shown(padding)}",
                )

    def test_what_matches_is_found(self) -> None:
        for query, wanted in self.queries.items():
            if wanted is not None and wanted not in ids_of(found := self.ask_each()[query]):
                broken(
                    "an item that holds the words of a query is found",
                    self.opened,
                    f"{query!r}: {ids_of(found)}, no {wanted!r}",
                )

    def test_k_may_be_larger_than_the_corpus(self) -> None:
        whole, more = self.ask_each(), self.ask_each(len(self.items) * 3 + 7)
        for query, found in more.items():
            if told := difference(whole[query], found, self.tolerance):
                broken("a k above the size of the corpus gives what there is", self.opened, f"{query!r}: {told}")

    def test_queries_that_say_nothing_get_empty_lists_and_one_warning(self) -> None:
        speaking = list(self.queries)[:2]
        processed = [[speaking[0]], *([query] for query in SILENT), [], [speaking[1]]]
        found, told = self.ask_warned(processed)
        for subqueries, results in zip(processed, found, strict=True):
            if results and subqueries and subqueries[0] in SILENT:
                broken(
                    "an empty query gets an empty list",
                    self.opened,
                    f"{subqueries}: {pairs_of(results)}",
                )
        n_empty = sum(not results for results in found)
        if len(told) != 1 or f"{n_empty} of {len(processed)}" not in told[0]:
            broken(
                "empty lists are counted in one warning per call",
                self.opened,
                f"{n_empty} of {len(processed)} lists are empty; warned of: {told}",
            )
        if ids_of(found[0]) != ids_of(self.ask([[speaking[0]]])[0]):
            broken("queries that say nothing change no other list", self.opened, f"{speaking[0]!r}: {ids_of(found[0])}")

    def test_a_query_of_stop_words_alone_is_searched_or_the_setting_that_keeps_them_named(self) -> None:
        for query in STOP_WORDS_ALONE:
            (found,), told = self.ask_warned([[query]])
            note = self.searching().ignored(query)
            if not found and (note is None or len(told) != 1 or note not in told[0]):
                broken(
                    "a query of stop words alone is searched, or the warning says by ignored() which setting keeps them",
                    self.opened,
                    f"{query!r}: nothing; ignored() says {note!r}; warned of: {told}",
                )

    def test_items_without_text_are_never_found(self) -> None:
        for where in (None, {"country": {"exists": True}}):
            for query, found in self.ask_each(where=where).items():
                if silent := [item_id for item_id in ids_of(found) if item_id in WITHOUT_TEXT]:
                    broken("an item without a letter or digit is never found", self.opened, f"{query!r}, {where}: {silent}")

    def test_text_survives_in_any_script(self) -> None:
        by_id = {item.item_id: item for item in self.items}
        for query, found in self.ask_each().items():
            for result in found:
                if result.item != by_id[result.item.item_id]:
                    broken("an item comes back as it was indexed", self.opened, f"{query!r}: {shown(result.item)}")

    def test_the_same_call_twice_gives_the_same_answer(self) -> None:
        one, other = self.ask_each(), self.ask_each()
        for query in one:
            if told := difference(one[query], other[query], 0.0):
                broken("the same call twice gives the same answer, scores too", self.opened, f"{query!r}: {told}")

    def test_an_answer_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        together = self.ask_each()
        for query, found in together.items():
            (alone,) = self.ask([[query]])
            if told := difference(alone, found, self.tolerance):
                broken(
                    "a query gets the same answer alone and within a batch", self.opened, f"{query!r}, alone and within: {told}"
                )

    def test_threads_get_the_answers_of_one(self) -> None:
        queries = list(self.queries)
        batches = [queries, queries[:3], *([query] for query in queries[:4])]
        calls = [partial(self.ask, [[query] for query in batch]) for batch in batches]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            for query, one, other in zip(batches[number], wanted[number], found, strict=True):
                if told := difference(one, other, self.tolerance):
                    broken("searching is safe from several threads at once", self.opened, f"{query!r}: {told}")

    def test_a_sub_query_that_stands_twice_counts_once(self) -> None:
        first, second, *_ = self.queries
        for once, twice in (([first], [first, first]), ([first, second], [first, first, second]), ([first], [first, ""])):
            (one,), (other,) = self.ask([once]), self.ask([twice])
            if ids_of(one) != ids_of(other):
                broken(
                    "a sub-query that is repeated, or says nothing, changes no answer",
                    self.opened,
                    f"{once}: {ids_of(one)}; {twice}: {ids_of(other)}",
                )

    def test_the_lists_of_sub_queries_are_merged(self) -> None:
        first, second, *_ = self.queries
        (one,), (other,), (both,) = self.ask([[first]]), self.ask([[second]]), self.ask([[first, second]])
        if set(ids_of(both)) != set(ids_of(one)) | set(ids_of(other)) or len(set(ids_of(both))) != len(both):
            broken(
                "a query finds what its sub-queries find, each item once",
                self.opened,
                f"{first!r}: {ids_of(one)}; {second!r}: {ids_of(other)}; both: {ids_of(both)}",
            )

    def test_signals_tell_score_and_rank(self) -> None:
        name = self.opened.name
        for query, found in self.ask_each().items():
            for rank, result in enumerate(found, 1):
                if result.signals.get(f"{name}.score") != result.score or result.signals.get(f"{name}.rank") != rank:
                    broken(
                        f"the signals {name}.score and {name}.rank say where a result stands",
                        self.opened,
                        f"{query!r}, rank {rank}, score {result.score!r}: {shown(result.signals)}",
                    )
