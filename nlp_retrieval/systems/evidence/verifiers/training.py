"""Fine-tuning a small pair model on judged claims, by the trainer of sentence-transformers.

The windows of a passage are judged together: the evidence for "support" is the strongest of any window, and likewise for
"contradict" (multiple-instance learning: only the passage has a label).
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nlp_retrieval.encoders import find_model, require_dense_extra, require_device
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, first_line, install, nearest
from nlp_retrieval.systems.evidence.verifiers.base import nearest_windows
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair

if TYPE_CHECKING:
    import torch

LABELS = ("support", "contradict", "neutral")
"""Labels of a trained model, in order."""

_NUMBERS = {"support": 0, "contradict": 1, "neutral": 2, "not_support": 3}
_PRECISIONS = ("float32", "bfloat16")
_LONGEST_CLAIM = 1000


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training of a verifier, which reads some windows of each passage."""

    epochs: int = 3
    learning_rate: float = 1.2e-4
    batch_size: int = 16
    max_length: int = 160
    windows: int = 2
    window_size: int = 330
    held_out: float = 0.09
    seed: int = 0
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            raise ConfigurationError(f"precision={self.precision!r}; {nearest(self.precision, _PRECISIONS)}")


@dataclass(frozen=True)
class TrainingReport:
    """Result of a training run."""

    pairs: int
    held_out: int
    loss: float


def train_verifier(
    pairs: Sequence[JudgedPair],
    base: str,
    output: str | Path,
    settings: TrainingSettings | None = None,
    device: str | None = None,
) -> TrainingReport:
    """Fine-tune a small pair model on judged pairs, and save it where :class:`PairModelVerifier` opens it.

    Held-out families are never trained on; after each pass the model is evaluated on them, and the best is saved.
    """
    require_dense_extra()
    require_device(device)
    chosen, folder = settings or TrainingSettings(), Path(output)
    if not pairs:
        raise ConfigurationError("there are no pairs to train on")
    held_out = held_out_families(pairs, chosen.held_out, chosen.seed)
    trained, judged = [p for p in pairs if p.family not in held_out], [p for p in pairs if p.family in held_out]
    if not trained:
        raise ConfigurationError("every pair is of one family, which cannot be both trained on and held out; add more sources")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError(f"{folder} is not empty; name another folder")
    model = _opened(find_model(base, None).path, chosen, device)
    with TemporaryDirectory() as checkpoints:
        loss = _train(model, trained, judged, chosen, checkpoints)
    model.save_pretrained(str(folder), create_model_card=False)
    return TrainingReport(len(trained), len(judged), loss)


def held_out_families(pairs: Sequence[JudgedPair], share: float, seed: int) -> set[str]:
    """Return families that are held out for validation, the same share of each collection's, drawn by the seed."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        families[pair.collection].add(pair.family)
    kept: set[str] = set()
    for collection, members in sorted(families.items()):
        order = sorted(members)
        random.Random(f"{seed}/{collection}").shuffle(order)  # noqa: S311  # nothing secret is drawn
        kept |= set(order[: max(1, round(share * len(order)))])
    return kept


def _rows(pairs: Sequence[JudgedPair], settings: TrainingSettings) -> list[dict[str, Any]]:
    return [
        {
            "claim": pair.claim[:_LONGEST_CLAIM],
            "windows": [
                pair.passage[slice(*span)]
                for span in nearest_windows(
                    pair.claim, pair.passage, settings.window_size, settings.windows, deciding=pair.rationale
                )
            ],
            "label": _NUMBERS[pair.label],
        }
        for pair in pairs
    ]


def _opened(folder: Path, settings: TrainingSettings, device: str | None) -> Any:
    """Return the base model with a new layer for the labels."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(settings.seed)
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        model = CrossEncoder(
            str(folder),
            num_labels=len(LABELS),
            max_length=settings.max_length,
            device=device,
            **options,
            # a base with other labels, or one score, gets a new layer; weights that are stored in 16 bits do not train
            model_kwargs={"ignore_mismatched_sizes": True, "torch_dtype": torch.float32},
        )
    except Exception as error:
        raise ModelError(f"{folder} does not load as a model to fine-tune: {first_line(error)}") from error
    model.config.id2label = dict(enumerate(LABELS))
    model.config.label2id = {label: number for number, label in enumerate(LABELS)}
    for parameter in model.model.get_input_embeddings().parameters():
        parameter.requires_grad = False  # half of a small model's parameters, and rare words are too rare to learn
    return model


def _train(
    model: Any, trained: Sequence[JudgedPair], judged: Sequence[JudgedPair], settings: TrainingSettings, checkpoints: str
) -> float:
    """Train the model, and return its loss on the held-out pairs."""
    try:
        from accelerate import Accelerator  # noqa: F401  # the trainer needs it, and says so less clearly
        from datasets import Dataset
    except ImportError:
        raise DependencyError(f"training a verifier needs accelerate and datasets: {install('training')}") from None
    from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments

    arguments = CrossEncoderTrainingArguments(
        output_dir=checkpoints,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        warmup_steps=0.1,
        weight_decay=0.01,
        bf16=settings.precision == "bfloat16",
        use_cpu=model.device.type == "cpu",
        seed=settings.seed,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        logging_strategy="no",
        report_to="none",
    )
    trainer = CrossEncoderTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(_rows(trained, settings)),
        eval_dataset=Dataset.from_list(_rows(judged, settings)),
        loss=_window_loss(model),
    )
    trainer.train()
    return float(trainer.state.best_metric)


def _window_loss(model: Any) -> Any:
    """Return the loss of claims beside windows that are judged together; only "not support" may be known of a label."""
    import torch
    from sentence_transformers.util import batch_to_device

    class WindowLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: Sequence[Any], labels: torch.Tensor, **_: object) -> torch.Tensor:
            claims, windows = inputs
            tokens = self.model.preprocess(
                [(c, window) for c, several in zip(claims, windows, strict=True) for window in several]
            )
            scores = self.model(batch_to_device(tokens, self.model.device))["scores"].float()
            example = torch.repeat_interleave(
                torch.arange(len(claims), device=scores.device), torch.tensor(list(map(len, windows)), device=scores.device)
            )
            against = scores[:, :2] - scores[:, 2:]
            pooled = against.new_full((len(claims), 2), -math.inf)
            pooled = pooled.scatter_reduce(0, example[:, None].expand(-1, 2), against, "amax", include_self=True)
            logs = torch.log_softmax(torch.cat([pooled, pooled.new_zeros(len(claims), 1)], dim=1), dim=1)
            logs = torch.cat([logs, torch.logsumexp(logs[:, 1:], dim=1, keepdim=True)], dim=1)
            return -logs.gather(1, labels.view(-1, 1)).mean()

    return WindowLoss()
