"""Something else where a tensor belongs: every public function says which argument it is, what was given and what to give."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each
from tritensor.tensor.public_api.arguments import public_name
from tritensor.tensor.public_api.publish import public

F = tt.nn.functional
WRONG = {"list": ["a"], "str": "abc", "None": None, "object": object(), "dict": {"a": 1}}
TENSORS = {"Tensor", "Operand", "Tensors"}


def m() -> tt.Tensor:
    return tt.arange(1.0, 10.0).reshape(3, 3)


def places() -> tt.Tensor:
    return tt.tensor([0, 1, 2])


# What the other arguments are, by name; a matrix where nothing is said.
OTHERS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("dim", "dim0", "start", "start_dim", "destination", "dimension", "offset", "diagonal", "low"), lambda: 0),
    **dict.fromkeys(("dim1", "chunks", "length", "k", "step", "shifts", "num_samples", "repeats", "correction", "end_dim"), lambda: 1),
    **dict.fromkeys(("split_size_or_sections", "indices_or_sections"), lambda: 1),
    **dict.fromkeys(("n", "steps", "high", "kernel_size"), lambda: 3),
    **dict.fromkeys(("size", "shape", "stride"), lambda: (3, 3)),
    **dict.fromkeys(("mask", "condition"), lambda: m() > 2),
    **dict.fromkeys(("vec", "vec1", "vec2"), lambda: tt.ones(3)),
    **dict.fromkeys(("batch1", "batch2"), lambda: tt.ones(3, 3, 3)),
    "dims": lambda: (0,), "index": places, "split_sizes": lambda: [1, 2], "sizes": lambda: (3, 1), "value": lambda: 1.0,
    "fill_value": lambda: 1.0, "p": lambda: 0.5, "min": lambda: 0.0, "max": lambda: 1.0, "dtype": lambda: tt.float32,
    "normalized_shape": lambda: (3,), "pad": lambda: (1, 1), "equation": lambda: "ij,jk->ik", "indices": lambda: (places(),),
    "reduce": lambda: "amax", "train": lambda: True,
}  # fmt: skip
# What normalises three channels.
NORMS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("mean", "invstd", "weight", "bias", "running_mean", "running_var", "sum_dy", "sum_dy_xmu", "counts"), lambda: tt.ones(3)),
    **dict.fromkeys(("input_g", "weight_g", "bias_g", "use_input_stats"), lambda: True), "cudnn_enabled": lambda: False,
    "momentum": lambda: 0.1, "eps": lambda: 1e-5, "num_groups": lambda: 3, "count": lambda: tt.tensor([3]),
}  # fmt: skip
# Those of single functions, where these do not fit; an optional argument named here is given as well.
OWN: dict[str, dict[str, Callable[[], Any]]] = {
    "bilinear": {"weight": lambda: tt.ones(2, 3, 3)},
    "lstm_cell": {"hx": lambda: (m(), m()), "w_ih": lambda: tt.ones(12, 3), "w_hh": lambda: tt.ones(12, 3)},
    "threshold": {"threshold": lambda: 0.5, "value": lambda: 1.0},
    "bmm": {"self": lambda: tt.ones(3, 3, 3), "input": lambda: tt.ones(3, 3, 3)},
    **{name: {"input": lambda: tt.ones(1, 3, 4, 4), "weight": lambda: tt.ones(2, 3, 2, 2)} for name in ("conv2d", "conv_relu")},
    **{k: {"input": lambda: tt.ones(1, 1, 3, 3)} for k in ("grid_sampler", "grid_sampler_2d")},
    "grid_sampler_3d": {"input": lambda: tt.ones(1, 1, 3, 3, 3)},
    "nll_loss": {"target": lambda: tt.tensor([0, 1, 2])},
    **{k: {"self": lambda: tt.ones(3), "input": lambda: tt.ones(3)} for k in ("dot", "vdot", "outer", "ger")},
    **{k: {"index": lambda: m().long() * 0} for k in ("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "take_along_dim")},
    **{k: {"index": lambda: m().long() * 0} for k in ("scatter_reduce", "scatter_reduce_")},
    **{k: {"source": lambda: tt.ones(3)} for k in ("put", "put_")},
    "select_scatter": {"index": lambda: 1},
    "as_strided_scatter": {"stride": lambda: (3, 1)},
    "bucketize": {"boundaries": lambda: tt.ones(3)},
    "searchsorted": {"sorted_sequence": lambda: tt.ones(3)},
    "nonzero_static": {"size": lambda: 3},
    **{k: {"p": lambda: 1} for k in ("mvlgamma", "mvlgamma_", "multigammaln")},
    "native_layer_norm": {"weight": lambda: tt.ones(3), "bias": lambda: tt.ones(3), "eps": lambda: 1e-5},
    **{
        k: {
            "N": lambda: 3,
            "C": lambda: 3,
            "HxW": lambda: 1,
            "group": lambda: 1,
            "eps": lambda: 1e-5,
            "training": lambda: False,
            "momentum": lambda: 0.1,
            **dict.fromkeys(("weight", "bias", "running_mean", "running_var"), lambda: tt.ones(3)),
        }
        for k in ("native_group_norm", "native_batch_norm")
    },
    "ormqr": {"tau": lambda: tt.ones(3)},
    "float_power_": {"self": lambda: m().double()},
    **dict.fromkeys(("conv3d", "conv_transpose3d"), dict.fromkeys(("input", "weight"), lambda: tt.ones(2, 2, 2, 2, 2))),
    **dict.fromkeys(("conv_transpose1d", "conv_tbc"), dict.fromkeys(("input", "weight"), lambda: tt.ones(2, 2, 2)) | {"bias": lambda: tt.ones(2)}),
    "conv_transpose2d": dict.fromkeys(("input", "weight"), lambda: tt.ones(2, 2, 2, 2)),
    "convolution": {
        **dict.fromkeys(("input", "weight"), lambda: tt.ones(2, 2, 2)), "bias": lambda: tt.ones(2), "groups": lambda: 1,
        **dict.fromkeys(("stride", "dilation"), lambda: (1,)), **dict.fromkeys(("padding", "output_padding"), lambda: (0,)),
        "transposed": lambda: False,
    },
    **{k: {"input": lambda: tt.ones(2, 3, 4, 4), "size": lambda: 2} for k in ("dropout2d", "dropout3d", "local_response_norm")},
    **{k: {"input": lambda n=n: tt.ones(1, 1, *(4,) * n), "norm_type": lambda: 2} for n, k in enumerate(("lp_pool1d", "lp_pool2d", "lp_pool3d"), 1)},
    **{
        k: {"input": lambda n=n: tt.ones(1, 1, *(2,) * n), "indices": lambda n=n: tt.arange(2**n).reshape(1, 1, *(2,) * n), "kernel_size": lambda: 2}
        for n, k in enumerate(("max_unpool1d", "max_unpool2d", "max_unpool3d"), 1)
    },
    **{
        f"fractional_max_pool{n}d{end}": {"input": lambda n=n: tt.ones(1, 1, *(4,) * n), "kernel_size": lambda: 2, "output_size": lambda: 2}
        for n in (2, 3) for end in ("", "_with_indices")
    },
    **dict.fromkeys(("group_norm", "group_norm_activation"), NORMS),
    "instance_norm": NORMS | {"input": lambda: tt.ones(2, 3, 4)},
    **dict.fromkeys(("batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_update_stats"), NORMS),
    **dict.fromkeys(("batch_norm", "batch_norm_activation"), NORMS | {"training": lambda: True}),
    "avg_pool3d": {"input": lambda: tt.ones(1, 1, 4, 4, 4)},
    "poisson_nll_loss": {"log_input": lambda: False},
    **dict.fromkeys(("batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"), NORMS | {"mean": m, "invstd": m, "count": lambda: 3}),
    "gru_cell": dict.fromkeys(("w_ih", "w_hh"), lambda: tt.ones(9, 3)),
    "embedding": {"input": places, "indices": places},
    "embedding_bag": {"input": places, "indices": places, "offsets": lambda: tt.tensor([0, 1])},
    "cosine_embedding_loss": {"target": lambda: tt.ones(3)},
    "multi_margin_loss": {"target": places},
    "linear_cross_entropy": {"target": places},
    "F.kl_div": {"reduction": lambda: "sum"},
    "ctc_loss": {
        "log_probs": lambda: tt.zeros(3, 2, 3), "targets": lambda: tt.ones(2, 2).long(), "input_lengths": lambda: (3, 3), "target_lengths": lambda: (1, 2),
    },
    "scaled_dot_product_attention": {"value": m},
    "multi_head_attention_forward": {
        "value": m, "embed_dim_to_check": lambda: 3, "num_heads": lambda: 1, "in_proj_weight": lambda: tt.ones(9, 3),
        "in_proj_bias": lambda: tt.ones(9), "add_zero_attn": lambda: False, "dropout_p": lambda: 0.0, "out_proj_bias": lambda: tt.ones(3),
        **dict.fromkeys(("bias_k", "bias_v"), lambda: tt.ones(1, 1, 3)),
    },
}  # fmt: skip
# What else one argument needs to be looked at: (function, argument) -> the others.
ALSO: dict[tuple[str, str], dict[str, Any]] = {
    **{
        ("multi_head_attention_forward", f"{k}_proj_weight"): {
            "use_separate_proj_weight": True,
            **{f"{other}_proj_weight": tt.ones(3, 3) for other in "qkv"},
        }
        for k in "qkv"
    },
    **{("multi_head_attention_forward", f"static_{k}"): {"bias_k": None, "bias_v": None} for k in "kv"},
    **{(f"fractional_max_pool{n}d{end}", "output_ratio"): {"output_size": None} for n in (2, 3) for end in ("", "_with_indices")},
}
# What is taken where a tensor is meant, and is no mistake: (function, argument).
TAKEN = {
    *((name, k) for name in ("eq", "ne", "not_equal") for k in ("input", "other")),
    ("index_put", "values"), ("index_put_", "values"), ("copy_", "source"), ("repeat_interleave", "input"),
}  # fmt: skip


def _functions() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    yield from ((name, f, False) for name, f in sorted(public.items()) if inspect.isfunction(f))
    for name in sorted(dir(tt.Tensor)):
        f = inspect.getattr_static(tt.Tensor, name)
        if not name.startswith("_") and inspect.isfunction(f) and name != "_record_view_of":
            yield name, f, True
    yield from (
        (f"F.{n}", f, False)
        for n, f in sorted(vars(F).items())
        if inspect.isfunction(f) and f.__module__.startswith(F.__name__) and n[0] != "_"
    )


def _cases() -> Iterator[Any]:
    """(function, whether a method, the parameter) for each position of a tensor."""
    for name, f, method in _functions():
        for i, p in enumerate(inspect.signature(f).parameters.values()):
            kinds = set(str(p.annotation).split(" | "))
            if kinds & TENSORS and kinds <= {*TENSORS, "None"} and p.name != "out" and not (method and i == 0):
                yield pytest.param(name, f, method, p, id=f"{'Tensor.' * method}{name}-{p.name}")


def _call(name: str, f: Callable[..., Any], method: bool, wrong: inspect.Parameter, given: Any) -> Any:
    parameters = list(inspect.signature(f).parameters.values())[method:]
    bare, kwargs = name.removeprefix("F."), {}
    own = OWN.get(name, OWN.get(bare, {}))
    for p in parameters:
        needed = p.default is p.empty or p.name in own
        if p.name != wrong.name and needed and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            kwargs[p.name] = {**OTHERS, **own}.get(p.name, m)()
    lead = (own.get("self", m)(),) if method else ()
    if wrong.kind is wrong.VAR_POSITIONAL:
        return f(*lead, *kwargs.values(), given)
    return f(*lead, **{**kwargs, **ALSO.get((bare, wrong.name), {}), wrong.name: given})


@each(("name", "f", "method", "p"), _cases())
def test_an_argument_that_is_no_tensor_is_named(name: str, f: Callable[..., Any], method: bool, p: inspect.Parameter) -> None:
    bare = name.removeprefix("F.")
    known = {bare, f.__name__, inspect.unwrap(f).__name__}  # an alias says the name that it stands for
    for kind, given in WRONG.items():
        if (given is None and (p.default is None or "None" in str(p.annotation).split(" | "))) or (bare, p.name) in TAKEN:
            continue
        with pytest.raises(TypeError) as caught:
            _call(name, f, method, p, given)
        text = str(caught.value)
        assert any(text.startswith(f"{k}: ") for k in known), f"{kind}: {text}"
        assert p.name in text, f"{kind}: {text}"
        assert "tensor" in text, f"{kind}: {text}"
        assert "\n" not in text


# (the call, what the message says)
SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: tt.equal(m(), [1]), r"^equal: other is a list; give a tensor \(tritensor.tensor\(...\)\)$"),
    "an array": (lambda: tt.matmul(m(), np.ones(3, object)), "^matmul: other is a ndarray"),
    "nothing": (lambda: tt.add(m(), None), r"^add: other is None; give a tensor or a number \(tritensor.tensor\(...\)\)$"),
    "an object": (lambda: tt.mul(object(), m()), "^mul: input is an object; give a tensor"),
    "one of several": (lambda: tt.cat([m(), "b"]), r"^cat: tensors\[1\] is a str; give a tensor"),
    "no sequence": (lambda: tt.stack(5), "^stack: tensors is an int; give a list or tuple of tensors$"),
    "through another function": (lambda: tt.vstack(["a"]), r"^vstack: tensors\[0\] is a str; give a tensor"),
    "in place": (lambda: m().add_("a"), "^add_: other is a str; give a tensor or a number"),
    "an int": (lambda: tt.eye("a"), "^eye: n is a str; give an int$"),
    "a dim": (lambda: m().chunk(chunks="a"), "^chunk: chunks is a str; give an int$"),
    "a number": (lambda: tt.dropout(m(), p="a"), "^dropout: p is a str; give a number$"),
    "what no annotation says": (lambda: tt.rot90(m(), 1, 5), "^rot90: .*not iterable"),
    "a layer's function": (lambda: F.layer_norm("a", (3,)), "^layer_norm: input is a str; give a tensor"),
    "an activation": (lambda: F.relu("a"), "^relu: input is a str; give a tensor"),
}


@pytest.mark.parametrize("what", SAID)
def test_the_message(what: str) -> None:
    call, says = SAID[what]
    with pytest.raises(TypeError, match=says):
        call()


def test_an_argument_that_may_be_none_is_not_named() -> None:
    with pytest.raises(TypeError, match=r"^sum: input is a list; give a tensor"):
        tt.sum([1.0], None)  # type: ignore[arg-type]


def test_no_number_is_made_of_what_is_none() -> None:
    for call in (lambda: tt.full((2,), None), lambda: tt.full_like(m(), None), lambda: tt.index_fill(m(), 0, places(), None)):
        with pytest.raises(TypeError, match="None"):
            call()


def test_errors_of_ones_own_are_not_renamed() -> None:
    with pytest.raises(tt.ShapeError, match="add: "):
        tt.add(m(), tt.ones(2))
    with pytest.raises(tt.DTypeError):
        tt.zeros(2, dtype="float99")
    assert public_name(tt.add.__wrapped__, "x") == "input"


# (the call, what the message says): functions that no family above holds
ELSEWHERE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "init": (tt.nn.init.kaiming_uniform_, "^kaiming_uniform_: tensor is .*; give a tensor"),
    "init, generator": (lambda w: tt.nn.init.normal_(m(), generator=w), "^normal_: generator is a.*; give a tritensor.Generator$"),
    "drawing": (lambda w: tt.rand(2, generator=w), "^rand: generator is a.*; give a tritensor.Generator$"),
    "clipping": (lambda w: tt.nn.utils.clip_grad_norm_(w, 1.0), r"^clip_grad_norm_: parameters(\[0\])? is a"),
    "a vector of parameters": (tt.nn.utils.parameters_to_vector, r"^parameters_to_vector: parameters(\[0\])? is a"),
    "numel": (tt.numel, "^numel: input is a.*; give a tensor"),
    "grad of": (lambda w: tt.autograd.grad(w, m()), r"^grad: outputs(\[0\])? is .*give a tensor"),
    "grad by": (lambda w: tt.autograd.grad(m().requires_grad_().sum(), w), r"^grad: inputs(\[0\])? is .*give a tensor"),
    "grad from": (lambda w: tt.autograd.grad(m().requires_grad_().sum(), m(), w), r"^grad: grad_outputs(\[0\])? is .*give a tensor"),
    "backward": (tt.autograd.backward, r"^backward: tensors(\[0\])? is .*give a tensor"),
    "Tensor.backward, gradient": (lambda w: m().requires_grad_().backward(w), "^backward: gradient is a .*; give a tensor"),
    "Tensor.backward, inputs": (lambda w: m().requires_grad_().sum().backward(inputs=w), r"^backward: inputs(\[0\])? is .*give a tensor"),
    "type_as": (lambda w: m().type_as(w), "^type_as: other is a.*; give a tensor"),
}


@each(("what", "kind"), [(what, kind) for what in ELSEWHERE for kind in WRONG if kind != "None"])
def test_the_same_outside_the_tensors_functions(what: str, kind: str) -> None:
    call, says = ELSEWHERE[what]
    with pytest.raises(TypeError, match=says):
        call(WRONG[kind])


def _of_functional() -> Iterator[Any]:
    for name, f in sorted(vars(F).items()):
        if inspect.isfunction(f) and f.__module__.startswith(F.__name__) and name[0] != "_":
            for p in inspect.signature(f).parameters.values():
                ignored = p.name in ("dtype", "_stacklevel", "size_average", "reduce", "out", "norm_type")
                if not ignored and "bool" not in (type(p.default).__name__, str(p.annotation)):  # of a flag a list is true
                    yield pytest.param(name, f, p.name, id=f"{name}-{p.name}")


@each(("name", "f", "wrong"), _of_functional())
def test_every_argument_of_a_layers_function(name: str, f: Callable[..., Any], wrong: str) -> None:
    """A list that holds what no argument does: function and argument are named, in place as well."""
    own = OWN.get(f"F.{name}", OWN.get(name, {}))
    ps = inspect.signature(f).parameters
    given = {p.name: {**OTHERS, **own}.get(p.name, m)() for p in ps.values() if p.default is p.empty or p.name in own}
    if ("pool" in name and not own) or name in ("unfold", "grid_sample") or name.startswith(("interpolate", "upsample")):
        given["input"] = tt.ones(1, 1, 4, 4)[(0,) * ("1d" in name)][(None,) * ("3d" in name)]
    if name == "upsample_bilinear" or wrong == "recompute_scale_factor":
        given["input"] = tt.ones(1, 1, 4, 4)
    if name == "grid_sample":
        given["grid"] = tt.zeros(1, 2, 2, 2)
    if name == "affine_grid":
        given |= {"theta": tt.ones(1, 2, 3), "size": (1, 1, 2, 2)}
    if name == "fold":
        given |= {"input": tt.ones(1, 4, 4), "output_size": 3, "kernel_size": 2}
    if name == "unfold":
        given["kernel_size"] = 2
    if name == "one_hot":
        given[next(iter(ps))] = places()
    if name == "cross_entropy":
        given["target"] = places()
    for inplace in {False, "inplace" in ps}:
        with pytest.raises((TypeError, ValueError)) as caught:
            f(**{**given, **ALSO.get((name, wrong), {}), wrong: ["a"], **({"inplace": True} if inplace else {})})
        assert str(caught.value).startswith(f"{name}: "), caught.value
        assert wrong in str(caught.value)


def test_what_is_neither_a_size_nor_several() -> None:
    with pytest.raises(TypeError, match=r"^max_pool2d: kernel_size is None; give a tuple of ints or an int$"):
        F.max_pool2d(tt.ones(1, 1, 4, 4), None)
    with pytest.raises(TypeError, match=r"^conv2d: stride is an object; give a tuple of ints or an int$"):
        F.conv2d(tt.ones(1, 3, 4, 4), tt.ones(2, 3, 2, 2), stride=object())
    with pytest.raises(TypeError, match=r"^linear: bias is a list; give a tensor"):
        F.linear(m(), tt.ones(3), [1.0])
    with pytest.raises(TypeError, match=r"^relu: input is a list"):
        F.relu([1.0], inplace=True)
