"""The prompts for processing a query, as DSPy signatures, and the programs that use them."""

from __future__ import annotations

from nlp_retrieval.lm.engine import dspy


class ClaimDecomposition(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Break a claim that several documents have to support into search phrases, one for each thing to look up.

    Each phrase finds one document by itself. Prefer proper nouns and the names of entities, descriptive phrases that fit
    one thing only, and the key words of relationships between entities. Never repeat the whole claim.
    """

    claim: str = dspy.InputField(desc="a claim that links facts from several documents")
    phrases: list[str] = dspy.OutputField(desc="two or three specific search phrases, a few words each")


class WritePassage(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Write the passage of an encyclopedia that answers the query, as if it had been found."""

    query: str = dspy.InputField(desc="a question, or a claim to be checked")
    passage: str = dspy.OutputField(desc="one short paragraph of plain prose, with names, places and dates")


class Decomposer(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """A program of one step; its compiled state fits every program that decomposes claims."""

    def __init__(self) -> None:
        super().__init__()
        self.decompose = dspy.Predict(ClaimDecomposition)

    def forward(self, claim: str) -> dspy.Prediction:
        """Ask for the phrases of a claim."""
        return self.decompose(claim=claim)


class PassageWriter(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """A program of one step."""

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WritePassage)

    def forward(self, query: str) -> dspy.Prediction:
        """Ask for a passage."""
        return self.write(query=query)
