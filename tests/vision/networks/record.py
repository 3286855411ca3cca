"""Asks torchvision, where it is installed: `python -m tests.vision.networks.record` writes recorded.json, which the tests hold ours against."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from tests.vision.networks.listed import NAMES, SEGMENTATION, computed, named, small_networks, without_weights

FILE = Path(__file__).with_name("recorded.json")


def main() -> None:
    import torch
    import torchvision
    from torchvision import models
    from torchvision.models.segmentation import deeplabv3

    found = {}
    for name in [*NAMES, *SEGMENTATION]:
        with torch.device("cpu" if name.startswith("regnet") else "meta"):
            found[name] = named(models.get_model(name, **without_weights(name)))
        weights = models.get_model_weights(name)
        found[name] += [[w.name, w.url.rpartition("/")[2], w.meta["num_params"], w.meta["min_size"][0]] for w in weights]
    for name, make in small_networks(SimpleNamespace(**vars(models) | {"segmentation": deeplabv3}), torch.nn).items():
        network = make()
        found[name] = [*named(network), computed(torch, network)]
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in found.items()) + "\n}\n")
    print(f"{len(found)} networks of torchvision {torchvision.__version__}")


if __name__ == "__main__":
    main()
