"""Whether Weights & Biases can be logged to as it is asked for: told before there is anything to log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from nlp_retrieval.benchmarks.settings import WandbMode, WandbSettings
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, OutputError, first_line, install
from nlp_retrieval.reports.tracking.run_logger import is_reachable


def mode_of(settings: WandbSettings) -> tuple[WandbMode, str]:
    """Return in which mode runs are logged, and why, in half a sentence.

    Raises:
        DependencyError: wandb is not installed.
        ConfigurationError: online and without an API key, or a name that Weights & Biases does not take.
        OutputError: online, and the server cannot be reached.
    """
    try:
        import wandb
    except ImportError:
        raise DependencyError(f"logging to Weights & Biases needs wandb: {install('wandb')}") from None
    try:
        wandb.Settings(project=settings.project, entity=settings.entity, run_group=settings.group)
    except (wandb.errors.UsageError, ValueError) as error:
        raise ConfigurationError(f"wandb: {first_line(error)}; choose another name") from None
    if settings.mode == "offline":
        return "offline", "offline, as asked for"
    with quiet():
        has_key = bool(wandb.api.api_key)
    if not has_key:
        if settings.mode == "online":
            raise ConfigurationError(
                "wandb.mode is online, and no API key is configured; run wandb login, set WANDB_API_KEY, or write mode: offline"
            )
        return "offline", "no API key is configured"
    with quiet():
        address = str(wandb.setup().settings.base_url)
    server = without_secrets(address)
    if is_reachable(address):
        return "online", f"online, at {server}"
    if settings.mode == "online":
        raise OutputError(f"wandb.mode is online, and {server} cannot be reached; check the network, or write mode: offline")
    return "offline", f"{server} cannot be reached"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep wandb from writing to the terminal while the block runs."""
    before = os.environ.get("WANDB_SILENT")
    os.environ["WANDB_SILENT"] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ["WANDB_SILENT"]
        else:
            os.environ["WANDB_SILENT"] = before
