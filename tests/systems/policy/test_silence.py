"""Whether a plan answers a question at all, and what it says: the same whatever stands on each of its pages."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, MultiSignalReranker, SearchableItem, Searcher
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.systems.policy.answers import QuestionAnswer
from nlp_retrieval.systems.policy.page.export import answers_csv
from nlp_retrieval.systems.policy.page.page import render_study
from nlp_retrieval.systems.policy.silence import beyond
from nlp_retrieval.systems.policy.study import PolicyStudy
from nlp_retrieval.systems.policy.values import values_of

SCHOOLS = [
    "Pupils of all ages receive a warm lunch on four days of the week.",
    "Teachers attend a course in arithmetic before the summer holidays.",
    "The libraries of both towns lend books and musical instruments.",
    "The orchestra rehearses in the gymnasium on Wednesday evenings.",
    "Class trips lead to the museum, the theatre and the old castle.",
    "A second language is taught from the third year of school on.",
]
CLIMATE = [
    "The reduction target is to cut GHG emissions by 40% by 2030 below 1990 levels.",
    "An adaptation plan protects the coast against sea level rise, drought and flooding.",
    "Early warning systems and water resources make villages resilient to extreme events.",
    "Climate finance of 300 million dollars is needed: grants, loans and a green fund.",
    "A carbon tax and standards for cars are the main policies of the ministry.",
    "Wind and solar energy replace coal in the power sector.",
]
HOSTILE = "climate plan 2030"
TITLE, HEADER, FOOTER, NOTICE = "title", "header", "footer", "notice"


def plan(country: str, texts: list[str], repeated: str = "") -> list[SearchableItem]:
    """The passages of a plan, each with the same text in some place."""
    phrase = f"{country}: {HOSTILE}, how {country} plans to adapt to the effects of climate change"
    parts = {
        HEADER: lambda place, text: f"{phrase}, page {place}\n{text}",
        FOOTER: lambda place, text: f"{text}\n{phrase} | {place} of 6",
        NOTICE: lambda place, text: f"{text} {phrase}, as its partners for adaptation and resilience agreed.",
    }
    items = []
    for place, text in enumerate(texts):
        content = parts.get(repeated, lambda _, same: same)(place, text)
        metadata = {"country": country, "document": f"{country} plan", "page": place + 1}
        items.append(
            SearchableItem(
                item_id=f"{country}-{place}",
                content=content,
                metadata=metadata | ({"title": phrase} if repeated == TITLE else {}),
            )
        )
    return items


def asked(items: list[SearchableItem], folder: Path, country: str) -> dict[int, QuestionAnswer]:
    """The answers about a country, by number."""
    (file,) = study_of(items, folder).run(folder, country, min_similarity=0.0).answers()
    return {answer.question_number: answer for answer in file.questions.values()}


def study_of(items: list[SearchableItem], folder: Path) -> PolicyStudy:
    encoder = HashedWords(512)
    signals = MultiSignalReranker("climate", word_vectors_weight=0, min_similarity=0, weights="described")
    searcher = Searcher([FaissRetriever(encoder)], reranker=signals)
    searcher.index(items, folder / "index")
    return PolicyStudy(load_profile("climate"), searcher)


def best_score(answer: QuestionAnswer) -> float:
    return max(chunk.combined_score for chunk in answer.top_k_chunks or [])


def test_a_plan_of_other_matters_addresses_nothing_and_a_climate_plan_does(tmp_path: Path) -> None:
    answers = asked(plan("Ost", CLIMATE) + plan("West", SCHOOLS), tmp_path / "ost", "Ost")
    assert answers[1].addressed
    assert answers[6].addressed
    assert answers[1].best is not None
    assert (answers[1].best.page, answers[1].best.sentence) == (1, CLIMATE[0])
    assert [value.text for value in answers[1].best.values] == ["40% by 2030, against 1990"]
    others = asked(plan("Ost", CLIMATE) + plan("West", SCHOOLS), tmp_path / "west", "West")
    assert not any(answer.addressed for answer in others.values())
    assert all(0 <= answer.addressed_score < 0.5 for answer in others.values() if answer.addressed_score is not None)


@pytest.mark.parametrize("repeated", [TITLE, HEADER, FOOTER, NOTICE])
def test_what_stands_on_every_page_lifts_no_question(tmp_path: Path, repeated: str) -> None:
    plain = asked(plan("West", SCHOOLS), tmp_path / "plain", "West")
    hostile = asked(plan("West", SCHOOLS, repeated), tmp_path / repeated, "West")
    for number, answer in hostile.items():
        assert not answer.addressed
        assert best_score(answer) <= best_score(plain[number]) + 0.12
        assert answer.best is None or HOSTILE not in answer.best.sentence


def test_the_latest_edition_says_what_an_earlier_one_said_with_other_figures(tmp_path: Path) -> None:
    later = [text.replace("40%", "55%").replace("300 million", "700 million") for text in CLIMATE]
    editions = [
        SearchableItem(
            item_id=f"{year}-{item.item_id}",
            content=item.content,
            metadata=item.metadata | {"document": year, "year": int(year)},
        )
        for year, texts in (("2025", later[:3]), ("2020", CLIMATE))
        for item in plan("Ost", texts)
    ]
    answers = asked(editions, tmp_path, "Ost")
    assert answers[1].best is not None
    assert (answers[1].best.document, answers[1].best.sentence) == ("2025", later[0])
    assert answers[7].best is not None
    assert (answers[7].best.document, answers[7].best.sentence) == ("2020", CLIMATE[3])  # the later one has none like it


def test_a_plan_is_silent_where_those_of_others_speak_and_length_does_not_count(tmp_path: Path) -> None:
    more = [
        "The Green Climate Fund and donors give grants, loans and a budget of a billion.",
        "Investment of the private sector, green bonds and domestic resources cover half the cost.",
        "International support is needed: technology transfer, capacity building and funding by donors.",
    ]
    others = [passage for name in ("Nord", "Ost", "West") for passage in plan(name, [*more[:2], *CLIMATE, more[2]])]
    brief = plan("Sued", [*(text for text in CLIMATE if "finance" not in text), "Grants and loans are welcome."])
    among, alone = asked(others + brief, tmp_path / "among", "Sued"), asked(brief, tmp_path / "alone", "Sued")
    assert among[1].addressed
    assert not among[7].addressed
    assert (alone[7].addressed_score or 0.0) > (among[7].addressed_score or 0.0) + 0.1
    full = asked(others + brief, tmp_path / "full", "Nord")
    assert all(full[number].addressed for number in (1, 6, 7))
    draw = np.random.default_rng(0)
    rows = draw.choice([0.0, 0.5, 0.75], (900, 2))
    same = [beyond(rows[:n], [rows[300:], rows[600:]]) for n in (30, 300)]
    assert np.abs(same).max() < 0.15
    assert beyond(rows[:0], [rows]).tolist() == beyond(rows[:30] * 0, []).tolist() == [-0.4, -0.4]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("target", "Emissions fall by 12.5% by 2035 against business as usual.", ["12.5% by 2035, against business as usual"]),
        ("target", "Farms, which emit 48% of emissions in 2018, are to cut them by 20% by 2030.", ["20% by 2030"]),
        ("target", "The aim was raised from a 40% cut of emissions by 2030 to one of 55%.", ["55% by 2030"]),
        ("target", "Emissions are capped in a range from 35 to 42 Mt CO2e by 2030.", ["35 to 42 Mt CO2e by 2030"]),
        ("target", "No target for a cut of emissions by 20% in 2025 is set; that of 9% by 2020 was missed.", []),
        ("target", "The country aims at carbon neutrality by 2055.", ["net zero by 2055"]),
        ("target", "There is no net zero target for 2050.", []),
        ("target", "In 2030 emissions are not to exceed 3.9 MtCO2e.", ["at most 3.9 MtCO2e by 2030"]),
        ("target", "Emissions are to be cut by 40% on 1990 in 2030.", ["40% by 2030, against 1990"]),
        ("target", "A cut of emissions by 26% in FY2030/31 compared to fiscal year 2013.", ["26% by 2030, against 2013"]),
        ("target", "Emissions fell by 20% in 2019, and were reduced by 3% in 2020 against 2005.", []),
        ("target", "In 2030 emissions are limited to at most 3.9 MtCO2e.", ["at most 3.9 MtCO2e by 2030"]),
        ("target", "Emissions fell below the target by 9% in 2019, 3% in 2020 and 2% in 2021 against 2005.", []),
        ("target", "Emissions in 2019 were 18% below those of 1990.", []),
        ("target", "A 37% reduction in emissions was recorded between 1990 and 2019.", []),
        ("target", "The contribution is a cut of emissions by 25% by 2030.", ["25% by 2030"]),
        ("baseline", "The reference indicator is 1990 emissions.", ["1990"]),
        ("target", "Emissions were cut by 44% since 1990, and we will reduce them by 68% by 2030.", ["68% by 2030"]),
        ("target", "Emissions fell by 9% by 2018 and will be cut by 45% from 2005 by 2030.", ["45% by 2030, against 2005"]),
        ("target", "Emissions emitted in 2019 were 12 Mt CO2e; their cap for 2030 is 9 Mt CO2e.", ["9 Mt CO2e by 2030"]),
        ("target", "The cut of emissions by 20% by 2020 was achieved; forests rise to 9% by 2030.", []),
        ("target", "Emissions decline from 80 MtCO2e in 2010 to 50 MtCO2e by 2030.", ["50 MtCO2e by 2030"]),
        ("target", "The cut of emissions is raised from 20% to 35% by 2030.", ["35% by 2030"]),
        ("target", "To fight growing emissions we plan a cut by 2% a year from 2021 to 2030.", ["2% by 2030"]),
        ("target", "Emissions are cut by 31% by 2025, rising to 40% by 2030.", ["31% by 2025", "40% by 2030"]),
        ("target", "Emissions reduced by 20% by 2025 and by 40% by 2030.", ["20% by 2025", "40% by 2030"]),
        ("target", "We exceeded our aim, and the 30% cut of emissions by 2030 was recorded in law.", ["30% by 2030"]),
        ("target", "Ost met its target of a 20% cut by 2020 and will cut emissions by 50% by 2030.", ["50% by 2030"]),
        ("target", "Emissions emitted in 2019 by trade are to meet a limit of 9 Mt CO2e in 2030.", ["9 Mt CO2e by 2030"]),
        ("target", "By 2030, emissions will have been reduced by 40% below 2010 levels.", ["40% by 2030, against 2010"]),
        (
            "target",
            "We will cut emissions by 20% by 2030 unconditionally, and by 35% conditional on finance.",
            ["20% (unconditional) by 2030", "35% (conditional) by 2030"],
        ),
        ("target", "Emissions per capita will be cut by 30% by 2030.", ["30% (per capita) by 2030"]),
        ("baseline", "Baseline: 2013/14.", ["2013"]),
        ("baseline", "2005 is the base year.", ["2005"]),
        ("finance", "It costs USD 3 million, of which 1 million dollars are grants.", ["USD 3 million", "1 million dollars"]),
        (
            "finance",
            "It costs between EUR 1.5 and 2 billion, or CAD 2 to CAD 3 billion.",
            ["2 to CAD 3 billion", "EUR 1.5 and 2 billion"],
        ),
        (
            "finance",
            "It costs $3-5 million, NZ$ 6 million or KES 4 trillion.",
            ["KES 4 trillion", "NZD 6 million", "USD 3-5 million"],
        ),
    ],
)
def test_values_are_read(kind: str, text: str, expected: list[str]) -> None:
    assert [value.text for value in values_of(text, kind)] == expected  # type: ignore[arg-type]


def test_tables_hold_no_formula_and_name_silence_and_the_only_edition(tmp_path: Path) -> None:
    texts = [f"=HYPERLINK(1) {CLIMATE[0]}", *CLIMATE[1:]]
    study = study_of([*plan("=Ost", texts), *plan("West", SCHOOLS)], tmp_path)
    report = study.run(tmp_path, min_similarity=0.0)
    rows = list(csv.DictReader(io.StringIO(answers_csv(report, "country"))))
    assert {row["country"] for row in rows} == {"'=Ost", "West"}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert {row["answer"] for row in rows if row["country"] == "West"} == {"not addressed", "only one edition"}
    assert [row["answer"] for row in rows if row["number"] == "3"] == ["only one edition"] * 2
    page = render_study(report, study)
    assert "only one edition" in page
    assert "not addressed" in page
    assert 'class="clip"' in page
