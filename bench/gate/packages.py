"""Other gates on the same commits: ``python -m bench.gate.packages DATA WORK`` writes a section of ``bench/GATE.md``.

It needs ``pip install retrieval-eval-gate rag-contract toolkit-rag-quality``, in any environment. Each package decides by
its own code: retrieval-eval-gate by a paired permutation test against the recorded run, rag-contract by the largest relative
drop of a mean, toolkit-rag-quality by a budget for that drop and a permutation test at .05.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rag_contract.contracts import ContractConfig, FailOnConfig, evaluate_global_gates
from rag_eval_gate.stats import paired_permutation_test
from toolkit_rag_quality.stats import paired_permutation_test as toolkit_test

from bench.gate.__main__ import _MARGIN, _PAGE, BESIDE, Values, _calls_worse, _centred, _mirrored, _pairs
from bench.writing import table, write_section

_BRANCHES, _COMMITS, _LOSSES, _ITERATIONS = 40, 100, 40, 1_000

_TEXT = """
By `python -m bench.gate.packages DATA WORK`: the packages' own code on the same commits; $branches branches of $commits commits
without a change in truth (half mirrored, half centred), and $losses commits with a true loss of .02. rag-contract and
toolkit-rag-quality are given the margin as a drop of nDCG@10, a share of the baseline's mean; retrieval-eval-gate has none.
Permutation tests draw $iterations arrangements.

$table

None of the three keeps its level over a branch. retrieval-eval-gate fails on any significant fall, however small; rag-contract
on any drop over its budget, however uncertain; toolkit-rag-quality where both meet. The gate finds less of a loss this small,
because it has spread its level over 100 looks: with few queries it says "cannot tell".
"""

Fails = Callable[[Values, Values], bool]


def _retrieval_eval_gate(before: Values, now: Values) -> bool:
    test = paired_permutation_test(now.tolist(), before.tolist(), iters=_ITERATIONS)
    return bool(test.observed_diff < 0 and test.p_value < 0.05)


def _rag_contract(before: Values, now: Values) -> bool:
    config = ContractConfig(fail_on=FailOnConfig(mrr_drop_gt=_MARGIN / float(before.mean())))
    rows = evaluate_global_gates({"mrr": float(before.mean())}, {"mrr": float(now.mean())}, config)
    return any(row.status == "FAIL" for row in rows)


def _toolkit(before: Values, now: Values) -> bool:
    if now.mean() >= before.mean() - _MARGIN:
        return False
    test = toolkit_test(before.tolist(), now.tolist(), n_resamples=_ITERATIONS)
    return bool(test.p_value < 0.05)


_PACKAGES: dict[str, Fails] = {
    "retrieval-eval-gate": _retrieval_eval_gate,
    "rag-contract": _rag_contract,
    "toolkit-rag-quality": _toolkit,
}


def _measured(pairs: dict[str, tuple[Values, Values, list[str | None]]]) -> str:
    rows: dict[str, list[str]] = {}
    for name, (before, other, families) in pairs.items():

        def ours(then: Values, now: Values, of: list[str | None] = families) -> bool:
            return _calls_worse(then, np.clip(now - then, -1, 1), of, _COMMITS)

        alarms, found = [], []
        for fails in (ours, *_PACKAGES.values()):
            rng, alarmed = np.random.default_rng(3), 0
            for branch in range(_BRANCHES):
                commit = _mirrored if branch % 2 else _centred
                commits = [before + commit(rng, other - before) for _ in range(_COMMITS)]
                # a smaller fall fails in none of them
                falls = [now for now in commits if _falls(now - before)]
                alarmed += any(fails(before, now) for now in falls)
            losses = [before + np.clip(_centred(rng, other - before) - _MARGIN, -1, 1) for _ in range(_LOSSES)]
            alarms.append(alarmed / _BRANCHES)
            found.append(sum(fails(before, now) for now in losses) / _LOSSES)
        rows[f"{name}: branches with a false alarm"] = [f"{share:.3f}" for share in alarms]
        rows[f"{name}: true losses that fail"] = [f"{share:.3f}" for share in found]
        print(name, alarms, found, flush=True)
    return table(["", "the gate", *_PACKAGES], rows)


def _falls(differences: Values) -> bool:
    error = differences.std() / np.sqrt(len(differences))
    return bool(differences.mean() < 0 and (differences.mean() < -_MARGIN or differences.mean() < -1.5 * error))


def main(arguments: list[str]) -> int:
    """Measure, and write the section."""
    if len(arguments) != 2:
        print("usage: python -m bench.gate.packages DATA WORK")
        return 2
    pairs = _pairs(*map(Path, arguments))
    write_section(
        _PAGE,
        BESIDE,
        _TEXT,
        branches=_BRANCHES,
        commits=_COMMITS,
        losses=_LOSSES,
        iterations=f"{_ITERATIONS:,}",
        table=_measured(pairs),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
