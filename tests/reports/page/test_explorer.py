"""The block of data in the page holds the lists, small enough, and nothing that a user named is markup."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from evaluation.test_ranking_difference import plain
from evaluation.test_rankings import lists_of

from nlp_retrieval import BenchmarkRun
from nlp_retrieval.reports.page.explorer import DEPTH, LONGEST
from nlp_retrieval.reports.page.page import render_page
from reports.report_data import configuration, measures_like, report_of

from .test_page import ATTACK, Page, policy


def data_of(source: str) -> dict[str, Any]:
    """The data as the page's script reads it."""
    (text,) = re.findall(r'<script type="application/octet-stream" id="explorer-data">([^<]*)</script>', source)
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return data


def short(values: list[float]) -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.4g}") for value in values]


def test_the_data_holds_the_first_ten_hits_of_every_list_with_their_signals_texts_and_measures(
    finished: tuple[BenchmarkRun, Path],
) -> None:
    ran, lists = finished[0], finished[0].lists
    data = data_of(render_page(ran.report, lists, ran.per_query))
    assert data["configurations"] == list(lists.listings)
    for number, name in enumerate(data["configurations"]):
        listing = lists.listings[name]
        for query, of_query in enumerate(data["lists"]):
            items, scores, *signals = of_query[number]
            here = listing.of(query)
            here = slice(here.start, min(here.stop, here.start + DEPTH))
            assert [data["ids"][item] for item in items] == [lists.item_ids[item] for item in listing.items[here]]
            assert scores == short(listing.scores[here].tolist())
            for key, column in zip(data["signals"], signals, strict=True):
                assert column == (short(listing.signals[key][here].tolist()) if key in listing.signals else None)
        for key, by_name in zip(("ndcg@10", "recall@10"), data["values"], strict=True):
            assert by_name[number] == short(ran.per_query[name][key].tolist())
    for query, gold in enumerate(data["gold"]):
        assert {data["ids"][int(item)]: grade for item, grade in gold.items()} == lists.qrels()[lists.query_ids[query]]
    report = replace(ran.report, manifest=ran.report.manifest | {"relevant_from": 2})
    graded = data_of(render_page(report, lists, ran.per_query))
    for relevant, grades in zip(graded["gold"], lists.qrels().values(), strict=True):
        assert {graded["ids"][int(item)] for item in relevant} == {item for item, grade in grades.items() if grade > 1}
    assert data["passages"] == [lists.passages[item_id][:LONGEST] for item_id in data["ids"]]
    assert (data["measures"], data["texts"], data["groups"]) == (["nDCG@10", "Recall@10"], lists.texts, lists.groups)


def test_markup_in_ids_and_texts_is_data_and_never_markup() -> None:
    lists = lists_of({ATTACK: [plain([ATTACK])], "other": [plain(["b"])]}, {"q0": {ATTACK: 1}}, 1)
    lists.texts[0] = ATTACK
    source = render_page(
        report_of(configuration(ATTACK, measures_like(0.3)), configuration("other", measures_like(0.3))),
        lists,
        {name: {"recall@21": np.array([0.3])} for name in (ATTACK, "other")},
    )
    page = Page(source)
    assert not page.of("img")
    assert "sha256-" in policy(page)
    data = data_of(source)
    assert (data["configurations"][0], data["texts"], data["ids"][0]) == (ATTACK, [ATTACK], ATTACK)
