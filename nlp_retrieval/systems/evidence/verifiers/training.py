"""Fine-tuning a small pair model on judged claims: batches, the model in training, and the run, which can be continued."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import ModelFiles, parse_json, progress, read_json_file, write_atomically
from nlp_retrieval.encoders import find_model, require_dense_extra, require_device
from nlp_retrieval.errors import ConfigurationError, ModelError, RetrievalWarning, first_line, nearest
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, TrainingExample, examples_of, held_out_families, is_short
from nlp_retrieval.systems.evidence.verifiers.perturbations import with_perturbations

if TYPE_CHECKING:
    import torch


# Batches of examples for a model: tokens of claims and texts of similar length.

LABELS = ("support", "contradict", "neutral")
"""Labels of a trained model, in order."""

_LABEL_NUMBERS = {"support": 0, "contradict": 1, "neutral": 2, "not_support": 3}


@dataclass(frozen=True)
class Batch:
    """Examples that are computed together.

    Args:
        tokens: ``[texts, length]`` input ids, 0 for padding.
        types: ``[texts, length]`` 0 for the claim, 1 for the text.
        mask: ``[texts, length]`` 1 for a token.
        example: ``[texts]`` the number in this batch of a text's example, ascending.
        labels: ``[examples]`` 0 support, 1 contradict, 2 neutral, 3 anything but support.
        numbers: ``[examples]`` the examples' numbers in the list that was batched.
    """

    tokens: NDArray[np.int64]
    types: NDArray[np.int64]
    mask: NDArray[np.int64]
    example: NDArray[np.int64]
    labels: NDArray[np.int64]
    numbers: NDArray[np.int64]


def batches_of(examples: Sequence[TrainingExample], tokenizer: Any, max_length: int, batch_tokens: int) -> list[Batch]:
    """Return batches of examples of similar length, short ones first.

    Args:
        examples: at least one.
        tokenizer: of the model, by transformers.
        max_length: tokens of a claim and a text; the text is cut.
        batch_tokens: of a batch, padding included, unless one example has more.
    """
    texts = [(number, text) for number, example in enumerate(examples) for text in example.texts]
    encoded = tokenizer(
        [examples[number].claim[:1000] for number, _ in texts],
        [text for _, text in texts],
        truncation="longest_first",
        max_length=max_length,
    )
    tokens_of, types_of = (
        encoded["input_ids"],
        encoded.get("token_type_ids") or [[0] * len(ids) for ids in encoded["input_ids"]],
    )
    parts: list[list[int]] = [[] for _ in examples]
    for text_number, (number, _) in enumerate(texts):
        parts[number].append(text_number)
    lengths = [max(len(tokens_of[text_number]) for text_number in text_numbers) for text_numbers in parts]
    order = sorted(range(len(examples)), key=lambda number: (lengths[number], number))
    batches: list[Batch] = []
    batch: list[int] = []
    n_texts = 0
    for number in order:
        if batch and (n_texts + len(parts[number])) * lengths[number] > batch_tokens:
            batches.append(_batch(batch, parts, examples, tokens_of, types_of))
            batch, n_texts = [], 0
        batch.append(number)
        n_texts += len(parts[number])
    return [*batches, _batch(batch, parts, examples, tokens_of, types_of)] if batch else batches


def _batch(
    rows: list[int],
    parts: list[list[int]],
    examples: Sequence[TrainingExample],
    tokens_of: list[list[int]],
    types_of: list[list[int]],
) -> Batch:
    text_numbers = [text_number for number in rows for text_number in parts[number]]
    width = max(len(tokens_of[text_number]) for text_number in text_numbers)
    tokens, types, mask = (np.zeros((len(text_numbers), width), np.int64) for _ in range(3))
    for row, text_number in enumerate(text_numbers):
        length = len(tokens_of[text_number])
        tokens[row, :length], types[row, :length], mask[row, :length] = tokens_of[text_number], types_of[text_number], 1
    example = np.repeat(np.arange(len(rows)), [len(parts[number]) for number in rows])
    labels = np.array([_LABEL_NUMBERS[examples[number].label] for number in rows])
    return Batch(tokens, types, mask, example, labels, np.array(rows))


# Fine-tuning a small model that reads a claim and a text together, and predicts support, contradict or neutral.
#
# The windows of a passage are judged together: the evidence for "support" is the strongest of any window, and likewise for
# "contradict" (multiple-instance learning: only the passage has a label). A stopped run continues from its last checkpoint and
# ends with the same model, on the same machine, as an uninterrupted one.

_PRECISIONS = ("float32", "bfloat16")
_KEPT_OF_MEAN = 0.995


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training of a verifier.

    Args:
        epochs: the most passes over the examples; on 18,000 pairs of six sets a second one overfitted the small sets.
        short_epochs: earlier passes over only the short examples, of a claim and one or two sentences: they cost a fraction,
            and a model that has learnt what contradicts a sentence learns faster what contradicts a page.
        learning_rate: the highest, after the first tenth; it falls to 0 from there.
        batch_tokens: of a batch, padding included.
        max_length: tokens that are read of a claim and a text.
        windows: of a passage that are read, at most.
        window_size: characters.
        perturbations: the share of supported pairs from which each kind of claim is generated.
        held_out: the share of families that decides when to stop.
        weight_decay: of AdamW.
        seed: of all random choices.
        precision: "float32", or "bfloat16" if the processor, or the GPU, supports it.

    Raises:
        ConfigurationError: the precision is unknown.
    """

    epochs: int = 1
    short_epochs: int = 2
    learning_rate: float = 1.2e-4
    batch_tokens: int = 2560
    max_length: int = 160
    windows: int = 2
    window_size: int = 330
    perturbations: float = 0.25
    held_out: float = 0.09
    weight_decay: float = 0.01
    seed: int = 0
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            raise ConfigurationError(f"precision={self.precision!r}; {nearest(self.precision, _PRECISIONS)}")


