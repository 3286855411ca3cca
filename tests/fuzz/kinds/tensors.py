"""Tensor programs: views, writes in place, graphs, layouts, types, special values, indices, out=, broadcasting, grad modes."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.drawing import FLOATS, INTEGERS, Writer, dim, index, literal, number, shape, view
from tests.fuzz.judges import Judge, beside_torch, errors, in_float64, twice
from tests.fuzz.judges_of_graphs import by_rules, differences, in_another_order, shadowed
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

# {x}: any tensor, {f}: a floating one, {o}: one that broadcasts with it, {d}: a dimension, {k}: a number, {b}: a bool mask of its shape
UNARY = [
    "neg",
    "abs",
    "square",
    "sign",
    "relu",
    "tanh",
    "sin",
    "cos",
    "exp",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "log",
    "log1p",
    "expm1",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "reciprocal",
    "erf",
    "atan",
    "asinh",
    "exp2",
    "positive",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_not",
    "nan_to_num",
    "sinc",
    "deg2rad",
    "angle",
]
IN_PLACE = [
    "neg_",
    "abs_",
    "square_",
    "tanh_",
    "sin_",
    "cos_",
    "exp_",
    "sigmoid_",
    "relu_",
    "floor_",
    "ceil_",
    "round_",
    "sqrt_",
    "reciprocal_",
    "zero_",
    "erf_",
    "sign_",
    "trunc_",
    "nan_to_num_",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "atan2",
    "eq",
    "lt",
    "ge",
    "ne",
    "logical_and",
    "copysign",
    "hypot",
    "fmod",
    "remainder",
    "pow",
    "floor_divide",
    "fmax",
    "fmin",
    "heaviside",
    "xlogy",
    "nextafter",
    "logaddexp",
]
BINARY_IN_PLACE = [
    "add_",
    "sub_",
    "mul_",
    "div_",
    "copy_",
    "fmod_",
    "remainder_",
    "atan2_",
    "pow_",
    "floor_divide_",
    "eq_",
    "lt_",
    "copysign_",
    "hypot_",
]
SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=")
PLAIN = ["neg", "sin", "cos", "tanh", "exp", "square", "abs"]
REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "var",
    "std",
    "all",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "median",
    "nansum",
    "count_nonzero",
    "norm",
    "aminmax",
]


def _other(w: Writer, name: str) -> str:
    """A tensor or a number to be combined with a tensor."""
    x = w.scope[name]
    if w.rng.random() < 0.35:
        return w.rng.choice(("2", "-1", "0.5", "3", "1.5", "0", "True", "-2.5"))
    sizes = tuple(x.shape)
    fitting = w.tensors(lambda y: _broadcasts(tuple(y.shape), sizes))
    if fitting and w.rng.random() < 0.8:
        return w.rng.choice(fitting)
    return literal(
        w.rng, tuple(1 if w.rng.random() < 0.3 else n for n in sizes)[w.rng.randint(0, len(sizes)) :], w.rng.choice(FLOATS + INTEGERS)
    )


def _overlaps(x: Any, other: Any) -> bool:
    """Whether two tensors share memory and are not the same elements in the same places."""
    one, two = ((y.data_ptr(), tuple(y.shape), tuple(y.stride())) for y in (x, other))
    return x.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() and one != two


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def _mask(w: Writer, sizes: tuple[int, ...]) -> str:
    return literal(w.rng, sizes, "bool")


def make(w: Writer) -> None:
    """A leaf."""
    rng = w.rng
    dtype = rng.choice(FLOATS) if rng.random() < 0.75 else rng.choice((*INTEGERS, "bool", "complex64"))
    grad = "float" in dtype and rng.random() < 0.6
    name = w.put(literal(rng, shape(rng), dtype, grad, special=rng.random() < 0.2))
    if name and rng.random() < 0.15 and w.scope[name].ndim == 4:
        w.put(f"{name}.contiguous(memory_format=tt.channels_last)")


def look_at(w: Writer, name: str) -> None:
    """A view."""
    w.put(view(w.rng, w.scope[name], name, backwards=False))


def compute(w: Writer, name: str) -> None:
    """A new tensor of one or two."""
    rng, x = w.rng, w.scope[name]
    other = _other(w, name)
    pick = rng.random()
    if pick < 0.3:
        w.put(f"{name}.{rng.choice(UNARY)}()")
    elif pick < 0.55:
        w.put(
            f"{name} {rng.choice(SYMBOLS)} {other}"
            if rng.random() < 0.8
            else f"{rng.choice(('2', '1.5', '-1'))} {rng.choice(SYMBOLS)} {name}"
        )
    elif pick < 0.75:
        w.put(f"tt.{rng.choice(BINARY)}({name}, {other})")
    else:
        d = dim(rng, x.ndim)
        sizes = tuple(x.shape)
        w.put(rng.choice([
            f"tt.where({_mask(w, sizes)}, {name}, {other})", f"{name}.clamp({rng.choice(('-1', '0', 'None'))}, {rng.choice(('1', '2', '0.5'))})", f"{name}.to(tt.{rng.choice(FLOATS + INTEGERS)})",
            f"{name}.clone()", f"{name}.contiguous()", f"tt.cat([{name}, {name}], {d})", f"tt.stack([{name}, {name}], {d})", f"{name}.flip({d})", f"{name}.roll(1, {d})",
            f"{name}.repeat({(2, *[1] * x.ndim)})", f"{name}.repeat_interleave(2, {d})", f"{name}.tril()", f"{name}.triu(1)", f"{name}.masked_fill({_mask(w, sizes)}, 2)",
            f"tt.lerp({name}, {other}, 0.25)", f"tt.addcmul({name}, {name}, {other}, value=2)", f"{name} @ {other}", f"tt.zeros_like({name})", f"{name}.new_ones((2,))", f"{name}.diff(dim={d})",
            f"F.softmax({name}, {d})", f"F.log_softmax({name}, {d})", f"F.gelu({name})", f"F.silu({name})", f"F.softplus({name})", f"F.leaky_relu({name})", f"F.pad({name}, (1, 2))",
            f"{name}.double()", f"{name}.float()", f"tt.broadcast_to({name}, {(2, *sizes)})", f"tt.tile({name}, (2,))", f"tt.kron({name}, {other})", f"tt.meshgrid({name}.reshape(-1), indexing='ij')[0]",
            f"{name}.rot90()", f"tt.atleast_2d({name})", f"tt.outer({name}.reshape(-1), {name}.reshape(-1))",
        ]))  # fmt: skip


def reduce(w: Writer, name: str) -> None:
    """Fewer elements, or as many by a running operation."""
    rng, x = w.rng, w.scope[name]
    d = dim(rng, x.ndim)
    keep = rng.choice(("", ", keepdim=True"))
    pick = rng.random()
    if pick < 0.3:
        w.put(f"{name}.{rng.choice(REDUCTIONS)}()")
    elif pick < 0.6:
        w.put(f"{name}.{rng.choice([r for r in REDUCTIONS if r not in ('aminmax', 'count_nonzero', 'norm')])}({d}{keep})")
    elif pick < 0.75:
        w.put(f"{name}.{rng.choice(('cumsum', 'cumprod', 'cummax', 'logcumsumexp', 'cummin'))}({d})")
    else:
        w.put(rng.choice([
            f"{name}.max({d}{keep})[0]", f"{name}.min({d}{keep})[1]", f"{name}.sum({name}.dim() and ({d},){keep})", f"{name}.norm(dim={d}{keep})", f"{name}.var({d}, correction=0)", f"{name}.sort(dim={d}, stable=True)[0]",
            f"{name}.topk(1, {d})[0]", f"{name}.kthvalue(1, {d})[0]", f"tt.linalg.vector_norm({name}, 1)", f"{name}.nanmean()", f"tt.cov({name})", f"{name}.softmax({d})", f"tt.trace({name})", f"tt.dot({name}.reshape(-1), {name}.reshape(-1))",
            f"{name}.sum(dtype=tt.float64)", f"{name}.argsort(dim={d}, stable=True)", f"tt.logsumexp({name}, {d})", f"{name}.std(unbiased=False)",
        ]))  # fmt: skip


def write(w: Writer, name: str) -> None:
    """In place, through a view or a base."""
    rng, x = w.rng, w.scope[name]
    sizes = tuple(x.shape)
    other = _other(w, name)
    if other in w.scope and _overlaps(x, w.scope[other]):
        other = "2"  # which of them is read first is nobody's promise in PyTorch; here it is a copy that is read
    d = dim(rng, x.ndim)
    n = sizes[d] if x.ndim and -x.ndim <= d < x.ndim else 1
    places = f"tt.tensor({rng.sample(range(n), rng.randint(0, n)) if n else []}, dtype=tt.int64, device=dev)"
    value = number(rng, "int64" if "int" in str(x.dtype) else "float32")
    pick = rng.random()
    if pick < 0.2:
        code = f"{name}.{rng.choice(IN_PLACE)}()"
    elif pick < 0.45:
        code = (
            f"{name}.{rng.choice(BINARY_IN_PLACE)}({other if rng.random() < 0.9 else name})"
            if rng.random() < 0.6
            else f"{name} {rng.choice(('+=', '-=', '*=', '/='))} {other}"
        )
        code = code.replace("copy_(2)", f"copy_({name})")
    elif pick < 0.7:
        source = rng.choice((value, value, other))
        code = f"{name}[{index(rng, sizes, backwards=False)}] = {source}"
        if rng.random() < 0.15:
            code = f"{name}[{_mask(w, sizes)}] = {value}"
    else:
        code = rng.choice([
            f"{name}.fill_({value})", f"{name}.masked_fill_({_mask(w, sizes)}, {value})", f"{name}.clamp_({rng.choice(('-1', '0'))}, 1)", f"{name}.lerp_({other}, 0.5)", f"{name}.addcmul_({name}, {other}, value=0.5)",
            f"{name}.index_fill_({d}, {places}, {value})", f"{name}.index_add_({d}, {places}, {name}.index_select({d}, {places}))", f"{name}.index_copy_({d}, {places}, {name}.index_select({d}, {places}))", f"{name}.unsqueeze_(0)", f"{name}.t_()", f"{name}.squeeze_()", f"{name}.transpose_({d}, {dim(rng, x.ndim)})",
            f"{name}.scatter_({d}, tt.zeros({sizes}, dtype=tt.int64, device=dev), {value})", f"{name}.scatter_add_({d}, tt.zeros({sizes}, dtype=tt.int64, device=dev), {name}.clone())", f"{name}.masked_scatter_({_mask(w, sizes)}, {name}.clone())",
            f"{name}.detach_()", f"{name}.requires_grad_()", f"{name}.data.mul_(2)", f"F.relu_({name})", f"{name}.fill_diagonal_(2)", f"{name}.tril_()", f"{name}.cumsum_({d})", f"{name}.addcdiv_({name}, {other})", f"nn.init.constant_({name}, 0.5)",
            f"{name}.set_({name}.clone())" if rng.random() < 0.2 else f"{name}.copy_({name}.flip(0))", f"{name}.swapaxes_({d}, 0)", f"{name}.put_(tt.tensor([0], device=dev), {name}.reshape(-1)[:1].clone())", f"{name}.index_put_((tt.tensor([0, 0], device=dev),), {name}[:1].clone(), accumulate=True)",
        ])  # fmt: skip
    if rng.random() < 0.3:
        code = f"with tt.{rng.choice(('no_grad()', 'no_grad()', 'enable_grad()'))}: {code}"
    w.add(code)


def fetch(w: Writer, name: str) -> None:
    """Indexing that copies, and its relatives."""
    rng, x = w.rng, w.scope[name]
    sizes = tuple(x.shape)
    d = dim(rng, x.ndim)
    n = sizes[d] if x.ndim and -x.ndim <= d < x.ndim else 1
    if rng.random() < 0.5:
        w.put(f"{name}[{index(rng, sizes)}]")
        return
    zeros = f"tt.zeros({sizes}, dtype=tt.int64, device=dev)"
    w.put(rng.choice([
        f"{name}[{_mask(w, sizes)}]", f"{name}.index_select({d}, tt.tensor([0], device=dev))", f"{name}.gather({d}, {zeros})", f"tt.take_along_dim({name}, {zeros}, {d})", f"{name}.take(tt.tensor([0, -1], device=dev))",
        f"{name}.masked_select({_mask(w, sizes)})", f"{name}.scatter({d}, {zeros}, 2)", f"{name}.scatter_add({d}, {zeros}, {name})", f"{name}.scatter_reduce({d}, {zeros}, {name}, '{rng.choice(('sum', 'amax', 'mean', 'prod'))}')", f"{name}.select_scatter({name}.select({d}, 0) * 2, {d}, 0)",
        f"{name}.index_add({d}, tt.tensor({[0] * n}, dtype=tt.int64, device=dev), {name})", f"{name}.nonzero()", f"tt.slice_scatter({name}, {name}.narrow({d}, 0, 1) + 1, {d}, 0, 1)", f"{name}.unique()", f"tt.searchsorted({name}.reshape(-1).sort()[0].detach(), 1.0)",
    ]))  # fmt: skip


def out(w: Writer, name: str) -> None:
    """out= of a tensor that is there and has the result's shape: of another one it gets memory of its own, which PyTorch's views still share."""
    other = _other(w, name)
    code = w.rng.choice(
        (f"tt.add({name}, {other}", f"tt.exp({name}", f"tt.mul({name}, 2", f"tt.cumsum({name}, 0", f"tt.maximum({name}, {other}")
    )
    try:
        made = eval(f"{code})", w.scope)
    except Exception:
        return
    read = [w.scope[n] for n in {name, other} & set(w.scope)]
    target = w.any(lambda y: y.shape == made.shape and not any(_overlaps(x, y) for x in read))
    if target:
        code = f"{code}, out={target})"
        w.add(f"with tt.no_grad(): {code}" if w.rng.random() < 0.7 else code)


def modes(w: Writer, name: str) -> None:
    """Grad modes, hooks, flags."""
    new = w.fresh()
    w.add(w.rng.choice((
        f"with tt.no_grad(): {new} = {view(w.rng, w.scope[name], name)}", f"with tt.no_grad(): {new} = {name} * 2", f"with tt.inference_mode(): {new} = {name} * 2", f"with tt.inference_mode(): {new} = {view(w.rng, w.scope[name], name)}",
        f"{new} = {name}.detach()", f"{new} = {name}.detach().requires_grad_()", f"{name}.retain_grad()", f"{name}.register_hook(lambda g: g * 2)", f"{new} = {name}.data", f"with tt.set_grad_enabled(False): {new} = {name}.exp()",
        f"{new} = ({name}._version, {name}.is_contiguous(), {name}.numel() and {name}.storage_offset(), {name}.element_size())", f"{new} = {name}.tolist()", f"{new} = ({name}.numel(), tuple({name}.size()), {name}.dim(), str({name}.dtype).rpartition('.')[2])",
    )))  # fmt: skip


def differentiate(w: Writer) -> None:
    """backward, grad with and without create_graph, grad of grad."""
    rng = w.rng
    root = w.any(lambda x: x.requires_grad and "complex" not in str(x.dtype))
    if root is None:
        return
    leaves = w.tensors(lambda x: x.requires_grad and x.is_leaf and "complex" not in str(x.dtype))
    keep = rng.choice(("", "", ", retain_graph=True"))
    scalar = f"({root} * {literal(rng, tuple(w.scope[root].shape)[-1:], 'float32')}).sum()" if rng.random() < 0.5 else f"{root}.sum()"
    if rng.random() < 0.5 or not leaves:
        w.add(f"{scalar}.backward({keep.removeprefix(', ')})")
    else:
        inputs = ", ".join(rng.sample(leaves, min(len(leaves), rng.randint(1, 2))))
        name = w.fresh()
        create = rng.random() < 0.5
        ok = w.add(
            f"{name} = tt.autograd.grad({scalar}, [{inputs}], allow_unused={rng.choice(('True', 'True', 'False'))}{', create_graph=True' if create else keep})"
        )
        if ok and create:
            again = w.fresh()
            w.add(
                f"{again} = tt.autograd.grad(sum((g ** 2).sum() for g in {name} if g is not None and g.requires_grad), [{inputs}], allow_unused=True)"
            )


def plain(rng: random.Random) -> Program:
    """Views and writes in float64, and one backward: what the model of shared memory and finite differences can say the truth of."""
    w = Writer(rng, errors=0.0)
    for _ in range(rng.randint(1, 2)):
        w.put(literal(rng, shape(rng), "float64", rng.random() < 0.7))
    for _ in range(rng.randint(3, 9)):
        name = w.any(lambda y: y.numel() < 200)
        if name is None:
            break
        x = w.scope[name]
        same = list(w.tensors(lambda y, sizes=tuple(x.shape): tuple(y.shape) == sizes))
        other = rng.choice([*same, "2", "0.5", "-1.5"])
        pick = rng.random()
        if pick < 0.4:
            w.put(view(rng, x, name).replace(".detach()", "[...]"))
        elif pick < 0.6:
            w.put(rng.choice((f"{name}.{rng.choice(PLAIN)}()", f"{name} {rng.choice('+-*')} {other}", f"{name}.clone()")))
        else:
            part_of = f"{name}[{index(rng, tuple(x.shape), basic=True)}]"
            w.add(
                rng.choice(
                    (
                        f"{name}.{rng.choice(PLAIN)}_()",
                        f"{name}.{rng.choice(('add', 'sub', 'mul'))}_({other})",
                        f"{part_of} = {rng.choice(('1.5', '-0.5'))}",
                        f"{name} *= {other}",
                        f"{name}.fill_(0.5)",
                        f"{name}.zero_()",
                        f"{name}.copy_({rng.choice(same)})",
                        f"{part_of} = {name}.sum() * 0.25",
                    )
                )
            )
    root = w.any(lambda x: x.requires_grad) or "v0"
    w.statements.append(f"({root} * {literal(rng, tuple(w.scope[root].shape)[-1:], 'float64')}).sum().backward()")
    return w.program()


def draw(rng: random.Random) -> Program:
    """Two or three leaves, then a handful of statements."""
    if rng.random() < 0.35:
        return plain(rng)
    w = Writer(rng)
    for _ in range(rng.choice((1, 2, 2, 3))):
        make(w)
    for _ in range(rng.randint(3, 10)):
        step = rng.choices((look_at, compute, reduce, write, fetch, out, modes, differentiate, make), (6, 5, 2, 6, 2, 1, 1.5, 2.5, 0.7))[0]
        if step in (make, differentiate):
            step(w)
        elif (name := w.any()) and w.scope[name].numel() < 300:
            step(w, name)
    if rng.random() < 0.7:
        differentiate(w)
    return w.program()


def judges(torch: Any) -> list[Judge]:
    if torch is not None:
        return [beside_torch(torch, signs=True)]
    return [errors, twice, shadowed, by_rules, differences, in_another_order, in_float64]


KIND = Kind("tensors", draw, judges, weight=20)
