"""Multi-hop retrieval on public collections: ``python -m bench.multihop DATA`` writes ``bench/MULTIHOP.md``.

Whatever is fitted is fitted to other queries than those it is judged by, and starts from weights that know nothing: all
zero, but for PageRank's. Ablations are judged twice: with the weights of the full system, and with weights that were
fitted to what is left.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from bench.common import Data, Row
from bench.multihop_report import report
from bench.multihop_study import Study
from bench.multihop_systems import ABLATED, NAMES, OUT_OF_FOLD
from bench.writing import words


def measure(data: Data) -> list[Row]:
    """Measure all of it, write ``bench/MULTIHOP.md``, and return what stands out as rows."""
    study = Study(data)
    full = study.quality()
    study.ablations(full)
    study.crowded(full)
    (Path(__file__).parent / "MULTIHOP.md").write_text(report(study, full))
    study.tell("bench/MULTIHOP.md is written")
    return _rows(study)


def _rows(study: Study) -> list[Row]:
    rows = []
    for judged, name in (*ABLATED[:1], *ABLATED[2:]):
        for other in ("RRF of both", "links shuffled, refitted"):
            gain, low, high = study.difference(OUT_OF_FOLD, other, judged, name)
            measured = f"{study.mean(OUT_OF_FOLD, judged, name):.3f}; {other} {study.mean(other, judged, name):.3f}"
            shown = f"{measured}; difference {gain:+.3f} [{low:+.3f}, {high:+.3f}]"
            rows.append(Row(f"{NAMES[judged]}, {words(name)}, link graph out of fold", f"above {other}", shown, low > 0))
    return rows


def main(arguments: list[str]) -> int:
    """Measure and write."""
    data = Data(Path(arguments[0] if arguments else "").absolute(), Path(__file__).parent / ".work")
    if len(arguments) != 1 or not data.corpus.is_file() or not (data.root / "musique").is_dir():
        print("usage: python -m bench.multihop DATA   (DATA holds wiki/ and musique/)")
        return 2
    data.work.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    measure(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
