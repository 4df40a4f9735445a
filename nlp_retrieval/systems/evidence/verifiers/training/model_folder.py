"""The folder of a model that is trained: what it begins with, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nlp_retrieval.core import write_atomically
from nlp_retrieval.errors import ModelError, first_line
from nlp_retrieval.systems.evidence.verifiers.training.batches import LABELS
from nlp_retrieval.systems.evidence.verifiers.training.fine_tuning import FineTuning

__all__ = ["opened_base", "save_model"]


def opened_base(folder: Path, seed: int) -> tuple[Any, Any]:
    """Return the model to begin with, and its tokenizer.

    Args:
        folder: of an encoder of transformers or sentence-transformers.
        seed: of the layer that gives the labels, which is new.

    Raises:
        ModelError: it does not load.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(seed)  # the layer that gives the labels is new
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
                setattr(config, name, 0.0)  # a quarter of a step's time on a processor goes into drawing it
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            config=config,
            ignore_mismatched_sizes=True,  # a base that gave other labels, or one score, gets a new layer for these
            attn_implementation="eager",  # the fused kernel's way back takes 40% of a step on a processor
            local_files_only=True,
            trust_remote_code=False,
        )
    except Exception as error:
        reason = first_line(error)
        raise ModelError(f"{folder} does not load as a model to fine-tune: {reason}") from error
    for parameter in model.get_input_embeddings().parameters():
        parameter.requires_grad = False  # half of a small model's parameters, and rare words are seen too seldom to learn
    return model, tokenizer


def save_model(folder: Path, tuning: FineTuning, temperature: float) -> None:
    """Write the mean of a model as it was judged.

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
