"""What the multi-hop program asks a language model between two hops, as DSPy signatures: the only prompts there are."""

from __future__ import annotations

from nlp_retrieval.lm import dspy


class SummarizePassages(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Summarize what the passages say that helps to verify the claim, and name what they leave open."""

    claim: str = dspy.InputField(desc="a claim that links facts from several documents")
    context: list[str] = dspy.InputField(desc="summaries of what was found before")
    passages: list[str] = dspy.InputField(desc="documents found now, each as title | text")
    summary: str = dspy.OutputField(desc="a few sentences, with the names of all entities that matter")


class WriteNextQuery(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Write the search query that finds a document still missing to verify the claim, given what was found so far."""

    claim: str = dspy.InputField(desc="a claim that links facts from several documents")
    context: list[str] = dspy.InputField(desc="summaries of what was found before")
    query: str = dspy.OutputField(desc="one search query about what is missing, with the names it needs")
