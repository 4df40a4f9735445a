"""``python -m bench.evidence.split DATA OUTPUT``: the training parts without the families of the audit."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Write ``OUTPUT/<set>/train.jsonl`` for each set of DATA that has a training part."""
    if len(arguments) != 2:
        print("usage: python -m bench.evidence.split DATA OUTPUT")
        return 2
    data, output = map(Path, arguments)
    families = {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    for file in sorted(data.glob("*/train.jsonl.gz")):
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        kept = [line for line in lines if line.strip() and json.loads(line)["family"] not in families]
        folder = output / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.jsonl").write_text("\n".join(kept) + "\n", "utf-8")
        print(f"{file.parent.name}: {len(kept):,} of {len(lines):,} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
