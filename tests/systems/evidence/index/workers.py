"""A process that adds sources, or builds after each: ``python workers.py TASK PROJECT NAME COUNT``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from nlp_retrieval.errors import RetrievalWarning
from systems.evidence.index.sources import lexical

if __name__ == "__main__":
    warnings.simplefilter("ignore", RetrievalWarning)
    task, project, name, count = sys.argv[1:]
    index = lexical(Path(project))
    for number in range(int(count)):
        index.add_document(f"Text {number} of {name}.", f"https://{name}.example/{number}")
        if task == "add":
            index.add_document(f"Shared text {number}.", f"https://{name}.example/shared/{number}")
            continue
