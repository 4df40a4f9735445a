"""What runs the cells of a notebook, as a kernel does: IPython's shell, without the user's own settings and history."""

from __future__ import annotations

from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


def own_shell(folder: Path) -> InteractiveShell:
    """Return a shell that writes into an empty folder alone."""
    config = Config({"HistoryManager": {"enabled": False, "hist_file": ":memory:"}})
    return InteractiveShell(config=config, colors="nocolor", ipython_dir=str(folder))
