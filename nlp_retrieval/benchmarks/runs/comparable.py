"""Checks that separate runs can be compared: the queries, the gold, and the items.

Other query texts or other gold under equal ids are an error that names the first query. So is another corpus, unless
corpora are being compared. Families and groups affect no figure, only tests and display: if they differ,
those of the first folder are used, with a note. Missing information is noted as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.runs.folder import SavedRun
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.errors import GoldError, QueryError, SourceError

Judgements = Mapping[str, Mapping[str, int]]
"""Grades by item id, by query id."""

_SHOWN = 80


@dataclass(frozen=True)
class RunCorpus:
    """The corpus that a configuration was run on.

    Args:
        fingerprint: fingerprint of its items, in order.
        items: how many there are.
    """

    fingerprint: str
    items: int

    def __str__(self) -> str:
        return f"{self.items:,} items (fingerprint {self.fingerprint[:12]})"


def corpora_of(report: BenchmarkReport) -> dict[str, RunCorpus | None]:
    """Return the corpus that each configuration was run on; None if the manifest does not record it.

    Args:
        report: a finished benchmark, or runs that were compared.
    """
    manifest, names = report.manifest, [result.name for result in report.configurations]
    told, before = manifest.get("corpora"), manifest.get("compared")
    if isinstance(told, Mapping):
        return {name: _corpus(told.get(name)) for name in names}
    if not isinstance(before, Mapping):
        return dict.fromkeys(names, _corpus(manifest.get("corpus")))
    # runs compared before the corpus of each was recorded: folders have one corpus if all of them do
    found = {_corpus(one.get("corpus")) if isinstance(one, Mapping) else None for one in before.values()}
    common = found.pop() if len(found) == 1 else None
    return {result.name: common if result.fingerprint else None for result in report.configurations}


def corpora_record(corpora: Mapping[str, RunCorpus | None]) -> Config:
    """Return the corpora of compared runs for their manifest; a common one also as ``corpus``."""
    each = {name: None if one is None else asdict(one) for name, one in corpora.items()}
    first = next(iter(corpora.values()), None)
    common = first is not None and set(corpora.values()) == {first}
    return {"corpora": each} | ({"corpus": next(iter(each.values()))} if common else {})


def corpora_note(corpora: Mapping[str, RunCorpus | None]) -> str:
    """Return a warning about figures measured on different or unknown corpora; ``""`` if none is needed.

    Args:
        corpora: by configuration, for those shown.
    """
    known: dict[RunCorpus, list[str]] = {}
    unknown = [name for name, one in corpora.items() if one is None]
    for name, one in corpora.items():
        if one is not None:
            known.setdefault(one, []).append(name)
    said = []
    if len(known) > 1:
        told = "; ".join(f"{', '.join(names)}: {one}" for one, names in known.items())
        said.append(f"These configurations were run on different corpora, and a difference may be one of corpora. {told}.")
    if unknown and len(corpora) > 1:
        said.append(
            f"Which corpus {', '.join(unknown)} {'was' if len(unknown) == 1 else 'were'} run on is not known, so a difference "
            "may be one of corpora."
        )
    return " ".join(said)


def refuse_other_corpora(corpora: Mapping[str, RunCorpus | None]) -> None:
    """Raise an error if configurations were run on different corpora.

    Raises:
        SourceError: two corpora are known to differ.
    """
    known = {name: one for name, one in corpora.items() if one is not None}
    if len(set(known.values())) > 1:
        (name, one), *others = known.items()
        other_name, other = next((other_name, other) for other_name, other in others if other != one)
        raise SourceError(
            f"{name!r} was run on a corpus of {one}, and {other_name!r} on one of {other}; compare runs over the same corpus "
            "or, if corpora are what is to be compared, pass --across-corpora (in Python across_corpora=True)"
        )


def refuse_other_gold(golds: Sequence[tuple[str, Judgements]]) -> None:
    """Raise an error if the gold differs from that of the first source.

    Args:
        golds: sources by name, with their gold.

    Raises:
        GoldError: a query or a grade differs.
    """
    where, gold = golds[0]
    for other_where, other in golds[1:]:
        if other == gold:
            continue
        lacking = [(query_id, other_where) for query_id in gold if query_id not in other]
        lacking += [(query_id, where) for query_id in other if query_id not in gold]
        if lacking:
            first = f"query {lacking[0][0]!r} is not in {lacking[0][1]}"
        else:
            query_id = next(query_id for query_id in gold if gold[query_id] != other[query_id])
            ours, theirs = gold[query_id], other[query_id]
            item = next(item for item in [*ours, *theirs] if ours.get(item, 0) != theirs.get(item, 0))
            first = f"item {item!r} has grade {ours.get(item, 0)} and {theirs.get(item, 0)} for query {query_id!r}"
        raise GoldError(
            f"{where} and {other_where} do not have the same queries and gold ({len(gold):,} and {len(other):,} queries); the "
            f"first difference: {first}; compare runs over the same queries"
        )


def refuse_other_texts(saved: Sequence[SavedRun]) -> None:
    """Raise an error if query texts with equal ids differ from those of the first folder that has texts.

    Raises:
        QueryError: a text differs.
    """
    holding = [one for one in saved if holds_texts(one)]
    for other in holding[1:]:
        ours, theirs = (_by_query(one, one.lists.texts) for one in (holding[0], other))
        changed = [query_id for query_id, text in ours.items() if theirs[query_id] != text]
        if changed:
            raise QueryError(
                f"{len(changed):,} of {len(ours):,} queries ask something else in {holding[0].folder} than in {other.folder}, "
                f"the first: {changed[0]!r}, {_short(ours[changed[0]])} and {_short(theirs[changed[0]])}; compare runs over "
                "the same queries"
            )


def holds_texts(saved: SavedRun) -> bool:
    """Return whether a folder has the query texts; a comparison of run files alone does not."""
    return any(saved.lists.texts)


def cautions_of(saved: Sequence[SavedRun]) -> list[str]:
    """Return, in sentences, differences between the queries of folders, folders without texts, and the folders' cautions."""
    said = [f"{one.folder}: {caution}" for one in saved for caution in cautions_in(one.report)]
    for other in saved[1:]:
        first = saved[0]
        if not (holds_texts(first) and holds_texts(other)):
            without = other if holds_texts(first) else first
            said.append(f"{without.folder} does not hold the texts of its queries, so they were not compared.")
        for what, ours, theirs in (
            ("families, by which differences are tested", _partition(first), _partition(other)),
            ("groups", _by_query(first, first.lists.groups), _by_query(other, other.lists.groups)),
        ):
            changed = [query_id for query_id, value in ours.items() if theirs[query_id] != value]
            if changed:
                said.append(
                    f"{len(changed):,} of {len(ours):,} queries are in other {what}, in {other.folder} than in {first.folder} "
                    f"(the first: {changed[0]!r}); those of {first.folder} are taken for all."
                )
    for other in saved[1:]:
        if saved[0].report.manifest.get("filters") != other.report.manifest.get("filters"):
            both = f"{saved[0].folder} and {other.folder}"
            said.append(f"{both} were searched with different filters, and a difference may be one of these.")
    return list(dict.fromkeys(said))


def cautions_in(report: BenchmarkReport) -> list[str]:
    """Return the cautions of compared runs, except about corpora; empty for a benchmark."""
    told = report.manifest.get("cautions")
    return [str(caution) for caution in told] if isinstance(told, list) else []


def _corpus(told: object) -> RunCorpus | None:
    if not isinstance(told, Mapping):
        return None
    fingerprint, items = told.get("fingerprint"), told.get("items")
    return RunCorpus(fingerprint, items) if isinstance(fingerprint, str) and isinstance(items, int) else None


def _by_query(saved: SavedRun, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(saved.lists.query_ids, values, strict=True))


def _partition(saved: SavedRun) -> dict[str, str]:
    """Each query with the first of its family, independent of the family's name."""
    firsts: dict[str, str] = {}
    pairs = sorted(_by_query(saved, saved.lists.families).items())
    return {query_id: query_id if family is None else firsts.setdefault(family, query_id) for query_id, family in pairs}


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
