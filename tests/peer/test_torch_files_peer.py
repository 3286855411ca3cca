"""PyTorch's files, both ways, in its layouts of 2.13, of 1.6 to 2.0 and of before: models, optimizers, schedules, views, every type."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from bench.cpu.train import gpt, lenet, resnet18
from tests.io.record import objects, old_layout
from tests.peer.test_state_dicts_peer import bidirectional, encoder, generator, gru, unet

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore:enable_nested_tensor")]


def alexnet(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(12, 6),
        nn.Linear(6, 4),
    )


def vgg(t: Any) -> Any:
    layers, channels = [], 3
    for width in (4, "M", 8, 8, "M"):
        layers += (
            [t.nn.MaxPool2d(2)] if width == "M" else [t.nn.Conv2d(channels, width, 3, padding=1), t.nn.BatchNorm2d(width), t.nn.ReLU(True)]
        )
        channels = channels if width == "M" else width
    return t.nn.ModuleDict({"features": t.nn.Sequential(*layers), "classifier": t.nn.Linear(8, 3)})


def tied(t: Any) -> Any:
    """A language model whose head is its embedding."""
    model = t.nn.ModuleDict({"embed": t.nn.Embedding(11, 6), "body": t.nn.GRU(6, 6), "head": t.nn.Linear(6, 11, bias=False)})
    model["head"].weight = model["embed"].weight
    return model


def bag(t: Any) -> Any:
    return t.nn.ModuleDict({"bag": t.nn.EmbeddingBag(9, 4, mode="sum"), "norm": t.nn.LayerNorm(4), "one": t.nn.PReLU()})


MODELS: list[Callable[[Any], Any]] = [lenet, alexnet, resnet18, vgg, bidirectional, gru, encoder, gpt, tied, unet, bag, generator]
LAYOUTS = ("2.13", "1.13", "legacy")


def written(obj: Any, layout: str, path: Path) -> Path:
    """A file of torch.save in a layout."""
    torch.save(obj, path, _use_new_zipfile_serialization=layout != "legacy")
    if layout == "1.13":
        old_layout(path)
    return path


def same(theirs: Any, ours: Any, where: str = "") -> None:
    """The same values, types, shapes, strides, requires_grad, order and structure; `ours` of either library."""
    if isinstance(theirs, torch.Tensor):
        assert type(theirs).__name__ == type(ours).__name__, where
        assert str(theirs.dtype).split(".")[1] == str(ours.dtype).split(".")[1], where
        assert (tuple(theirs.shape), theirs.requires_grad) == (tuple(ours.shape), ours.requires_grad), where
        if theirs.numel():
            assert theirs.stride() == ours.stride(), where
        raw = theirs.detach().resolve_conj().contiguous().view(torch.uint8).numpy() if theirs.dim() else None
        if raw is not None and not isinstance(ours, torch.Tensor):
            np.testing.assert_array_equal(np.ascontiguousarray(ours.detach().numpy()).view(np.uint8), raw, err_msg=where)
        elif isinstance(ours, torch.Tensor) and theirs.dim():
            np.testing.assert_array_equal(ours.detach().resolve_conj().contiguous().view(torch.uint8).numpy(), raw, err_msg=where)
        else:
            assert theirs.item() == ours.item(), where
    elif isinstance(theirs, dict):
        assert type(theirs) is type(ours), where
        assert list(theirs) == list(ours), where
        for k in theirs:
            same(theirs[k], ours[k], f"{where}.{k}")
        if hasattr(theirs, "_metadata"):
            assert theirs._metadata == ours._metadata, where
    elif type(theirs) in (list, tuple):
        assert type(theirs) is type(ours), where
        assert len(theirs) == len(ours), where
        for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            same(a, b, f"{where}.{i}")
    elif isinstance(theirs, torch.dtype | torch.device | torch.Size):
        assert repr(theirs).removeprefix("torch.") == repr(ours).removeprefix("torch.").removeprefix("tritensor."), where
    else:
        assert type(theirs) is type(ours), where
        assert theirs == ours, where


def shared(obj: Any, out: dict[int, list[str]] | None = None, where: str = "") -> list[list[str]]:
    """Which tensors share memory, by where they stand."""
    found: dict[int, list[str]] = {} if out is None else out
    if isinstance(obj, torch.Tensor | tt.Tensor):
        if obj.numel():
            found.setdefault(obj.untyped_storage().data_ptr(), []).append(where)
    elif isinstance(obj, dict):
        for k, v in obj.items():
            shared(v, found, f"{where}.{k}")
    return sorted(found.values())


def back(ours: Any, path: Path, layout: str) -> Any:
    """What PyTorch makes of it when it is saved here."""
    tt.save(ours, path, _use_new_zipfile_serialization=layout != "legacy")
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", MODELS, ids=lambda f: f.__name__)
def test_state_dicts_go_there_and_back(make: Callable[[Any], Any], layout: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = make(torch)
    state = theirs.state_dict()
    found = tt.load(written(state, layout, tmp_path / "model.pt"))
    same(state, found)
    assert shared(state) == shared(found)
    again = back(found, tmp_path / "ours.pt", layout)
    same(state, again)
    assert shared(state) == shared(again)
    ours = make(tt)
    ours.load_state_dict(found)
    same(state, back(ours.state_dict(), tmp_path / "ours.pt", layout))
    theirs.load_state_dict(torch.load(tmp_path / "ours.pt", weights_only=True))
    assert torch.load(tmp_path / "ours.pt", weights_only=True, map_location="cpu", mmap=layout != "legacy" or None) is not None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["state", "training", "views", "types", "new_types", "values"])
def test_recorded_objects(name: str, layout: str, tmp_path: Path) -> None:
    obj = objects(torch)[name]
    if (name, layout) == ("new_types", "legacy"):
        pytest.skip("PyTorch itself cannot read these types in that layout")
    found = tt.load(written(obj, layout, tmp_path / "theirs.pt"))
    if name == "types":
        assert found["conjugate"].tolist() == obj["conjugate"].tolist()
    same(obj, found)
    same(obj, back(found, tmp_path / "ours.pt", layout))
    assert shared(obj) == shared(found)


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "Adam": {"amsgrad": True}, "AdamW": {"weight_decay": 0.1}, "NAdam": {}, "RAdam": {}, "Adamax": {},
    "Adagrad": {"lr_decay": 0.01}, "Adadelta": {}, "RMSprop": {"momentum": 0.5, "centered": True}, "Rprop": {}, "ASGD": {}, "LBFGS": {"lr": 0.1}, "Adafactor": {},
}  # fmt: skip
SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, 2), "MultiStepLR": lambda s, o: s.MultiStepLR(o, [1, 3]), "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 10), "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.2, total_steps=20), "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1),
    "LinearLR": lambda s, o: s.LinearLR(o), "PolynomialLR": lambda s, o: s.PolynomialLR(o), "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o), s.StepLR(o, 3)], [2]), "LambdaLR": lambda s, o: s.LambdaLR(o, lambda n: 0.9**n),
}  # fmt: skip


def steps(t: Any, model: Any, optimizer: Any, n: int, schedule: Any = None) -> None:
    x = t.tensor(np.linspace(-1, 1, 12).reshape(4, 3)).double()

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    for i in range(n):
        optimizer.step(closure)
        if schedule is not None:
            schedule.step(*([1.0 + i] if type(schedule).__name__ == "ReduceLROnPlateau" else []))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_go_on(name: str, layout: str, tmp_path: Path) -> None:
    """A training of PyTorch's, saved, goes on here to the same parameters; saved here, it goes on there."""

    def fresh(t: Any) -> tuple[Any, Any]:
        model = t.nn.Linear(3, 2).double()
        return model, getattr(t.optim, name)(model.parameters(), **OPTIMIZERS[name])

    torch.manual_seed(0)
    model, optimizer = fresh(torch)
    steps(torch, model, optimizer, 3)
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    found = tt.load(written(saved, layout, tmp_path / "theirs.pt"))
    same(saved, found)
    same(saved, back(found, tmp_path / "back.pt", layout))
    ours, our_optimizer = fresh(tt)
    ours.load_state_dict(found["model"])
    our_optimizer.load_state_dict(found["optimizer"])
    there = back({"model": ours.state_dict(), "optimizer": our_optimizer.state_dict()}, tmp_path / "ours.pt", layout)
    again, again_optimizer = fresh(torch)
    again.load_state_dict(there["model"])
    again_optimizer.load_state_dict(there["optimizer"])
    for t, m, o in ((torch, model, optimizer), (tt, ours, our_optimizer), (torch, again, again_optimizer)):
        steps(t, m, o, 2)
    rtol = 1e-8 if name == "NAdam" else 1e-10  # PyTorch keeps NAdam's product of momenta in float32
    for other in (ours, again):
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=rtol)


