"""`python -m tritensor.run`: a script runs as if by itself, its `import torch` is answered, and what is missing is listed with file and line."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.tools import missing_names, run_script
from tritensor.tools.missing_names import find_in_source, first_missing

ROOT = Path(__file__).resolve().parents[2]
# What the script says of itself, without anything of torch.
PLAIN = """
import sys
import helper
print(__name__, __file__, sys.argv, sys.path[0], helper.twice(4), __package__, __spec__, sep="\\n")
def fail(n):
    if n == 0:
        raise KeyError("told by the script")
    fail(n - 1)
if sys.argv[1] == "fail":
    fail(2)
if sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
if sys.argv[1] == "say":
    sys.exit("a word at the end")
"""
MISSING = """import torch
import torch.nn as nn
from torch.nn import functional as F
from torch import sspaddmm as eigen
"""
REACHED = """import torch
from torch.optim.lr_scheduler import StepLR
import numpy
if hasattr(torch, "sspaddmm"):
    print("cannot be")
def later():
    return torch.nn.qat(), torch.package.PackageExporter, numpy.nothing_at_all
print(torch.__version__, torch.version.__version__, torch.Tensor.__name__)
x = torch.ones(3)
try:
    x.to_mkldnn()
except AttributeError:
    pass
try:
    import torchvision_of_another_name
except ImportError as error:
    print(error)
