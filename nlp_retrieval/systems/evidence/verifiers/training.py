"""Fine-tuning a small pair model on judged claims, by the trainer of sentence-transformers.

The windows of a passage are judged together: the evidence for "support" is the strongest of any window, and likewise for
"contradict" (multiple-instance learning: only the passage has a label).
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nlp_retrieval.encoders import find_model, require_dense_extra, require_device
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, first_line, install
from nlp_retrieval.systems.evidence.verifiers.base import nearest_windows
from nlp_retrieval.systems.evidence.verifiers.fitting import JudgedPair

if TYPE_CHECKING:
    import torch

LABELS = ("support", "contradict", "neutral")
"""Labels of a trained model, in order."""

_NUMBERS = {"support": 0, "contradict": 1, "neutral": 2, "not_support": 3}
_LONGEST_CLAIM, _MAX_LENGTH, _WINDOWS, _WINDOW = 1000, 160, 2, 330
_HELD_OUT, _BATCH = 0.09, 16


def train_verifier(
    pairs: Sequence[JudgedPair],
    base: str,
    output: str | Path,
    *,
    epochs: int = 3,
    learning_rate: float = 1.2e-4,
    device: str | None = None,
) -> tuple[int, int, float]:
    """Fine-tune a small pair model; return the numbers of trained and of held-out pairs, and the least loss on these."""
    require_dense_extra()
    require_device(device)
    folder = Path(output)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigurationError(f"{folder} is not empty; name another folder")
    held_out = _held_out_families(pairs)
    trained, judged = [p for p in pairs if p.family not in held_out], [p for p in pairs if p.family in held_out]
    if not trained:
        raise ConfigurationError("there are pairs of one family at most, which is held out; add pairs of other sources")
    model = _opened(find_model(base, None).path, device)
    with TemporaryDirectory() as checkpoints:
        arguments = {"output_dir": checkpoints, "num_train_epochs": epochs, "learning_rate": learning_rate}
        loss = _train(model, trained, judged, arguments)
    model.save_pretrained(str(folder), create_model_card=False)
    return len(trained), len(judged), loss


def _held_out_families(pairs: Sequence[JudgedPair]) -> set[str]:
    """Return families that are held out for validation, the same share of each collection's."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        families[pair.collection].add(pair.family)
    kept: set[str] = set()
    for collection, members in sorted(families.items()):
        order = sorted(members)
        random.Random(f"0/{collection}").shuffle(order)  # noqa: S311  # nothing secret is drawn
        kept |= set(order[: max(1, round(_HELD_OUT * len(order)))])
    return kept


def _row(pair: JudgedPair) -> dict[str, Any]:
    spans = nearest_windows(pair.claim, pair.passage, _WINDOW, _WINDOWS)
    windows = [pair.passage[slice(*span)] for span in spans]
    return {"claim": pair.claim[:_LONGEST_CLAIM], "windows": windows, "label": _NUMBERS[pair.label]}


def _opened(folder: Path, device: str | None) -> Any:
    """Return the base model with a new layer for the labels."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(0)
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        model = CrossEncoder(
            str(folder),
            num_labels=len(LABELS),
            max_length=_MAX_LENGTH,
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


def _train(model: Any, trained: Sequence[JudgedPair], judged: Sequence[JudgedPair], arguments: dict[str, Any]) -> float:
    """Train the model, and return its loss on the held-out pairs."""
    try:
        from accelerate import Accelerator  # noqa: F401  # the trainer needs it, and says so less clearly
        from datasets import Dataset
    except ImportError:
        raise DependencyError(f"training a verifier needs accelerate and datasets: {install('training')}") from None
    from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments

    settings = CrossEncoderTrainingArguments(
        **arguments,
        per_device_train_batch_size=_BATCH,
        per_device_eval_batch_size=_BATCH,
        warmup_steps=0.1,
        weight_decay=0.01,
        use_cpu=model.device.type == "cpu",
        seed=0,
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
        args=settings,
        train_dataset=Dataset.from_list(list(map(_row, trained))),
        eval_dataset=Dataset.from_list(list(map(_row, judged))),
        loss=_window_loss(model),
    )
    trainer.train()
    return float(trainer.state.best_metric or 0.0)


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