@pytest.mark.parametrize("layout", ["2.13", "legacy"])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore")
def test_schedules_go_on(name: str, layout: str, tmp_path: Path) -> None:
    def fresh(t: Any) -> tuple[Any, Any, Any]:
        model = t.nn.Linear(3, 2).double()
        optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return model, optimizer, SCHEDULES[name](t.optim.lr_scheduler, optimizer)

    model, optimizer, schedule = fresh(torch)
    steps(torch, model, optimizer, 3, schedule)
    saved = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
    found = tt.load(written(saved, layout, tmp_path / "theirs.pt"))
    same(saved, found)
    ours, our_optimizer, our_schedule = fresh(tt)
    our_optimizer.load_state_dict(found["optimizer"])
    our_schedule.load_state_dict(found["schedule"])
    there = back({"optimizer": our_optimizer.state_dict(), "schedule": our_schedule.state_dict()}, tmp_path / "ours.pt", layout)
    again, again_optimizer, again_schedule = fresh(torch)
    again_optimizer.load_state_dict(there["optimizer"])
    again_schedule.load_state_dict(there["schedule"])
    for _ in range(4):
        for t, m, o, s in (
            (torch, model, optimizer, schedule),
            (tt, ours, our_optimizer, our_schedule),
            (torch, again, again_optimizer, again_schedule),
        ):
            steps(t, m, o, 1, s)
        rates = [o.param_groups[0]["lr"] for o in (optimizer, our_optimizer, again_optimizer)]
        assert rates == pytest.approx([rates[0]] * 3, rel=1e-12)