import torch.distributed.pipelining
"""


def ran(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "helper.py").write_text("def twice(x): return 2 * x\n")
    (tmp_path / "missing.py").write_text(MISSING)
    (tmp_path / "reached.py").write_text(REACHED)
    return tmp_path


@pytest.mark.parametrize("arguments", [["ok"], ["fail"], ["exit", "3"], ["say"]])
def test_a_script_runs_as_by_itself(folder: Path, arguments: list[str]) -> None:
    alone, through = ran("plain.py", *arguments, cwd=folder), ran("-m", "tritensor.run", "plain.py", *arguments, cwd=folder)
    assert through.returncode == alone.returncode
    assert through.stdout == alone.stdout
    assert through.stderr == alone.stderr


def test_a_module_runs_as_by_itself(folder: Path) -> None:
    (folder / "module.py").write_text("import sys\nprint(__name__, __file__, sys.argv, sys.path[0], __spec__.name)\n1 / 0\n")
    alone, through = ran("-m", "module", "a", cwd=folder), ran("-m", "tritensor.run", "-m", "module", "a", cwd=folder)
    assert (through.returncode, through.stdout) == (alone.returncode, alone.stdout)
    assert through.stderr.splitlines()[-4:] == alone.stderr.splitlines()[-4:]


def test_what_stops_the_script_is_listed(folder: Path) -> None:
    done = ran("-m", "tritensor.run", "missing.py", cwd=folder)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert any(line.startswith("ImportError: module 'tritensor' has no attribute 'sspaddmm': torch 2.13 has it") for line in lines)
    assert lines[-2:] == ["tritensor.run: 1 name of torch that tritensor has not:", "  missing.py:4: torch.sspaddmm"]


def test_what_was_asked_and_what_was_not_reached_is_listed(folder: Path) -> None:
    done = ran("-m", "tritensor.run", "reached.py", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["2.13.0+tritensor 2.13.0+tritensor Tensor", "No module named 'torchvision_of_another_name'"]
    assert "ModuleNotFoundError: No module named 'torch.distributed.pipelining': not in tritensor" in done.stderr
    listed = done.stderr.splitlines()[done.stderr.splitlines().index("tritensor.run: 5 names of torch that tritensor has not:") + 1 :]
    assert listed == [
        "  reached.py:4: torch.sspaddmm",
        "  reached.py:7: torch.nn.qat (not reached)",
        "  reached.py:7: torch.package (not reached)",
        "  reached.py:11: torch.Tensor.to_mkldnn",
        "  reached.py:18: torch.distributed.pipelining",
    ]


def test_an_installed_torch_is_never_loaded(folder: Path) -> None:
    (folder / "torch.py").write_text("raise SystemExit('the other torch was loaded')\n")
    (folder / "asks.py").write_text(
        "import torch, torch.utils.data, sys\nprint(torch.ones(1).item(), [n for n in sys.modules if n == 'torch'])\n"
    )
    done = ran("-m", "tritensor.run", "asks.py", cwd=folder)
    assert (done.stdout, done.stderr, done.returncode) == ("1.0 ['torch']\n", "", 0)


def test_the_installed_version_is_what_the_module_says(folder: Path) -> None:
    """Packages choose by `importlib.metadata.version("torch")` before they import it."""
    (folder / "asks.py").write_text(
        "from importlib.metadata import PackageNotFoundError, distribution, distributions, version\n"
        "import torch\nprint(version('torch') == torch.__version__, version('Torchvision'), version('torchaudio'), distribution('torch').files)\n"
        "print([d.metadata['Name'] for d in distributions() if d.metadata['Name'].startswith('torch')][:2], version('numpy') != '')\n"
        "try:\n    version('torchtext')\nexcept PackageNotFoundError as error:\n    print(error)\n"
    )
    done = ran("-m", "tritensor.run", "asks.py", cwd=folder)
    told = ["True 0.28.0+tritensor 2.11.0+tritensor None", "['torch', 'torchvision'] True", "No package metadata was found for torchtext"]
    assert (done.stdout.splitlines(), done.stderr) == (told, "")


def test_safetensors_own_reader_reads(folder: Path) -> None:
    (folder / "reads.py").write_text(
        "import torch\nfrom safetensors import safe_open\nfrom safetensors.torch import load_file, save_file\n"
        "save_file({'a': torch.arange(6.0).view(2, 3), 'b': torch.ones(2, dtype=torch.bfloat16), 'e': torch.ones(0, 2)}, 'x.safetensors')\n"
        "print(sorted(load_file('x.safetensors').items()))\n"
        "with safe_open('x.safetensors', framework='pt') as f:\n    print(f.get_slice('a')[:, 1:], f.get_tensor('e').shape)\n"
    )
    done = ran("-m", "tritensor.run", "reads.py", cwd=folder)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[('a', tensor([[0., 1., 2.],", "        [3., 4., 5.]])), ('b', tensor([1., 1.], dtype=torch.bfloat16)), ('e', tensor([], size=(0, 2)))]",
        "tensor([[1., 2.],", "        [4., 5.]]) torch.Size([0, 2])",
    ]  # fmt: skip


def test_the_command_line(folder: Path) -> None:
    assert ran("-m", "tritensor.run", cwd=folder).returncode == 2
    assert "usage: python -m tritensor.run script.py" in ran("-m", "tritensor.run", "--help", cwd=folder).stdout
    lost = ran("-m", "tritensor.run", "nowhere.py", cwd=folder)
    assert lost.returncode == 2
    assert f"can't open file '{folder / 'nowhere.py'}': [Errno 2] No such file or directory" in lost.stderr


VISION = """import torch, torchvision
import torchvision.transforms as T
import torchvision.transforms.functional as F
from torchvision import datasets, models
from torchvision.transforms import InterpolationMode, v2
import torchvision.transforms.v2.functional as F2
from torchvision.utils import make_grid
torch.manual_seed(0)
data = datasets.FakeData(4, (3, 8, 8), transform=T.Compose([T.RandomCrop(6), T.ToTensor(), T.Normalize((0.5,), (0.5,))]))
x, y = next(iter(torch.utils.data.DataLoader(data, batch_size=4)))
print(torchvision.__version__, make_grid(x).shape, models.resnet18(weights=None, num_classes=3).fc.out_features, F.hflip(x).shape, v2.Resize(4)(x).shape)
print(hasattr(torchvision, "prototype"), torch.hub.list()[0])
try:
    from torchvision.prototype import features
except ImportError as error:
    print(error)
