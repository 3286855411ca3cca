"""torchaudio's answers to tests/audio/cases.py: `python -m tests.audio.record`, where it and PyTorch are installed, writes recorded.json."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from tests.audio.cases import CASES, figures, given

FILE = Path(__file__).with_name("recorded.json")


def main() -> None:
    import torch
    import torchaudio  # type: ignore[import-not-found]

    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"torch": torch.__version__.partition("+")[0], "torchaudio": torchaudio.__version__.partition("+")[0]}
    for case in CASES:
        names = {"torch": torch, "T": torchaudio.transforms, "F": torchaudio.functional, **given(torch)}
        found[case] = figures(torch, eval(case, names))
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    main()