def pooled_logits(logits: torch.Tensor, example: torch.Tensor, n_examples: int) -> torch.Tensor:
    """Return the logits of examples, ``[examples, 3]``, from those of their texts, ``[texts, 3]``; neutral is 0.

    Args:
        logits: support, contradict, neutral.
        example: ``[texts]`` the number of a text's example.
        n_examples: their number.
    """
    import torch

    against = (logits[:, :2] - logits[:, 2:]).float()
    pooled = against.new_full((n_examples, 2), -math.inf)
    pooled = pooled.scatter_reduce(0, example[:, None].expand(-1, 2), against, "amax", include_self=True)
    return torch.cat([pooled, pooled.new_zeros(n_examples, 1)], dim=1)


class FineTuning:
    """A model in training, its optimiser, and the running mean of its weights, which is evaluated and saved.

    The mean is over the last few hundred steps (Polyak and Juditsky, 1992): a step sees two dozen pairs, so that the weights
    after it are noisy.

    Args:
        model: of transformers, for sequence classification with three labels.
        tokenizer: its own.
        settings: of the training.
        total_steps: of the whole run, over which the learning rate falls.
        device: of torch.
    """

    def __init__(self, model: Any, tokenizer: Any, settings: TrainingSettings, total_steps: int, device: str = "cpu") -> None:
        import torch

        model.to(device)
        self.model, self.tokenizer, self.settings, self.total_steps = model, tokenizer, settings, total_steps
        self.device = torch.device(device)
        decayed = [value for name, value in model.named_parameters() if value.ndim > 1 and value.requires_grad]
        others = [value for name, value in model.named_parameters() if value.ndim <= 1 and value.requires_grad]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate)
        self.mean = copy.deepcopy(model).eval()
        self.step = 0

    def train(self, batches: Sequence[Batch], epoch: int, first: int, after_step: Callable[[int], None]) -> None:
        """Train on the batches of an epoch, in an order that depends on the seed and the epoch.

        Args:
            batches: all of them.
            epoch: its number.
            first: number of those already done.
            after_step: called with the number of those done.
        """
        import torch

        order = list(range(len(batches)))
        random.Random(f"{self.settings.seed}/{epoch}").shuffle(order)  # noqa: S311  # nothing secret is drawn
        self.model.train()
        for done, number in enumerate(order[first:], start=first + 1):
            torch.manual_seed(self.settings.seed * 1_000_003 + self.step)  # a step's dropout is the same after a restart
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * self._warm_up_factor()
            loss = self._loss(batches[number])
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
            self._update_mean()
            after_step(done)

    def _update_mean(self) -> None:
        import torch

        share = max(1 - _KEPT_OF_MEAN, 10 / (10 + self.step))  # the first weights are not yet trained
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.parameters()), list(self.model.parameters()), share)

    def _warm_up_factor(self) -> float:
        share = self.step / max(1, self.total_steps)
        return min(1.0, (share + 1e-3) / 0.1) * max(0.0, 1.0 - share)

    def _loss(self, batch: Batch) -> torch.Tensor:
        import torch

        logits = self._logits(self.model, batch)
        probabilities = torch.log_softmax(logits, dim=1)
        labels = torch.from_numpy(batch.labels).to(self.device)
        known = labels < len(LABELS)
        loss = logits.new_zeros(())
        if bool(known.any()):
            loss = loss - probabilities[known].gather(1, labels[known, None]).sum()
        if bool((~known).any()):
            loss = loss - torch.logsumexp(probabilities[~known][:, 1:], dim=1).sum()
        return loss / len(labels)

    def _logits(self, model: Any, batch: Batch) -> torch.Tensor:
        import torch

        tokens, mask, types, example = (
            torch.from_numpy(values).to(self.device) for values in (batch.tokens, batch.mask, batch.types, batch.example)
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            logits = model(input_ids=tokens, attention_mask=mask, token_type_ids=types).logits
        torch.clear_autocast_cache()  # inside a caller's autocast it would keep the weights of the first step for all others
        return pooled_logits(logits.float(), example, len(batch.labels))

    def predict(self, batches: Sequence[Batch], n_examples: int) -> NDArray[np.float64]:
        """Return the pooled logits of the mean weights for all examples, ``[examples, 3]``."""
        import torch

        logits = np.zeros((n_examples, len(LABELS)))
        with torch.inference_mode():
            for batch in batches:
                logits[batch.numbers] = self._logits(self.mean, batch).cpu().numpy()
        return logits

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the model's and the optimiser's tensors by name, for a checkpoint."""
        tensors = {f"model.{name}": value.detach().contiguous() for name, value in self.model.state_dict().items()}
        tensors |= {f"mean.{name}": value.detach().contiguous() for name, value in self.mean.state_dict().items()}
        for name, value in self._moments():
            tensors[name] = value
        return tensors

    def _moments(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                yield f"{key}.{name}", value.detach().clone().contiguous()

    def restore(self, tensors: dict[str, torch.Tensor], step: int) -> None:
        """Restore a checkpoint."""
        for kind, model in (("model.", self.model), ("mean.", self.mean)):
            model.load_state_dict({name.removeprefix(kind): tensors[name] for name in tensors if name.startswith(kind)})
        for name, parameter in self.model.named_parameters():
            state = {
                # the count of steps stays where the optimiser reads it
                key: tensors[f"{key}.{name}"].clone().to("cpu" if key == "step" else self.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{key}.{name}" in tensors
            }
            if state:
                self.optimizer.state[parameter] = state
        self.step = step


# Training run: from judged pairs to a model folder for a verifier; a stopped run can be continued.

# Model folders: opening the base model, and saving the trained one.


def opened_base(folder: Path, seed: int) -> tuple[Any, Any]:
    """Return the base model and its tokenizer.

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
            dtype=torch.float32,  # weights that are stored in 16 bits do not train in 16 bits
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
    """Write the mean weights of a model, with the logits of its last layer divided by a temperature."""
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
    return float(np.mean([np.mean(values) for values in losses.values()]))


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
    held_out = held_out_families(pairs, chosen.held_out, chosen.seed)
    trained, judged = [p for p in pairs if p.family not in held_out], [p for p in pairs if p.family in held_out]
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
    # runs that were started before the setting was renamed go on
    values = {"plants" if name == "perturbations" else name: value for name, value in asdict(settings).items()}
    digest = hashlib.sha256(json.dumps([_FORMAT, values, ModelFiles.of(model).fingerprint]).encode())
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
    perturbed = with_perturbations(pairs, settings.perturbations, rng)
    repeated = [pair for pair in perturbed if sizes[pair.collection] < min(_SMALL_COLLECTION, largest)]
    examples = examples_of([*perturbed, *repeated], settings.windows, settings.window_size, rng)
    return batches_of(_read_in(examples, epoch, settings, rng), tokenizer, settings.max_length, settings.batch_tokens)


def _read_in(
    examples: list[TrainingExample], epoch: int, settings: TrainingSettings, rng: random.Random
) -> list[TrainingExample]:
    """Return the examples of an epoch: at first the short ones, later all others and half of the short ones, as rehearsal."""
    short = [number for number, example in enumerate(examples) if is_short(example)]
    if not short or not settings.short_epochs:
        return examples
    if epoch < settings.short_epochs:
        return [examples[number] for number in short]
    dropped = set(rng.sample(short, len(short) // 2))
    return [example for number, example in enumerate(examples) if number not in dropped]


def _checkpoint(folder: Path, tuning: FineTuning, state: _State) -> None:
    from safetensors.torch import save

    write_atomically(folder / _CHECKPOINT, save(tuning.tensors(), metadata={"state": json.dumps(asdict(state))}))
