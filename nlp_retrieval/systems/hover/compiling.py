"""Compiling a program: better instructions and demonstrations for the language model, found on judged claims.

BootstrapFewShot (Khattab et al., ICLR 2024, https://arxiv.org/abs/2310.03714) takes demonstrations that led to full marks;
MIPROv2 (Opsahl-Ong et al., EMNLP 2024) searches over such demonstrations and proposed instructions; GEPA (Agrawal et al.,
2025, https://arxiv.org/abs/2507.19457) rewrites instructions after reading what went wrong.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Literal, get_args

from nlp_retrieval import Gold, HoverLoader, LanguageModel, Query, RetrievalResult
from nlp_retrieval.core import Lock, without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, GoldError, ModelError, RetrievalWarning, install, nearest
from nlp_retrieval.lm import CallCounts, CompiledProgram, dspy
from nlp_retrieval.systems.hover.programs import SEPARATOR, HoverMultiHop, HoverMultiHopPipeline
from nlp_retrieval.text import normalize_title

MAX_TITLES = 21
"""Number of different titles that count: three lists of 7."""


def discrete_retrieval_eval(example: Any, prediction: Any, trace: object = None) -> bool:
    """Return whether all gold titles of an example are among the first 21 retrieved titles, in normalised form.

    Args:
        example: with ``gold_titles``, or with ``supporting_facts`` as in HoVer's release and DSPy's data set.
        prediction: with ``retrieved_docs``, each ``title | text``.
        trace: unused; DSPy's optimisers pass it.

    Raises:
        GoldError: the example has no gold.

    Examples:
        >>> import dspy
        >>> example = dspy.Example(claim="It eats krill.", supporting_facts=[["Blue whale", 0], ["Krill", 1]])
        >>> found = ["Krill | Small animals.", "blue whale | It eats krill."]
        >>> discrete_retrieval_eval(example, dspy.Prediction(retrieved_docs=found))
        True
        >>> others = [f"Page {number} | text" for number in range(20)]
        >>> discrete_retrieval_eval(example, dspy.Prediction(retrieved_docs=[*found[:1], *others, *found[1:]]))
        False
    """
    del trace
    return not missing_titles(example, prediction)


def missing_titles(example: Any, prediction: Any) -> list[str]:
    """Return the gold titles that are not among the first 21 retrieved."""
    retrieved = list(dict.fromkeys(normalize_title(title) for title in _retrieved_titles(prediction)))[:MAX_TITLES]
    return [title for title in _gold_titles(example) if normalize_title(title) not in retrieved]


def _retrieved_titles(prediction: Any) -> list[str]:
    results = _field(prediction, "results")
    if isinstance(results, list) and results and all(isinstance(hit, RetrievalResult) for hit in results):
        return [result.item.title for result in results]  # a title may hold the separator itself
    return [str(document).partition(SEPARATOR)[0] for document in _field(prediction, "retrieved_docs") or []]


def _field(of: Any, name: str) -> Any:
    """Return a field of one of DSPy's objects, or of a dictionary."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _gold_titles(example: Any) -> list[str]:
    titles = _field(example, "gold_titles")
    if titles is None:
        facts = _field(example, "supporting_facts") or []
        if isinstance(facts, Mapping):  # columns: {"key": [...], "value": [...]}
            facts = [[title] for title in facts.get("key") or facts.get("title") or []]
        titles = [fact.get("key", "") if isinstance(fact, Mapping) else fact[0] for fact in facts]
    distinct = list(dict.fromkeys(map(str, [titles] if isinstance(titles, str) else titles)))
    if not distinct:
        raise GoldError(f"an example has neither gold_titles nor supporting_facts: {example!r:.200}")
    return distinct


_USUAL_HOPS = (3,)


def hover_examples(path: str | Path, hops: int | Sequence[int] | None = _USUAL_HOPS) -> list[Any]:
    """Read claims from a HoVer release file.

    Args:
        path: as :class:`~nlp_retrieval.loaders.datasets.HoverLoader` takes it.
        hops: keep only claims with this number of hops, or one of these; None for all. By default claims of three hops, and a
            warning counts those that are left out.

    Returns:
        ``dspy.Example`` objects with the input ``claim`` and with ``gold_titles``, ``query_id`` and ``family``.

    Raises:
        SourceError: the file is missing or malformed, or no claim is kept.

    Examples:
        >>> (example,) = hover_examples("hover.json")
        >>> example.claim, example.gold_titles
        ('What eats the small animals of the Southern Ocean hunts no lemmings.', ['Blue whale', 'Krill', 'Arctic fox'])
    """
    loader = HoverLoader(path, hops=None if hops is None else [hops] if isinstance(hops, int) else list(hops))
    queries = loader.queries()
    if hops == _USUAL_HOPS and len(queries) < (n_claims := len(HoverLoader(path).queries())):
        warnings.warn(
            f"{path}: {len(queries):,} of its {n_claims:,} claims have three hops and are taken; pass hops=None to take all",
            RetrievalWarning,
            stacklevel=2,
        )
    return examples_of(queries, loader.gold())