def test_the_layout_is_pytorchs_byte_for_byte(tmp_path: Path) -> None:
    """Of files that hold the same, all but the number that PyTorch gives each file of its own."""
    for name, obj in objects(torch).items():
        torch.save(obj, tmp_path / "a.pt")
        tt.save(tt.load(tmp_path / "a.pt"), tmp_path / "b.pt")
        with zipfile.ZipFile(tmp_path / "a.pt") as a, zipfile.ZipFile(tmp_path / "b.pt") as b:
            pairs = list(zip(a.infolist(), b.infolist(), strict=True))
            if name in ("types", "values"):  # conjugates are resolved here; equal strings are not one string again
                continue
            for one, other in pairs:
                assert (one.filename[1:], one.header_offset, one.file_size) == (other.filename[1:], other.header_offset, other.file_size), (
                    name
                )


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol: int) -> None:
    obj = objects(torch)["values"] | {"t": torch.ones(2), "p": torch.nn.Parameter(torch.ones(1))}
    file = io.BytesIO()
    torch.save(obj, file, pickle_protocol=protocol)
    file.seek(0)
    same(obj, tt.load(file))
    if protocol == 2:
        out = io.BytesIO()
        tt.save(tt.load(io.BytesIO(file.getvalue())), out)
        out.seek(0)
        same(obj, torch.load(out, weights_only=True))


@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_by_name() -> None:
    for obj, said in (
        (torch.eye(3).to_sparse(), "holds a sparse tensor"),
        (torch.eye(3).to_sparse_csr(), "holds a sparse tensor"),
        (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "quantized tensor|QInt8Storage"),
        (torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "holds a nested tensor"),
        (torch.ones(2, dtype=torch.complex32), "torch.complex32, of a type that tensors here cannot hold"),
        (torch.ones(2).to(torch.float8_e8m0fnu), "torch.float8_e8m0fnu, of a type that tensors here cannot hold"),
        (torch.distributions.Normal(0, 1), "wants torch.distributions.normal.Normal, which is no plain value"),
    ):
        file = io.BytesIO()
        torch.save({"x": obj}, file)
        file.seek(0)
        with pytest.raises(tt.CheckpointError, match=f"BytesIO: .*({said})"):
            tt.load(file)


def test_unsafe_names_are_those_that_pytorch_tells(tmp_path: Path) -> None:
    for obj in ({"a": torch.ones(1)}, {"n": torch.distributions.Normal(0, 1), "d": torch.nn.Linear(1, 1)}, [io.BytesIO, print]):
        torch.save(obj, tmp_path / "x.pt")
        ours = tt.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt")
        theirs = torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt")
        assert {n.removeprefix("builtins.") for n in ours} == {n.removeprefix("__builtin__.").removeprefix("builtins.") for n in theirs}


@pytest.mark.parametrize("make", [lenet, alexnet, bidirectional, gru, encoder, vgg, tied, bag], ids=lambda f: f.__name__)
def test_whole_modules(make: Callable[[Any], Any], tmp_path: Path) -> None:
    module = make(torch).eval()
    torch.save(module, tmp_path / "m.pt")
    found = tt.load(tmp_path / "m.pt", weights_only=False)
    assert repr(found) == repr(module)
    same(module.state_dict(), back(found.state_dict(), tmp_path / "s.pt", "2.13"))
    found.load_state_dict(make(tt).state_dict())


def test_views_alone_are_written_alone(tmp_path: Path) -> None:
    big = tt.arange(10_000.0).reshape(100, 100)
    for view in (big[3], big[:, 5], big[::7], big.T, big[:1].expand(4, 100), big.permute(1, 0)[2:5]):
        tt.save({"v": view}, tmp_path / "x.pt")
        found = torch.load(tmp_path / "x.pt", weights_only=True)["v"]
        np.testing.assert_array_equal(found.numpy(), view.numpy())
        assert found.untyped_storage().nbytes() <= view.nbytes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt.save({"v": big[::-1]}, tmp_path / "x.pt")
    np.testing.assert_array_equal(torch.load(tmp_path / "x.pt", weights_only=True)["v"].numpy(), big.numpy()[::-1])
