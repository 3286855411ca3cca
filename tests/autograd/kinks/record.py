"""Recorder of PyTorch's derivatives at kinks, where PyTorch is installed: `python -m tests.autograd.kinks.record`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.autograd.kinks.functions import CASES, Case, derivatives

RECORDED = Path(__file__).with_name("recorded.json")


def number(x: float) -> Any:
    """Twelve digits; NaN and infinities as words, which JSON has not."""
    return float(f"{x:.12g}") if abs(x) < float("inf") else str(x)


def known(torch: Any, case: Case) -> list[list[float]]:
    """First and second derivatives; the first alone where PyTorch has no others."""
    try:
        return derivatives(torch, case, torch.float64)
    except RuntimeError:
        return derivatives(torch, case, torch.float64, second=False)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    found = {name: [[number(x) for x in row] for row in known(torch, case)] for name, case in CASES.items()}
    RECORDED.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    main()