def examples_of(queries: Sequence[Query], gold: Sequence[Gold]) -> list[Any]:
    """Make examples of judged queries whose gold names titles."""
    by_id = {query_gold.query_id: query_gold for query_gold in gold}
    examples = []
    for query in queries:
        query_gold = by_id.get(query.query_id)
        titles = [key for key, grade in query_gold.relevance.items() if grade > 0] if query_gold is not None else []
        if query_gold is None or query_gold.by != "title" or not titles:
            raise GoldError(f"query {query.query_id!r} has no gold by title; programs are judged by titles")
        example = dspy.Example(claim=query.text, gold_titles=titles, query_id=query.query_id, family=query.family)
        examples.append(example.with_inputs("claim"))
    return examples


def split_by_family(examples: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split examples into halves so that those of one ``family`` (HoVer's ``hpqa_id``) are never in both."""
    families = [number if example.get("family") is None else example.family for number, example in enumerate(examples)]
    distinct = sorted(set(families), key=repr)
    if len(distinct) < 2:
        raise ConfigurationError(f"{len(distinct)} families of examples cannot be split; give more examples")
    random.Random(_SEED).shuffle(distinct)  # noqa: S311 -- a split, no secret
    first = set(distinct[: round(len(distinct) / 2)])
    sides: tuple[list[Any], list[Any]] = ([], [])
    for family, example in zip(families, examples, strict=True):
        sides[family not in first].append(example)
    return sides


Optimizer = Literal["bootstrap_few_shot", "miprov2", "gepa"]

_DEMONSTRATIONS, _MOST_CANDIDATES = 4, 10
_PROPOSAL_TOKENS = 4096
_TELL_EVERY = 25
_SEED = 0


@dataclass(frozen=True)
class Optimized:
    """The compiled program, and the shares of validation claims all of whose documents are found."""

    program: Any
    before: float
    after: float
    n_train: int
    n_validation: int
    runs: int
    counts: CallCounts


def optimize(
    program: Any,
    train: Sequence[Any],
    lm: LanguageModel | None = None,
    *,
    validation: Sequence[Any] | None = None,
    optimizer: Optimizer = "miprov2",
    budget: int | None = None,
    output: str | Path | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Optimized:
    """Compile a program with an opened index.

    Args:
        program: a DSPy module, for instance a ``HoverMultiHopPipeline``; it is not changed.
        train: examples with the input ``claim`` and with gold titles.
        lm: the language model to ask; by default the program's ``language_model``, or that of DSPy's settings. Once compiled,
            a HoVer program asks it too, and any other module that of DSPy's settings.
        validation: examples that candidates are compared on; by default half of the families of ``train``.
        optimizer: ``bootstrap_few_shot``, ``miprov2`` or ``gepa``, also as DSPy spells them.
        budget: approximate number of runs of the program for the search; by default what the optimiser calls light.
        output: JSON file for the compiled state, for the ``program`` of a processor or a pipeline.
        on_progress: called with a message with the numbers of runs and calls.

    Raises:
        ConfigurationError: an unknown optimiser, too few examples, or no model.
        DependencyError: the optimiser is not installed.
        ModelError: the endpoint does not answer.
        OutputError: the file cannot be written.

    Examples:
        >>> class Stub:
        ...     def complete(self, prompt):
        ...         return '["Blue whale", "krill", "Arctic fox"]'
        >>> program = HoverMultiHopPipeline(["bm25"], Stub())
        >>> report = program.index(items, "index")
        >>> examples = hover_examples("hover.json")
        >>> report = optimize(program, examples, validation=examples, optimizer="bootstrap_few_shot", output="best.json")
        >>> report.before, report.after, report.runs
        (1.0, 1.0, 3)
    """
    optimizer = _known(optimizer)
    if lm is None:
        own = getattr(program, "language_model", None)
        lm = LanguageModel.of_client(own if isinstance(own, LanguageModel) else None)
    else:
        lm, program = LanguageModel.of_client(lm), program.deepcopy()
        program.set_lm(lm if isinstance(program, HoverMultiHop | HoverMultiHopPipeline) else None)
    if validation is None:
        train, validation = split_by_family(train)
    if not train or not validation:
        raise ConfigurationError(f"{len(train)} training and {len(validation)} validation claims; both are needed")
    if budget is not None and budget < 1:
        raise ConfigurationError(f"budget={budget}; it must be at least 1")
    run = _Run(lm, budget, on_progress or (lambda _: None))
    with _in_dspy(lm):
        before = run.mean(program, validation)
        run.say("before")
        if run.counts.tokens_out == run.counts.cache_hits == 0 and run.counts.degraded:
            raise ModelError(
                f"{lm.model} gave no usable answer to any of {run.counts.degraded} questions; there is nothing to optimise"
            )
        compiled = getattr(run, optimizer)(program, list(train), list(validation))
        after = run.mean(compiled, validation)
    if after < before:
        compiled, after = program, before  # the best on a part of the claims may be worse on all of them
    run.say("done")
    if output is not None:
        CompiledProgram.of(compiled).write(output)
    return Optimized(compiled, before, after, len(train), len(validation), run.n_runs, run.counts)


class _Run:
    """Optimisers by name; counts the runs of the program, and reports them."""

    def __init__(self, lm: LanguageModel, budget: int | None, tell: Callable[[str], None]) -> None:
        self._lm, self._budget, self._tell = lm, budget, tell
        self._begin = lm.counts
        self._threads = lm.endpoint.calls_at_once
        self._lock = Lock()
        self.n_runs = 0

    @property
    def counts(self) -> CallCounts:
        """Return the counts of the model, since the run began."""
        return self._lm.counts - self._begin

    @property
    def _proposer(self) -> Any:
        return self._lm.dspy_lm().copy(temperature=1.0, max_tokens=max(_PROPOSAL_TOKENS, self._lm.sampling[1] or 0))

    def score(self, example: Any, prediction: Any, trace: object = None) -> float:
        """Return 1 if all documents were found, else 0, counting the run."""
        del trace
        with self._lock:
            self.n_runs += 1
            tell = self.n_runs % _TELL_EVERY == 0
        if tell:
            self.say("searching")
        return float(not missing_titles(example, prediction))

    def judged(self, gold: Any, pred: Any, trace: object = None, *named: object) -> Any:
        """Return the score with a sentence on the missing documents, as GEPA requires."""
        del named
        missing = "; ".join(missing_titles(gold, pred))
        feedback = f"Documents that the claim takes were not found: {missing}." if missing else "All documents were found."
        return dspy.Prediction(score=self.score(gold, pred, trace), feedback=feedback)

    def mean(self, program: Any, examples: Sequence[Any]) -> float:
        """Return the mean score over examples."""
        evaluate = dspy.Evaluate(
            devset=list(examples), metric=self.score, num_threads=self._threads, display_progress=False, max_errors=1
        )
        return float(evaluate(program).score) / 100.0

    def say(self, where: str) -> None:
        """Report the progress."""
        self._tell(f"{where}: {self.n_runs:,} runs of the program; {self.counts}")

    def bootstrap_few_shot(self, program: Any, train: list[Any], _: list[Any]) -> Any:
        bootstrap = dspy.BootstrapFewShot(self.score, max_bootstrapped_demos=_DEMONSTRATIONS, max_labeled_demos=0, max_errors=1)
        with redirect_stdout(StringIO()):  # it prints what on_progress reports
            return bootstrap.compile(program, trainset=train[: self._budget])

    def gepa(self, program: Any, train: list[Any], validation: list[Any]) -> Any:
        limit = {"auto": "light"} if self._budget is None else {"max_metric_calls": self._budget}
        gepa = dspy.GEPA(self.judged, reflection_lm=self._proposer, num_threads=self._threads, seed=_SEED, **limit)
        return gepa.compile(program, trainset=train, valset=validation)

    def miprov2(self, program: Any, train: list[Any], validation: list[Any]) -> Any:
        trials = None if self._budget is None else max(1, self._budget // len(validation))
        mipro = dspy.MIPROv2(
            self.score,
            prompt_model=self._proposer,
            task_model=self._lm.dspy_lm(),
            auto="light" if trials is None else None,
            num_candidates=None if trials is None else min(_MOST_CANDIDATES, trials + 1),
            max_labeled_demos=0,
            num_threads=self._threads,
            seed=_SEED,
        )
        return mipro.compile(program, trainset=train, valset=validation, num_trials=trials, minibatch=trials is None)


@contextmanager
def _in_dspy(lm: LanguageModel) -> Iterator[None]:
    log = logging.getLogger("dspy")
    level = log.level
    log.setLevel(max(level, logging.WARNING))  # hundreds of lines on what on_progress reports
    with dspy.context(lm=lm.dspy_lm(), disable_history=True, adapter=dspy.ChatAdapter()):
        try:
            yield
        except dspy.utils.exceptions.DSPyError as error:
            reason = without_secrets(" ".join(str(error).split())[:500])
            raise ModelError(f"optimising stopped, because an instruction could not be proposed: {reason}") from None
        finally:
            log.setLevel(level)


def _known(name: str) -> Optimizer:
    """Return the optimiser of a name, in our spelling or DSPy's, whose package is installed."""
    spelt: dict[str, Optimizer] = {known.replace("_", ""): known for known in get_args(Optimizer)}
    optimizer = spelt.get(str(name).replace("_", "").lower())
    if optimizer is None:
        raise ConfigurationError(f"optimizer={name!r}; {nearest(str(name), get_args(Optimizer))}")
    package = {"miprov2": "optuna", "gepa": "gepa"}.get(optimizer)
    if package is not None and find_spec(package) is None:
        raise DependencyError(f"optimizer={optimizer!r} needs {package}: {install('llm')}")
    return optimizer
