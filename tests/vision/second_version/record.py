"""Asks torchvision, where it is installed: `python -m tests.vision.second_version.record` writes recorded.json, which the tests hold ours against."""

from __future__ import annotations

import json
from pathlib import Path

from tests.vision.second_version.listed import cases, make_inputs, run

FILE = Path(__file__).with_name("recorded.json")


def main() -> None:
    import PIL.Image
    import torch
    import torchvision
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional

    inputs = make_inputs(torch.from_numpy, tv_tensors, functional, PIL.Image.fromarray)
    rows = []
    for call, name in cases(list(inputs)):
        found = run(call, inputs[name], functional, torch)
        rows.append(json.dumps([call, name, found[:2] if isinstance(found, list) and found[:1] == ["raises"] else found]))
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} calls of torchvision {torchvision.__version__}")


if __name__ == "__main__":
    main()
