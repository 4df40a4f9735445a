"""``python -m bench.evidence.split DATA OUTPUT [MOST]``: the training parts without the families of the audit.

MOST limits the pairs of each set, drawn by a seed, for a shorter training.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Write ``OUTPUT/<set>/train.jsonl`` for each set of DATA that has a training part."""
    if len(arguments) not in (2, 3):
        print("usage: python -m bench.evidence.split DATA OUTPUT [MOST]")
        return 2
    data, output = map(Path, arguments[:2])
    most = int(arguments[2]) if len(arguments) > 2 else None
    families = {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    for file in sorted(data.glob("*/train.jsonl.gz")):
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        kept = [line for line in lines if line.strip() and json.loads(line)["family"] not in families]
        if most is not None and len(kept) > most:
            kept = random.Random(0).sample(kept, most)
        folder = output / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.jsonl").write_text("\n".join(kept) + "\n", "utf-8")
        print(f"{file.parent.name}: {len(kept):,} of {len(lines):,} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
