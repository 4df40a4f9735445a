"""Training run: from judged pairs to a model folder for a verifier; a stopped run can be continued."""

from __future__ import annotations

import hashlib
import json
import math
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import ModelFiles, parse_json, progress, read_json_file, write_atomically
from nlp_retrieval.encoders import find_model, require_dense_extra, require_device
from nlp_retrieval.errors import ConfigurationError, ModelError, RetrievalWarning, first_line
from nlp_retrieval.systems.evidence.verifiers.training.batches import LABELS, Batch, batches_of
from nlp_retrieval.systems.evidence.verifiers.training.examples import (
    TrainingExample,
    examples_of,
    held_out_families,
    is_short,
    with_plants,
)
from nlp_retrieval.systems.evidence.verifiers.training.fine_tuning import FineTuning, TrainingSettings
from nlp_retrieval.systems.evidence.verifiers.training.pairs import JudgedPair

__all__ = ["TrainingReport", "train_verifier"]


# Model folders: opening the base model, and saving the trained one.


def opened_base(folder: Path, seed: int) -> tuple[Any, Any]:
    """Return the base model and its tokenizer.

    Args:
        folder: of an encoder of transformers or sentence-transformers.
        seed: of the new classification layer.

    Raises:
        ModelError: it does not load.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)  # the classification layer is new
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config = AutoConfig.from_pretrained(
            folder,
            num_labels=len(LABELS),
            id2label=dict(enumerate(LABELS)),
            label2id={label: number for number, label in enumerate(LABELS)},
            local_files_only=True,
            trust_remote_code=False,
        )
        for name in ("attention_probs_dropout_prob", "attention_dropout"):
            if hasattr(config, name):
                setattr(config, name, 0.0)  # on a CPU, drawing dropout takes a quarter of a step
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            config=config,
            ignore_mismatched_sizes=True,  # a base with other labels, or one score, gets a new layer
            attn_implementation="eager",  # the fused kernel's backward pass takes 40% of a step on a CPU
            local_files_only=True,
            trust_remote_code=False,
        )
    except Exception as error:
        reason = first_line(error)
        raise ModelError(f"{folder} does not load as a model to fine-tune: {reason}") from error
    for parameter in model.get_input_embeddings().parameters():
        parameter.requires_grad = False  # half of a small model's parameters, and rare words are too rare to learn
    return model, tokenizer


def save_model(folder: Path, tuning: FineTuning, temperature: float) -> None:
    """Write the mean weights of a model, as evaluated.

    Args:
        folder: to write to.
        tuning: of the model.
        temperature: by which the weights of the last layer are divided, and so its logits.
    """
    from safetensors.torch import save
    from torch.nn import Linear

    tuning.tokenizer.save_pretrained(folder)
    config = tuning.model.config
    config.architectures = [type(tuning.model).__name__]
    config.save_pretrained(folder)
    weights = {name: value.detach().contiguous() for name, value in tuning.mean.state_dict().items()}
    linear = [
        name for name, part in tuning.mean.named_modules() if isinstance(part, Linear) and part.out_features == len(LABELS)
    ]
    for name in (f"{linear[-1]}.weight", f"{linear[-1]}.bias"):
        if name in weights:
            weights[name] = weights[name] / temperature
    write_atomically(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))


# Calibration on held-out pairs: the temperature of the logits with the least loss.

Logits = NDArray[np.float64]

_TEMPERATURES = np.geomspace(0.5, 8, 49)


def best_temperature(logits: Logits, examples: Sequence[TrainingExample]) -> tuple[float, float]:
    """Return the divisor of the logits with the least loss, and that loss.

    A trained model is overconfident on other pairs (Guo et al., ICML 2017): by its raw loss, a model that separates the labels
    better would often be rejected for one that has trained less.

    Args:
        logits: ``[examples, 3]``.
        examples: as many.
    """
    loss, temperature = min((_loss(logits / temperature, examples), temperature) for temperature in _TEMPERATURES)
    return temperature, loss


def _loss(logits: Logits, examples: Sequence[TrainingExample]) -> float:
    raised = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(raised) / np.exp(raised).sum(axis=1, keepdims=True)
    losses: defaultdict[str, list[float]] = defaultdict(list)
    for row, example in zip(probabilities, examples, strict=True):
        likely = 1 - row[0] if example.label == "not_support" else row[LABELS.index(example.label)]
        losses[example.collection].append(-float(np.log(max(likely, 1e-12))))
    return float(np.mean([np.mean(some) for some in losses.values()]))


_CHECKPOINT, _REPORT = "training_checkpoint.safetensors", "training_report.json"
_STEPS_BETWEEN_CHECKPOINTS = 200
_FORMAT = 2
_SMALL_COLLECTION = 1000
_WINDOWS_JUDGED = 4
_PATIENCE = 2
_SAME = 0.03
"""Least standard deviation of the logits over the held-out pairs; with less, the model ignores its input."""
_NOTHING_LEARNT = "the model gives all held-out pairs the same answer; pass a lower learning_rate, or more pairs"


@dataclass(frozen=True)
class TrainingReport:
    """Result of a training run.

    Args:
        pairs: number of training pairs, without generated ones.
        held_out: number of held-out pairs, which decided when to stop.
        losses: of the held-out pairs after each epoch: the mean over collections of the mean negative log-likelihood, with
            logits divided by the best temperature.
        best_epoch: the epoch of the saved model, from 1.
    """

    pairs: int
    held_out: int
    losses: list[float]
    best_epoch: int


def train_verifier(
    pairs: Sequence[JudgedPair],
    base: str,
    output: str | Path,
    settings: TrainingSettings | None = None,
    on_progress: Callable[[str], None] | None = None,
    device: str | None = None,
) -> TrainingReport:
    """Fine-tune a small pair model on judged pairs, and save it where :class:`PairModelVerifier` opens it.

    Held-out families are never trained on; after each epoch the model is evaluated on them, the best is saved, and training
    stops after two epochs without improvement. Called again with the same arguments, it continues a stopped run.

    Args:
        pairs: judged ones, of at least two families in each collection.
        base: hub name or folder of the base model: an encoder of transformers or sentence-transformers.
        output: folder for the model; files that are not of such a run are not overwritten.
        settings: of the training; by default for a small model on a CPU.
        on_progress: called with a line after each epoch.
        device: ``cpu``, ``cuda``, ...; by default a GPU if torch has one.

    Raises:
        ConfigurationError: there are no pairs, the folder holds another run, or there is no such device.
        DependencyError: the dense extra is not installed.
        ModelError: the base model does not load.
    """
    require_dense_extra()
    require_device(device)
    chosen = settings or TrainingSettings()
    folder = Path(output)
    if not pairs:
        raise ConfigurationError("there are no pairs to train on")
    held = held_out_families(pairs, chosen.held_out, chosen.seed)
    trained, judged = [p for p in pairs if p.family not in held], [p for p in pairs if p.family in held]
    if not trained:
        raise ConfigurationError("every pair is of one family, which cannot be both trained on and held out; add more sources")
    model_folder = find_model(base, None).path
    identity = _identity(pairs, chosen, model_folder)
    finished = _finished(folder, identity)
    if finished is not None:
        return finished
    model, tokenizer = opened_base(model_folder, chosen.seed)
    in_all = chosen.short_epochs + chosen.epochs
    prepared = {epoch: _epoch_batches(trained, chosen, epoch, tokenizer) for epoch in {0, chosen.short_epochs}}
    total_steps = chosen.short_epochs * len(prepared[0]) + chosen.epochs * len(prepared[chosen.short_epochs])
    tuning = FineTuning(model, tokenizer, chosen, total_steps, device or _best_device())
    state = _resumed(folder, identity, tuning)
    examples = examples_of(judged, _WINDOWS_JUDGED, chosen.window_size, random.Random(chosen.seed))  # noqa: S311
    held_batches = batches_of(examples, tokenizer, chosen.max_length, 2 * chosen.batch_tokens)
    while state.epoch < in_all and not state.stopped:
        batches = prepared.pop(state.epoch, None) or _epoch_batches(trained, chosen, state.epoch, tokenizer)
        _train_epoch(folder, tuning, batches, state)
        logits = tuning.predict(held_batches, len(examples))
        if float(logits.std(axis=0).max()) < _SAME:
            warnings.warn(_NOTHING_LEARNT, RetrievalWarning, stacklevel=2)
        temperature, loss = best_temperature(logits, examples)
        if on_progress is not None:
            by = f"with logits divided by {temperature:.2f}"
            on_progress(f"epoch {state.epoch + 1}: loss {loss:.4f} on {len(judged):,} held-out pairs, {by}")
        better = loss < min(state.losses, default=math.inf)
        if better:
            save_model(folder, tuning, temperature)
        losses = (*state.losses, loss)
        stopped = state.epoch >= chosen.short_epochs and int(np.argmin(losses)) < len(losses) - _PATIENCE
        state = replace(state, epoch=state.epoch + 1, done=0, step=tuning.step, losses=losses, stopped=stopped)
        _checkpoint(folder, tuning, state)
    report = TrainingReport(len(trained), len(judged), list(state.losses), int(np.argmin(state.losses)) + 1)
    kept = asdict(report) | {"settings": asdict(chosen), "base": base, "identity": identity}
    write_atomically(folder / _REPORT, json.dumps(kept, indent=1).encode())
    (folder / _CHECKPOINT).unlink(missing_ok=True)
    return report


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _train_epoch(folder: Path, tuning: FineTuning, batches: list[Batch], state: _State) -> None:
    with progress(f"epoch {state.epoch + 1}", len(batches)) as advance:
        advance(state.done)

        def after_step(done: int) -> None:
            advance(1)
            if tuning.step % _STEPS_BETWEEN_CHECKPOINTS == 0:
                _checkpoint(folder, tuning, replace(state, done=done, step=tuning.step))

        tuning.train(batches, state.epoch, state.done, after_step)


def _identity(pairs: Sequence[JudgedPair], settings: TrainingSettings, model: Path) -> str:
    digest = hashlib.sha256(json.dumps([_FORMAT, asdict(settings), ModelFiles.of(model).fingerprint]).encode())
    for pair in pairs:
        digest.update(json.dumps(asdict(pair)).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _State:
    """State of a run; stored in the checkpoint's own file, so that both are always consistent.

    Args:
        identity: of pairs, settings and base model.
        total_steps: of the whole run.
        epoch: the current one, from 0.
        done: its finished batches.
        step: finished batches in total.
        losses: after each epoch.
        stopped: whether the last epoch was no better than one before.
    """

    identity: str
    total_steps: int
    epoch: int = 0
    done: int = 0
    step: int = 0
    losses: tuple[float, ...] = ()
    stopped: bool = False


def _finished(folder: Path, identity: str) -> TrainingReport | None:
    """Return the report of a finished run; None if the run in the folder is not finished."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        return None
    if (folder / _REPORT).is_file():
        try:
            kept = read_json_file(folder / _REPORT)
            if kept["identity"] == identity:
                return TrainingReport(kept["pairs"], kept["held_out"], kept["losses"], kept["best_epoch"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{folder / _REPORT} cannot be read ({error!r}); name another folder") from None
        raise ConfigurationError(f"{folder} holds a model of other pairs, settings or another base model; name another folder")
    if not (folder / _CHECKPOINT).is_file():
        raise ConfigurationError(f"{folder} is not empty and holds no training run; name another folder")
    return None


def _resumed(folder: Path, identity: str, tuning: FineTuning) -> _State:
    """Return the state of the run in a folder and restore its tensors; a new state if there is none."""
    from safetensors import safe_open

    file = folder / _CHECKPOINT
    if not file.is_file():
        return _State(identity, tuning.total_steps)
    try:
        with safe_open(file, "pt") as checkpoint:
            values = parse_json((checkpoint.metadata() or {}).get("state", "null"))
            state = _State(**values | {"losses": tuple(values["losses"])})
            tensors = {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}  # noqa: SIM118  # it is not a mapping
    except Exception as error:
        reason = first_line(error)
        raise ConfigurationError(f"{file} is not a checkpoint of a training run ({reason}); remove it to train again") from None
    if state.identity != identity:
        raise ConfigurationError(
            f"{folder} holds a run with other pairs, settings or another base model; name another folder, or remove this one"
        )
    tuning.restore(tensors, state.step)
    tuning.total_steps = state.total_steps
    return state


def _epoch_batches(pairs: Sequence[JudgedPair], settings: TrainingSettings, epoch: int, tokenizer: Any) -> list[Batch]:
    rng = random.Random(f"{settings.seed}-{epoch}")  # noqa: S311  # nothing secret is drawn
    sizes: defaultdict[str, int] = defaultdict(int)
    for pair in pairs:
        sizes[pair.collection] += 1
    largest = max(sizes.values())
    planted = with_plants(pairs, settings.plants, rng)
    again = [pair for pair in planted if sizes[pair.collection] < min(_SMALL_COLLECTION, largest)]
    examples = examples_of([*planted, *again], settings.windows, settings.window_size, rng)
    return batches_of(_read_in(examples, epoch, settings, rng), tokenizer, settings.max_length, settings.batch_tokens)


def _read_in(
    examples: list[TrainingExample], epoch: int, settings: TrainingSettings, rng: random.Random
) -> list[TrainingExample]:
    """Return the examples of an epoch: at first the short ones, later all others and half of the short ones, as rehearsal."""
    short = [number for number, one in enumerate(examples) if is_short(one)]
    if not short or not settings.short_epochs:
        return examples
    if epoch < settings.short_epochs:
        return [examples[number] for number in short]
    dropped = set(rng.sample(short, len(short) // 2))
    return [one for number, one in enumerate(examples) if number not in dropped]


def _checkpoint(folder: Path, tuning: FineTuning, state: _State) -> None:
    from safetensors.torch import save

    write_atomically(folder / _CHECKPOINT, save(tuning.tensors(), metadata={"state": json.dumps(asdict(state))}))
