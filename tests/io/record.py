"""Files of torch.save for the tests that have no PyTorch beside them: `python -m tests.io.record`, where PyTorch is installed, writes them anew."""

from __future__ import annotations

import warnings
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "torch_files"


def objects(torch: Any) -> dict[str, Any]:
    """What the files hold, by name; everything follows from small numbers, so that tests can say it again."""
    base = torch.arange(12.0)
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).reshape(2, 3))
        layer.bias.fill_(0.5)
    layer.register_buffer("count", torch.tensor(3))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    return {
        "state": layer.state_dict(),
        "training": {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": 3, "best": 0.25},
        "views": {
            "base": base, "part": base[2:7], "columns": base.reshape(3, 4).t(), "step": base[1::3], "spread": base[:1].expand(3, 2),
            "again": base, "empty": torch.empty(0, 3), "number": torch.tensor(2.5),
        },
        "types": {
            **{str(d).removeprefix("torch."): torch.tensor([0, 1, 2]).to(d) for d in (
                torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
                torch.float64, torch.complex64, torch.complex128)},
            "parameter": torch.nn.Parameter(torch.ones(2)), "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
            "asks": torch.ones(2, requires_grad=True), "conjugate": torch.tensor([1 + 2j]).conj(),
        },
        "new_types": {str(d).removeprefix("torch."): torch.tensor([0, 1, 2]).to(d) for d in (
            torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2)},
        "values": {
            "none": None, "yes": True, "int": 2**80, "float": -0.5, "text": "\u00e4", "bytes": b"\xff\x00", "array": bytearray(b"ab"), "complex": 1j,
            "tuple": (1, (2,)), "list": [1, [2]], "set": {1, 2}, "ordered": OrderedDict(a=1), "counter": Counter("aab"),
            "size": torch.Size([2, 3]), "device": torch.device("cuda", 1), "dtype": torch.bfloat16,
        },
    }  # fmt: skip


def old_layout(path: Path) -> None:
    """Rewrite an archive as PyTorch 1.6 to 2.0 wrote it: data.pkl, the storages, version; no order of bytes, no alignment, no number of its own."""
    from tritensor.io.torch_format.writing import ArchiveWriter

    with zipfile.ZipFile(path) as archive:
        folder = archive.namelist()[0].split("/")[0]
        names = [n.removeprefix(folder + "/") for n in archive.namelist()]
        records = {n: archive.read(f"{folder}/{n}") for n in names if n in ("data.pkl", "version") or n.startswith("data/")}
    with open(path, "wb") as file:
        writer = ArchiveWriter(file, folder)
        for name, data in records.items():
            writer.add(name, memoryview(data))
        writer.end()


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for name, obj in objects(torch).items():
        torch.save(obj, FOLDER / f"{name}.pt")
        if name == "new_types":
            continue
        torch.save(obj, FOLDER / f"{name}_legacy.pt", _use_new_zipfile_serialization=False)
        torch.save(obj, FOLDER / f"{name}_old.pt")
        old_layout(FOLDER / f"{name}_old.pt")
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval(), FOLDER / "module.pt")


if __name__ == "__main__":
    main()