"""


def test_torchvision_is_answered_too_and_an_installed_one_is_never_loaded(folder: Path) -> None:
    (folder / "torchvision.py").write_text("raise SystemExit('the other torchvision was loaded')\n")
    (folder / "vision.py").write_text(VISION)
    done = ran("-m", "tritensor.run", "vision.py", cwd=folder)
    assert done.stdout.splitlines() == [
        "0.28.0+tritensor torch.Size([3, 10, 34]) 3 torch.Size([4, 3, 6, 6]) torch.Size([4, 3, 4, 4])",
        "False alexnet",
        "No module named 'torchvision.prototype': not in tritensor",
    ]
    assert done.stderr.splitlines() == [
        "tritensor.run: 1 name of torch that tritensor has not:",
        "  vision.py:12: torchvision.prototype",
        "  vision.py:14: torchvision.prototype",
    ]
    alone = ran("-c", "import torchvision", cwd=folder)  # and outside of the door it is the other one
    assert "the other torchvision was loaded" in alone.stderr


def test_within_the_door_imports_are_answered_and_after_it_they_are_as_before() -> None:
    before = sys.modules.get("torch")
    with run_script.opened() as missing:
        import torch

        assert torch.nn is sys.modules["tritensor.nn"]
        assert torch.__version__ == "2.13.0+tritensor"
        assert not hasattr(torch, "sspaddmm")
        assert dir(torch) == dir(sys.modules["tritensor"])
    assert [p.name for p in missing] == ["torch.sspaddmm"]
    assert sys.modules.get("torch") is before


def test_types_and_sizes_print_as_the_script_knows_them(folder: Path) -> None:
    """And outside the door under the library's own name."""
    (folder / "shown.py").write_text(
        "import torch\nx = torch.ones(2, 3)\n"
        "print(x.shape, x.half(), x.type(), repr(x.dtype), x.layout, torch.channels_last, str(x.dtype)[6:], x.max(0).__repr__().partition('(')[0])\n"
        "print(torch.nn.ParameterList([x]), torch.distributions.Normal(x, 1.0), x.untyped_storage())\n"
    )
    done = ran("-m", "tritensor.run", "shown.py", cwd=folder)
    assert done.stdout == (
        "torch.Size([2, 3]) tensor([[1., 1., 1.],\n        [1., 1., 1.]], dtype=torch.float16) torch.FloatTensor torch.float32 torch.strided "
        "torch.channels_last float32 torch.return_types.max\n"
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3]) Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])) "
        "[torch.storage.UntypedStorage(device=cpu) of size 24]\n"
    )
    with run_script.opened():
        assert repr(tt.float32) == "torch.float32"
    assert (repr(tt.float32), repr(tt.ones(2).shape)) == ("tritensor.float32", "tritensor.Size([2])")


def test_what_is_read_in_the_source(tmp_path: Path) -> None:
    source = tmp_path / "s.py"
    source.write_text(
        "import torch as T, torch.nn.functional as F\nfrom torch.nn.functional import linear, scaled_grouped_mm\n"
        "T.ones(2).sspaddmm; F.relu; F.scaled_mm(1); T.Tensor.to_mkldnn; T.Tensor.add; T.cuda.amp.autocast; T.float32.nothing\n"
        "torch.sspaddmm\nT.nn.functional.relu.nothing\n"
    )
    found = [(p.line, p.name) for p in find_in_source(str(source))]
    assert found == [
        (2, "torch.nn.functional.scaled_grouped_mm"),
        (3, "torch.Tensor.to_mkldnn"),
        (3, "torch.nn.functional.scaled_mm"),
    ]
    source.write_text("x = (\n")
    assert find_in_source(str(source)) == []
    assert first_missing(["backends", "cudnn", "benchmark"]) == ""
    assert first_missing(["multiprocessing", "Pool"]) == ""
    assert first_missing(["package", "sum"]) == "torch.package"


def test_modules_that_load_others_when_they_are_asked_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy: Any = types.ModuleType("lazy")
    lazy.__getattr__ = lambda name: importlib.import_module("no_such_module")
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    assert __file__ in missing_names._files()


@pytest.mark.slow
def test_processes_that_a_script_spawns_find_torch_too() -> None:
    done = ran("-m", "tritensor.run", str(Path(__file__).with_name("spawning_script.py")), cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["tensor([1., 2.])", "[18.0, 66.0]", "[18.0, 66.0]"]
