"""Evidence: ``python -m bench.evidence DATA MODEL LARGER WORK`` writes ``bench/EVIDENCE.md``.

DATA is a folder of sets (``scifact/pairs.jsonl``, ``audit/truth.jsonl``, ...). MODEL and LARGER are folders of ``nlp-retrieval
evidence train-verifier``, of a small and a larger base model, trained without the families of the audit (``python -m
bench.evidence.split`` makes such a folder). WORK is a folder for what takes long: judgements are kept there by verifier and
set, so that a second run judges nothing again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.evidence import open_task, pairs
from bench.evidence.measures import said_and_seen, with_interval
from bench.evidence.measuring import Measured, audits_of, known_pairs, sets_of, some_pairs
from bench.writing import page, table
from nlp_retrieval.systems.evidence.lookups.checks import SIGNALS
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.calibration import Calibration
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair
from nlp_retrieval.systems.evidence.verifiers.training import held_out_families

_HERE = Path(__file__).parent
_TIMED = ("fever", "scifact", "wice")
_TIMED_PAIRS = 10
_READ_FROM = "bm25s and dense, fused"


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 4:
        print("usage: python -m bench.evidence DATA MODEL LARGER WORK")
        return 2
    data, model, larger, work = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    with torch.autocast("cpu", torch.bfloat16):
        return _measure(data, model, larger, work)


def _measure(data: Path, model: Path, larger: Path, work: Path) -> int:
    reports = [json.loads((folder / "training_report.json").read_text()) for folder in (model, larger)]
    known = known_pairs(data)
    lexical = [
        Measured(name, LexicalVerifier(), signals, "lexical", some_pairs(known))
        for name, signals in (("overlap", ("overlap",)), ("lexical", SIGNALS))
    ]
    own, combined = _models("pair model", "model", model, reports[0], known)
    larger_own, larger_combined = _models("larger model", "larger", larger, reports[1], known)
    measured = [*lexical, own, combined, larger_own, larger_combined]
    values: dict[str, object] = {"short": (_HERE / "short.md").read_text("utf-8")}
    values |= _trained(reports[0]) | {f"larger_{name}": value for name, value in _trained(reports[1]).items()}
    values |= sets_of(data, work, measured) | audits_of(data, work, measured)
    values |= _open_task(data, work, own, reports[0]["base"], {family.partition("/")[2] for family in _held(reports[0], known)})
    eight = PairModelVerifier(str(model), backend="onnx", precision="int8")
    timed = {
        "lexical": lexical[1].verifier,
        "pair model": own.verifier,
        "pair model, 8 bits": eight,
        "larger model": larger_own.verifier,
    }
    values |= _calibrated(data, work, combined) | _eight_bits(data, work, own, eight) | _costs(data, timed)
    (_HERE.parent / "EVIDENCE.md").write_text(page((_HERE / "page.md").read_text("utf-8"), **values), "utf-8")
    return 0


def _models(name: str, kept: str, folder: Path, report: dict[str, Any], known: list[JudgedPair]) -> tuple[Measured, Measured]:
    """Return a model by its own likeliest label, and with the signals of ``lexical``."""
    held = _held(report, known)
    unseen = some_pairs([pair for pair in known if pair.family in held])
    verifier, both = PairModelVerifier(str(folder)), (*pairs.MODEL_SIGNALS, *SIGNALS)
    return (
        Measured(name, verifier, pairs.MODEL_SIGNALS, kept, unseen),
        Measured(f"{name} and lexical", verifier, both, kept, unseen),
    )


def _held(report: dict[str, Any], known: list[JudgedPair]) -> set[str]:
    return held_out_families(known, report["settings"]["held_out"], report["settings"]["seed"])


def _trained(report: dict[str, Any]) -> dict[str, object]:
    return {
        "losses": f"{report['loss']:.3f}",
        "best": report["best_epoch"],
        "trained": f"{report['pairs']:,}",
        "held": f"{report['held_out']:,}",
        "settings": ", ".join(f"{key} {value}" for key, value in report["settings"].items()),
    }


def _open_task(data: Path, work: Path, one: Measured, base: str, held: set[str]) -> dict[str, object]:
    """SciFact, open: claims to choose on are those of families that were not trained on."""
    untrained = held | {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    claims = open_task.claims_of(data, "dev")
    choosing = open_task.claims_of(data, "train", untrained)
    recall: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    folder = work / "scifact"
    for name, searcher in open_task.searchers(base, folder, data).items():
        ranked = open_task.found(searcher, folder, claims)
        recall[name] = open_task.recall_rows(claims, ranked)
        if name != _READ_FROM:
            continue
        first = open_task.found(searcher, folder, choosing)
        ground = open_task.judged_first(one.verifier, data, choosing, first, work / "open-choosing.jsonl")
        of = open_task.judged_first(one.verifier, data, claims, ranked, work / "open.jsonl")
        read, cut = open_task.chosen(choosing, ground, pairs.own_probabilities(ground.signals))
        f1 = open_task.abstract_f1(claims, open_task.called(len(claims), of, pairs.own_probabilities(of.signals), read, cut))
        called[name] = [f"{read}", f"{cut:.2f}", with_interval(f1, [claim.family for claim in claims])]
    return {
        "open_recall": table(["searcher", "recall@3", "recall@10"], recall),
        "open_f1": table(["searcher", "abstracts read", "cut", "abstract F1"], called),
        "open_chosen_on": f"{len(choosing):,}",
    }


def _calibrated(data: Path, work: Path, one: Measured) -> dict[str, object]:
    """Whether a probability of support is what it says, on sets that people judged."""
    calibration = Calibration.read(one.calibration(work))
    said, supported = [], []
    for name in pairs.SETS:
        of = one.on_set(data, work, name)
        said.append(calibration.probabilities(of.signals)[:, 0])
        supported.append(np.array([pair.label == "support" for pair in of.pairs]))
    rows, error = said_and_seen(np.concatenate(said), np.concatenate(supported))
    return {"calibration": table(["said", "pairs", "mean said", "supported", ""], rows), "calibration_error": f"{error:.3f}"}


def _eight_bits(data: Path, work: Path, whole: Measured, eight: BaseVerifier) -> dict[str, object]:
    """What a pair model is worth with 8-bit weights, beside itself."""
    rows: dict[str, list[str]] = {}
    for name in _TIMED:
        of = whole.on_set(data, work, name)
        families = [pair.family for pair in of.pairs]
        both = (of, pairs.judged(eight, of.pairs, work / f"model-8-bits-{name}.jsonl"))
        found = [pairs.figures(name, one, one, pairs.MODEL_SIGNALS) for one in both]
        rows[name] = [with_interval(one[figure], families) for figure in ("macro-F1", "AUC") for one in found]
    heads = [f"{figure}{bits}" for figure in ("macro-F1", "AUC") for bits in ("", ", 8 bits")]
    return {"eight_bits": table(["set", *heads], rows)}


def _costs(data: Path, verifiers: dict[str, BaseVerifier]) -> dict[str, object]:
    """Milliseconds of a claim beside a passage, one after the other: the best of three times, each over pairs of its own."""
    rows: dict[str, list[str]] = {}
    for name, verifier in verifiers.items():
        cells = []
        for collection in _TIMED:
            known = pairs.pairs_of(data, collection)
            took = []
            for first in range(0, 3 * _TIMED_PAIRS, _TIMED_PAIRS):
                some = known[first : first + _TIMED_PAIRS]
                begin = time.perf_counter()
                for pair in some:
                    verifier.judge([pair.claim], [pair.passage])
                took.append((time.perf_counter() - begin) / len(some))
            cells.append(f"{1000 * min(took):.1f}")
        rows[name] = cells
    return {"costs": table(["verifier", *_TIMED], rows)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
