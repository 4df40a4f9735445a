"""In DSPy a searcher is the retrieval model of ``dspy.Retrieve``."""

from __future__ import annotations

import dspy

from nlp_retrieval import Searcher
from nlp_retrieval.agents import recording
from nlp_retrieval.integrations.dspy import DspyRetriever

from .conftest import QUERY


def test_passages_are_the_results_of_a_search_with_titles_and_scores(searcher: Searcher) -> None:
    found = DspyRetriever(searcher)(QUERY, k=10)
    results = searcher.search(QUERY, 10)[0]
    assert len(found) == 4
    for passage, result in zip(found, results, strict=True):
        assert (passage.long_text, passage.pid, passage.score) == (result.item.text, result.item.item_id, result.score)
        assert (passage.signals, passage.metadata) == (result.signals, result.item.metadata)


def test_a_program_is_recorded_by_one_line_and_in_threads_by_one_inside_of_them(searcher: Searcher) -> None:
    retriever = DspyRetriever(searcher, k=2)

    class Asking(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str) -> dspy.Prediction:
            with recording(question_id=question) as session:
                retriever(question)
            return dspy.Prediction(session=session)

    with recording() as around:
        asked = dspy.Parallel(num_threads=2, disable_progress_bar=True)(
            [(Asking(), {"question": each}) for each in ("fjord", "rain")]
        )
        retriever(QUERY)
    assert [[step.query for step in one.session.steps] for one in asked] == [["fjord"], ["rain"]]
    assert [step.query for step in around.steps] == [QUERY]
