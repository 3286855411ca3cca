"""Names of types: PyTorch's where `import torch` is answered, and in pickles the library's own, so that both sides read one another's."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import tritensor as tt
from tritensor.ground import call_site
from tritensor.ground.naming import type_names
from tritensor.tools import run_script
from tritensor.torch_compat import layer_names, recorded_names

ROOT = Path(__file__).resolve().parents[2]
THINGS = {
    "torch.Tensor": tt.ones(2), "torch.nn.parameter.Parameter": tt.nn.Parameter(tt.ones(2)), "torch.nn.parameter.Buffer": tt.nn.Buffer(tt.ones(2)),
    "torch.Size": tt.ones(2, 3).shape, "torch.device": tt.device("cuda:1"), "torch.dtype": tt.bool, "torch.layout": tt.sparse_coo,
    "torch.memory_format": tt.channels_last, "torch._C.Generator": tt.Generator(), "torch.finfo": tt.finfo(tt.float16),
    "torch.nn.modules.linear.Linear": tt.nn.Linear(2, 3), "torch.nn.modules.container.Sequential": tt.nn.Sequential(tt.nn.ReLU(), tt.nn.LSTM(2, 2)),
    "torch.nn.modules.linear.LazyLinear": tt.nn.LazyLinear(3), "torch.nn.modules.container.ParameterList": tt.nn.ParameterList([tt.ones(2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", THINGS)
def test_a_type_is_called_as_the_script_knows_it_while_the_door_is_open(name: str) -> None:
    thing, module = THINGS[name], name.rpartition(".")[0]
    own = repr(type(thing))
    with run_script.opened():
        assert repr(type(thing)) == f"<class '{name}'>"
        assert (type(thing).__module__, type(thing).__name__) == (module, name.rpartition(".")[2])
    assert repr(type(thing)) == own
    assert own.startswith("<class 'tritensor.")


@pytest.mark.parametrize("name", THINGS)
@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_of_one_side_are_read_on_the_other(name: str, protocol: int) -> None:
    thing = THINGS[name]
    with run_script.opened():
        written = pickle.dumps(thing, protocol)
        for twin in (pickle.loads(written), pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)):
            assert type(twin) is type(thing)
    assert b"torch" not in written
    back = pickle.loads(written)
    assert type(back) is type(thing)
    outside = pickle.dumps(back, protocol)
    with run_script.opened():
        assert type(pickle.loads(outside)) is type(thing)


def test_a_process_without_the_door_reads_what_one_with_it_wrote(tmp_path: Path) -> None:
    model: Any = tt.nn.Sequential(tt.nn.Linear(2, 3), tt.nn.BatchNorm1d(3))
    with run_script.opened():
        (tmp_path / "model").write_bytes(pickle.dumps({"model": model, "shape": tt.Size([2, 3])}))
    code = (
        "import pickle, sys\nd = pickle.load(open('model', 'rb'))\nprint(type(d['model'][0]).__name__, d['shape'], 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("Linear tritensor.Size([2, 3]) False\n", "")


def test_users_classes_keep_their_names_and_pickle_as_ever() -> None:
    with run_script.opened():
        mine = _Mine(2, 2)
        assert type(mine).__module__ == __name__
        assert type(pickle.loads(pickle.dumps(mine))) is _Mine


class _Mine(tt.nn.Linear):
    pass


def test_a_type_that_is_defined_while_the_door_is_open_is_called_so_at_once() -> None:
    with call_site.use_library_name("torch"):

        @type_names.named("torch.somewhere")
        class Late:
            pass

        assert repr(Late) == "<class 'torch.somewhere.Late'>"
    assert Late.__module__ == __name__
    del type_names._names[Late]


def test_annotations_of_a_module_and_of_what_derives_from_it_can_be_read() -> None:
    class Net(tt.nn.Module):
        width: int

    with call_site.use_library_name("torch"):
        for cls in (tt.nn.Module, tt.nn.Parameter, tt.device, tt.dtype):
            assert isinstance(get_type_hints(cls), dict)
        assert get_type_hints(Net)["width"] is int


def test_the_layers_are_where_pytorch_defines_them() -> None:
    recorded = {
        (path.removeprefix("nn.modules."), name)
        for path in recorded_names.recorded()
        if path.startswith("nn.modules.")
        for name, noted in recorded_names.names_of(path).items()
        if noted.kind == "class" and isinstance(vars(tt.nn).get(name), type) and issubclass(vars(tt.nn)[name], tt.nn.Module)
    }
    listed = {(file, name) for file, names in layer_names.CLASSES.items() for name in names.split()}
    aliases = {(file, name) for file, name in recorded - listed if vars(tt.nn)[name].__name__ != name}
    assert recorded - aliases == listed
