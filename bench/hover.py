"""HoVer, system by system: ``python -m bench.hover DATA CROSS_ENCODER [MODEL BASE_URL [WALKER]]`` writes ``bench/HOVER.md``.

CROSS_ENCODER is a folder with ``tokenizer.json`` and ``model.onnx``. MODEL and BASE_URL name a language model
(``openai/<model>``) and its server, WALKER another there, for the multi-hop program, which asks it to read hundreds of
passages; without them, systems that ask one are left out. Answers are kept in the work folder, so that a second run asks
nothing.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from bench.common import Data, Row
from bench.hover_report import report
from bench.hover_study import study
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.lm.language_model import LanguageModel


def measure(data: Data, cross_encoder: Path, lm: LanguageModel | None, walker: LanguageModel | None) -> list[Row]:
    """Measure, and write ``bench/HOVER.md``."""
    done = study(data, cross_encoder, lm, walker)
    (Path(__file__).parent / "HOVER.md").write_text(report(done))
    _, names = done.chosen_in_folds(done.rows)
    return [Row("HoVer, 3 hops", "-", f"chosen in folds: {', '.join(dict.fromkeys(names))}", None)]


def language_model(
    data: Data,
    model: str,
    base_url: str,
    max_calls: int | None = None,
    max_tokens: int = 256,
    temperature: float = 0.0,
) -> LanguageModel:
    """A model on a small machine: one call at a time, short answers, and patience."""
    return LanguageModel(
        model,
        base_url=base_url,
        temperature=temperature,
        max_tokens=max_tokens,
        calls_at_once=1,
        timeout=900.0,
        retries=1,
        max_calls=max_calls,
        cache_dir=str(data.work / "answers"),
    )


def main(arguments: list[str]) -> int:
    """Measure and write."""
    if len(arguments) not in (2, 4, 5) or not (Path(arguments[0]) / "wiki" / "hover").is_dir():
        print("usage: python -m bench.hover DATA CROSS_ENCODER [MODEL BASE_URL [WALKER]]   (DATA holds wiki/)")
        return 2
    data = Data(Path(arguments[0]).absolute(), Path(__file__).parent / ".work")
    data.work.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    try:
        lm, walker = (language_model(data, arguments[at], arguments[3]) if at < len(arguments) else None for at in (2, 4))
        for row in measure(data, Path(arguments[1]), lm, walker):
            print(f"{row.what}: {row.measured}")
    except RetrievalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
