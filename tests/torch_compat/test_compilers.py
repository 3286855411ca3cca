"""torch._dynamo, torch._inductor and torch.distributed.tensor.placement_types: what scripts ask of PyTorch's compilers."""

from __future__ import annotations

import importlib
from typing import Any
from unittest.mock import Mock

import pytest

import tritensor as tt

dynamo: Any = importlib.import_module("tritensor._dynamo")
inductor: Any = importlib.import_module("tritensor._inductor")


def twice(x: Any) -> Any:
    return 2 * x


def test_decorators() -> None:
    assert tt._dynamo.disable(twice)._torchdynamo_orig_callable is twice
    assert dynamo.disable(reason="slow")(twice)(tt.ones(1)).item() == 2
    assert dynamo.optimize("inductor", nopython=True)(twice)(tt.ones(1)).item() == 2
    for mark in (dynamo.allow_in_graph, dynamo.disallow_in_graph, dynamo.forbid_in_graph, dynamo.assume_constant_result):
        assert mark(twice) is twice
    assert not dynamo.is_compiling()
    assert dynamo.is_dynamo_supported()
    assert dynamo.list_backends() == tt.compiler.list_backends()


def test_marks_change_nothing() -> None:
    x = tt.ones(2, 3)
    dynamo.mark_dynamic(x, 0, min=1, max=9)
    dynamo.maybe_mark_dynamic(x, [0, 1])
    dynamo.mark_static(x)
    dynamo.mark_static_address(x)
    dynamo.graph_break()
    dynamo.reset()
    assert (x.shape, x.sum().item()) == ((2, 3), 6)


def test_settings_are_remembered() -> None:
    config = importlib.import_module("tritensor._inductor").config
    assert (dynamo.config.suppress_errors, dynamo.config.cache_size_limit, config.triton.unique_kernel_names) == (False, 8, True)
    with (
        dynamo.config.patch(suppress_errors=True, cache_size_limit=64),
        config.patch("triton.cudagraphs", True),
        config.patch({"max_autotune": True}),
    ):
        assert (dynamo.config.suppress_errors, dynamo.config.cache_size_limit) == (True, 64)
        assert (config.triton.cudagraphs, config.max_autotune) == (True, True)
    assert (dynamo.config.suppress_errors, dynamo.config.cache_size_limit) == (False, 8)
    assert (config.triton.cudagraphs, config.max_autotune) == (False, False)
    dynamo.config.verbose = True
    try:
        assert dynamo.config.verbose
    finally:
        dynamo.config.verbose = False


def test_an_error_within_a_patch_puts_settings_back() -> None:
    with pytest.raises(ZeroDivisionError), dynamo.config.patch(verbose=True):
        raise ZeroDivisionError
    assert not dynamo.config.verbose


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            lambda: setattr(dynamo.config, "supress_errors", True),
            "_dynamo.config has no setting 'supress_errors'; did you mean suppress_errors",
        ),
        (lambda: inductor.config.triton.cudagraph, "_inductor.config.triton has no setting 'cudagraph'; did you mean cudagraph"),
        (lambda: inductor.config.patch(qqq=1).__enter__(), "_inductor.config has no setting 'qqq'; it would change nothing here"),
        (lambda: inductor.config.patch("max_autotune.x", 1).__enter__(), "max_autotune holds no settings"),
    ],
)
def test_a_setting_that_is_not_known_is_named(use: Any, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        use()


def test_modules_of_settings_can_be_imported() -> None:
    assert importlib.import_module("tritensor._dynamo.config") is dynamo.config
    assert importlib.import_module("tritensor._inductor.config") is inductor.config


def test_placements_annotate_and_say_what_is_missing() -> None:
    types = importlib.import_module("tritensor.distributed.tensor.placement_types")
    tensor = importlib.import_module("tritensor.distributed.tensor")
    for name in ("Placement", "Shard", "Replicate", "Partial"):
        assert getattr(types, name) is getattr(tensor, name)
        assert not isinstance(tt.ones(1), getattr(types, name))
    with pytest.raises(NotImplementedError, match="cut by fully_shard alone"):
        types._StridedShard(0, split_factor=2)
    assert isinstance(Mock(spec=types.DTensor), types.DTensor)
    assert types.Shard(0).is_shard(0)
    assert isinstance(types.Shard(0), types.Placement)
    assert types.Shard.local_shard_size_and_offset(5, 2, 1) == (2, 3)
    assert types.Replicate() == types.Replicate()
    assert types.Replicate().is_replicate()
    assert not types.Replicate().is_shard()
    assert types.Partial("max").is_partial("max")
    assert not types.Partial().is_partial("max")


def test_packages_ask_whether_a_module_was_compiled() -> None:
    layer = tt.nn.Linear(1, 1)
    frames = importlib.import_module("tritensor._dynamo.eval_frame")
    assert frames.OptimizedModule is dynamo.OptimizedModule
    assert issubclass(frames.OptimizedModule, tt.nn.Module)
    assert isinstance(tt.compile(layer), tt._dynamo.eval_frame.OptimizedModule)
    assert not isinstance(layer, dynamo.OptimizedModule)
