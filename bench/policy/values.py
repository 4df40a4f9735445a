"""Are values read right? A hundred cells, drawn at random, whose passages a person read before the code did: ``readings.tsv``.

Of each passage: the value of its emission target, the base of a target, or an amount of money; several where each is right,
none where there is none. The first value that the code gives is judged.
"""

from __future__ import annotations

import csv
from pathlib import Path

from bench.common import Data
from bench.writing import table
from nlp_retrieval import BeirLoader
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.systems.policy.values import AnswerValue, values_of

_NEUTRAL = "net-zero"


def agrees(value: AnswerValue, reading: str) -> bool:
    """Whether a value is that of a reading: ``40 % 2030 1990``, ``net-zero 2050``, ``1990``, or ``2e9 USD``."""
    first, *rest = reading.split()
    if value.kind == "baseline":
        return value.baseline == first
    if first == _NEUTRAL:
        return value.unit == "net zero" and str(value.year) == rest[0]
    same = value.value is not None and abs(value.value - float(first)) <= 0.006 * abs(float(first))
    if value.kind == "finance":
        return same and value.unit == rest[0]
    unit, year, base = rest
    same_unit = value.unit == unit or (unit == "tCO2e" and value.unit in {"t CO2e", "t CO2"})
    return same and same_unit and str(value.year or "-") == year and (value.baseline or "-") == base


def judged_values(data: Data) -> str:
    """The table: by kind of value, how many cells are right, of those with a value and of those without."""
    texts = {
        item.item_id: item.content
        for name in ("cat", "ndc", "ndc_actions")
        for item in BeirLoader(str(data.root / "policy" / name)).stream()
    }
    profile = load_profile("climate")
    rows: dict[str, list[int]] = {}
    with (Path(__file__).parent / "readings.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            kind = profile.question(int(row["question"])).value
            assert kind is not None
            found = values_of(texts[row["passage"]], kind)[:1]
            readings = row["read"].split("|") if row["read"] else []
            right = any(agrees(found[0], reading) for reading in readings) if found else not readings
            counts = rows.setdefault(kind, [0, 0, 0, 0])
            counts[0 if readings else 2] += right
            counts[1 if readings else 3] += 1
    cells = {kind: [f"{right} of {n}", f"{none} of {n_none}"] for kind, (right, n, none, n_none) in rows.items()}
    whole = [sum(column) for column in zip(*rows.values(), strict=True)]
    cells["all"] = [f"{whole[0]} of {whole[1]}", f"{whole[2]} of {whole[3]}"]
    return table(["value", "right, where there is one", "none said, where there is none"], cells)
