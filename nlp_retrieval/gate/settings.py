"""The settings of a gate: what is searched, by which margins a loss is judged, and how sure a verdict must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SkipValidation, StrictBool

from nlp_retrieval.benchmarks.checked import Integer, by_field, settings, values_of
from nlp_retrieval.benchmarks.settings import composed
from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.registry import build_as
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.measures import Measure, read_measures
from nlp_retrieval.gate.verdict import Verdict


def _margins(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"margins={value!r}: expected measures with an acceptable loss; write {{ndcg@10: 0.02}}")
    margins = {}
    for name, margin in value.items():
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 3e-6 <= margin < 1:
            raise ConfigurationError(
                f"margins: {name} has {margin!r}, and it must be at least 0.000003 and below 1: even a million queries "
                "cannot show a smaller loss"
            )
        (measure,) = map(str, read_measures([str(name)]))
        if measure in margins:
            raise ConfigurationError(f"margins: {name!r} is {measure}, which has a margin already; write each measure once")
        margins[measure] = float(margin)
    return margins


@settings
class GateSettings:
    """Settings of a gate.

    Args:
        baseline: the file of results to compare with; ``gate --update`` writes it.
        query_loader: the queries and their gold. Without gold, rankings are compared with those of the baseline
            (``least_agreement``), which is no measure of quality.
        margins: measures, with the largest loss of each that is acceptable: ``{"ndcg@10": 0.02}``; needed where there is gold.
        searcher: settings of the searcher, for the command; a test passes its own.
        loader: the corpus, if the index is to be created or completed.
        index_path: the index.
        k: results per query that the baseline keeps; at least the largest cutoff of the margins.
        group_by: a key of the queries' metadata; each of its groups must pass by the same margins.
        level: the chance of a false alarm over all ``looks`` together.
        looks: how many changes of the results are judged by one baseline. Each is judged at ``level / looks``, so that a
            branch of so many commits keeps the level. Renew the baseline before there are more. None: one for ten queries, at
            most 100, because fewer looks find smaller losses.
        cannot_tell: whether the gate passes or fails if there are too few queries to decide.
        fell: the same if a measure fell by more than its margin, and whether by chance cannot be told.
        least_agreement: the least mean overlap with the baseline's rankings (rank-biased overlap, 0 to 1) where there is no
            gold.
        relevant_from: as in a benchmark: the lowest grade of a relevant document.
        ignore_identical_ids: as in a benchmark: whether a hit with the id of its query is the query itself and does not count.

    Raises:
        ConfigurationError: a margin or a measure is not possible.

    Examples:
        >>> GateSettings("baseline.jsonl", TopicsLoader("queries.tsv", "qrels.txt"), {"nDCG@10": 0.02}).margins
        {'ndcg@10': 0.02}
    """

    baseline: Annotated[Path, Field(examples=["gate-baseline.jsonl"])]
    query_loader: Annotated[BaseQueryLoader, Field(serialization_alias="queries")]
    margins: Annotated[Mapping[str, float], SkipValidation, BeforeValidator(_margins)] = Field(default_factory=dict)
    _: KW_ONLY
    searcher: Annotated[Any, SkipValidation] = None
    loader: Annotated[BaseLoader | None, Field(serialization_alias="corpus")] = None
    index_path: Annotated[Path | None, Field(serialization_alias="index")] = None
    k: Annotated[Integer, Field(ge=1, le=1_000)] = 20
    group_by: str | None = None
    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    looks: Annotated[Integer | None, Field(ge=1, le=100_000)] = None
    cannot_tell: Literal["pass", "fail"] = "pass"
    fell: Literal["pass", "fail"] = "fail"
    least_agreement: Annotated[float, Field(ge=0, le=1)] = 0.9
    relevant_from: Annotated[Integer, Field(ge=1)] = 1
    ignore_identical_ids: StrictBool | None = None

    def __post_init__(self) -> None:
        for measure in map(Measure.parse, self.margins):
            if measure.cutoff is None:
                raise ConfigurationError(f"margins: {measure} needs whole rankings; take one with a cutoff: ndcg@{self.k}")
            if measure.cutoff > self.k:
                raise ConfigurationError(f"k={self.k} results are kept, and {measure} needs {measure.cutoff}; set k to that")

    @property
    def failing(self) -> tuple[Verdict, ...]:
        """The verdicts with which the gate fails."""
        chosen: dict[Verdict, str] = {"fell": self.fell, "cannot tell": self.cannot_tell}
        return ("worse", *(verdict for verdict, outcome in chosen.items() if outcome == "fail"))


def read_gate(path: str | Path) -> GateSettings:
    """Read a gate from a YAML file; nothing is loaded or searched yet. Paths in it are relative to the working directory.

    Raises:
        SourceError: the file does not exist.
        ConfigurationError: an unknown key or name; a value of the wrong type or out of range.

    Examples:
        >>> text = "{baseline: b.jsonl, queries: {loader: topics, path: queries.tsv}, margins: {ndcg@10: 0.02}}"
        >>> _ = Path("gate.yaml").write_text(text)
        >>> read_gate("gate.yaml").margins
        {'ndcg@10': 0.02}
    """
    values = by_field(GateSettings, read_yaml(path), str(path))
    for name, cls in (("query_loader", BaseQueryLoader), ("loader", BaseLoader)):
        if values.get(name) is not None:
            values[name] = build_as(cls, cls.kind, values[name], "queries" if name == "query_loader" else "corpus")
    if values.get("searcher") is not None:
        values["searcher"] = composed(values["searcher"], "searcher")
    for name in ("baseline", "index_path"):
        if isinstance(values.get(name), str):
            values[name] = expanded(values[name])
    return values_of(GateSettings, values, str(path))
