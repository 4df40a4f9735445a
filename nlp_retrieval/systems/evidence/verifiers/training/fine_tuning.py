"""Fine-tuning a small model that reads a claim and a text together, and predicts support, contradict or neutral.

The windows of a passage are judged together: the evidence for "support" is the strongest of any window, and likewise for
"contradict" (multiple-instance learning: only the passage has a label). A stopped run continues from its last checkpoint and
ends with the same model, on the same machine, as an uninterrupted one.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.systems.evidence.verifiers.training.batches import LABELS, Batch

if TYPE_CHECKING:
    import torch

__all__ = ["FineTuning", "TrainingSettings", "pooled_logits"]

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
        plants: the share of supported pairs from which each kind of claim is generated.
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
    plants: float = 0.25
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
                group["lr"] = self.settings.learning_rate * self._warmth()
            loss = self._loss(batches[number])
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
            self._take_into_mean()
            after_step(done)

    def _take_into_mean(self) -> None:
        import torch

        share = max(1 - _KEPT_OF_MEAN, 10 / (10 + self.step))  # the first weights are not yet trained
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.parameters()), list(self.model.parameters()), share)

    def _warmth(self) -> float:
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
        """Return the pooled logits of the mean weights for all examples, ``[examples, 3]``.

        Args:
            batches: of all examples.
            n_examples: their number.
        """
        import torch

        found = np.zeros((n_examples, len(LABELS)))
        with torch.inference_mode():
            for batch in batches:
                found[batch.numbers] = self._logits(self.mean, batch).cpu().numpy()
        return found

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
        """Restore a checkpoint.

        Args:
            tensors: as returned by :meth:`tensors`.
            step: number of steps until then.
        """
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
