"""Configurations of layers: convolutions, pools, padding, interpolation, sampling of images, norms, attention, recurrence, embeddings, losses."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.drawing import literal
from tests.fuzz.judges import Judge, beside_torch, errors, in_float64, twice
from tests.fuzz.judges_of_graphs import by_rules, differences
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.kinds.modules import FILL
from tests.fuzz.program import Program


class Inputs:
    """Tensors of one configuration, in one type, in a layout of their own; most of them require grad."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dtype = rng.choice(("float32", "float32", "float32", "float64", "float64", "bfloat16", "float16"))
        self.lines: list[str] = []

    def __call__(self, name: str, *sizes: int, grad: bool = True, draw: Callable[[], str] | None = None, dtype: str | None = None) -> str:
        """The name of a new tensor."""
        kind = dtype or self.dtype
        made = literal(self.rng, sizes, kind, grad and dtype is None, draw=draw)
        self.lines.append(f"{name} = {made}")
        if len(sizes) > 1 and 0 not in sizes and self.rng.random() < 0.3:  # the same sizes, otherwise in memory
            turned = literal(self.rng, (*sizes[:-2], sizes[-1], sizes[-2]), kind, draw=draw)
            self.lines[-1] = f"{name} = {turned}.mT.detach()" + (".requires_grad_()" if grad and dtype is None else "")
        elif len(sizes) == 4 and self.rng.random() < 0.3:
            self.lines[-1] = f"{name} = {made}.detach().contiguous(memory_format=tt.channels_last)" + (
                ".requires_grad_()" if grad and dtype is None else ""
            )
        return name

    def pick(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def some(self, **options: tuple[Any, ...]) -> str:
        """Keyword arguments, each there or not."""
        return "".join(f", {k}={self.rng.choice(v)!r}" for k, v in options.items() if self.rng.random() < 0.45)


def conv(i: Inputs) -> str:
    nd = i.pick(1, 1, 2, 2, 2, 3)
    groups = i.pick(1, 1, 1, 2, 3)
    kernel = [i.pick(1, 2, 3) for _ in range(nd)]
    per, out = i.pick(1, 2), groups * i.pick(1, 2)
    size = [k + i.pick(0, 1, 2, 3) for k in kernel]
    x = i("x", *([i.pick(1, 2, 2, 0)] if i.rng.random() < 0.95 else []), groups * per, *size)
    transposed = i.rng.random() < 0.4
    w = i("w", *((groups * per, out // groups) if transposed else (out, per)), *kernel)
    b = ", " + i("b", out) if i.rng.random() < 0.5 else ""
    each = lambda *o: i.pick(i.pick(*o), [i.pick(*o) for _ in range(nd)])  # noqa: E731
    options = f", stride={each(1, 1, 2)}" + i.some(padding=(0, 1), dilation=(1, 2)) + (f", groups={groups}" if groups > 1 else "")
    if transposed:
        return f"F.conv_transpose{nd}d({x}, {w}{b}{options}{i.some(output_padding=(0, 1))})"
    return (
        f"F.conv{nd}d({x}, {w}{b}{options})" if i.rng.random() < 0.85 else f"F.conv{nd}d({x}, {w}{b}, padding='{i.pick('same', 'valid')}')"
    )


def pool(i: Inputs) -> str:
    nd = i.pick(1, 2, 2, 3)
    x = i("x", *([i.pick(1, 2, 0)] if i.rng.random() < 0.9 else []), i.pick(1, 2), *[i.pick(2, 3, 4, 5) for _ in range(nd)])
    pick = i.rng.random()
    if pick < 0.25:
        return f"F.adaptive_{i.pick('avg', 'max')}_pool{nd}d({x}, {i.pick(1, 2, 3)})"
    if pick < 0.5:
        return f"F.avg_pool{nd}d({x}, {i.pick(1, 2, 3)}{i.some(stride=(1, 2), padding=(0, 1), ceil_mode=(True,), count_include_pad=(False,))}{i.some(divisor_override=(3,)) if nd > 1 else ''})"
    if pick < 0.6:
        return f"F.lp_pool{min(nd, 2)}d({x}, 2, {i.pick(1, 2)})"
    return f"F.max_pool{nd}d({x}, {i.pick(1, 2, 3)}{i.some(stride=(1, 2), padding=(0, 1), ceil_mode=(True,), dilation=(1, 2))}{i.some(return_indices=(True,))})"


def padding(i: Inputs) -> str:
    nd = i.pick(1, 2, 3)
    x = i("x", *([2] if i.rng.random() < 0.8 else []), i.pick(1, 2), *[i.pick(2, 3, 4) for _ in range(nd)])
    mode = i.pick("constant", "reflect", "replicate", "circular")
    pads = tuple(i.pick(0, 1, 1, 2, *((-1,) if mode == "constant" else ())) for _ in range(2 * nd))
    return f"F.pad({x}, {pads}, mode={mode!r}{i.some(value=(1.5,)) if mode == 'constant' else ''})"


def interpolate(i: Inputs) -> str:
    nd = i.pick(1, 2, 2, 3)
    x = i("x", i.pick(1, 2), i.pick(1, 2), *[i.pick(1, 2, 3, 4) for _ in range(nd)])
    mode = i.pick("nearest", "nearest-exact", {1: "linear", 2: i.pick("bilinear", "bicubic"), 3: "trilinear"}[nd], "area")
    size = (
        f"size={i.pick(1, 2, 3, 5)}"
        if i.rng.random() < 0.5
        else f"scale_factor={i.pick(0.5, 2, 1.5, 3)}{i.some(recompute_scale_factor=(True, False))}"
    )
    extra = i.some(align_corners=(True, False)) if "linear" in mode or mode == "bicubic" else ""
    return f"F.interpolate({x}, {size}, mode={mode!r}{extra}{i.some(antialias=(True,)) if mode in ('bilinear', 'bicubic') else ''})"


def sample_grid(i: Inputs) -> str:
    nd = i.pick(2, 2, 3)
    n = i.pick(1, 2)
    x = i("x", n, i.pick(1, 2), *[i.pick(1, 2, 3) for _ in range(nd)])
    grid = i("grid", n, *[i.pick(1, 2, 3) for _ in range(nd)], nd, draw=lambda: str((2 * i.rng.randint(-41, 41) + 1) / 64))
    return f"F.grid_sample({x}, {grid}, mode={i.pick('bilinear', 'nearest', *(('bicubic',) if nd == 2 else ()))!r}, padding_mode={i.pick('zeros', 'border', 'reflection')!r}, align_corners={i.pick(True, False)})"


def folding(i: Inputs) -> str:
    k, s, p, d = i.pick(1, 2), i.pick(1, 2), i.pick(0, 1), i.pick(1, 2)
    if i.rng.random() < 0.5:
        return f"F.unfold({i('x', *([i.pick(1, 2)] if i.rng.random() < 0.8 else []), i.pick(1, 2), i.pick(3, 4), i.pick(3, 4))}, {k}, dilation={d}, padding={p}, stride={s})"
    n = (4 + 2 * p - d * (k - 1) - 1) // s + 1
    return f"F.fold({i('x', i.pick(1, 2), 2 * k * k, n * n)}, 4, {k}, dilation={d}, padding={p}, stride={s})"


def norm(i: Inputs) -> str:
    c = 4
    x = i("x", i.pick(1, 2, 3), c, *[i.pick(1, 2, 3) for _ in range(i.pick(1, 2))])
    w, b = (i("w", c), i("b", c)) if i.rng.random() < 0.6 else ("None", "None")
    pick = i.pick("batch", "batch", "group", "instance", "layer", "rms", "local", "normalize")
    if pick == "batch":
        training = i.rng.random() < 0.6
        run = (
            f"{i('m', c, grad=False)}, {i('s', c, grad=False, draw=lambda: str(i.rng.randint(1, 8) / 4))}"
            if not training or i.rng.random() < 0.7
            else "None, None"
        )
        return f"F.batch_norm({x}, {run}, {w}, {b}, training={training}{i.some(momentum=(0.0, 0.5, 1.0), eps=(1e-3,))})"
    if pick == "group":
        return f"F.group_norm({x}, {i.pick(1, 2, 4)}, {w}, {b}{i.some(eps=(1e-3,))})"
    if pick == "instance":
        return f"F.instance_norm({x}, weight={w}, bias={b}{i.some(eps=(1e-3,))})"
    if pick == "local":
        return f"F.local_response_norm({x}, {i.pick(1, 2, 3)}{i.some(alpha=(0.1,), beta=(0.5,), k=(2.0,))})"
    if pick == "normalize":
        return f"F.normalize({x}, p={i.pick(1, 2, 2.0, 3, float('inf'))}, dim={i.pick(0, 1, -1)})"
    x = i("z", 2, i.pick(1, 2, 3), c)
    if pick == "layer":
        return f"F.layer_norm({x}, ({c},), {w}, {b}{i.some(eps=(1e-3,))})"
    return f"F.rms_norm({x}, ({c},), {w}, eps=1e-3)"


def attention(i: Inputs) -> str:
    n, h, L, S, e = i.pick(1, 2), i.pick(1, 2), i.pick(1, 2, 3), i.pick(1, 2, 3), i.pick(1, 2, 4)
    q, k, v = i("q", n, h, L, e), i("k", n, h, S, e), i("v", n, h, S, i.pick(1, 2, 3))
    mask = i.pick(
        "",
        "",
        f", attn_mask={i('mask', L, S, dtype='bool', grad=False)}" if i.rng.random() < 0.5 else f", attn_mask={i('mask', L, S)}",
        ", is_causal=True",
    )
    return f"F.scaled_dot_product_attention({q}, {k}, {v}{mask}{i.some(scale=(0.5, 1.0))})"


def loss(i: Inputs) -> str:
    n, c = i.pick(1, 2, 3), i.pick(2, 3, 4)
    inner = [i.pick(1, 2)] if i.rng.random() < 0.3 else []
    reduction = i.pick("mean", "sum", "none")
    pick = i.rng.random()
    if pick < 0.35:
        x = i("x", n, c, *inner)
        target = i("t", n, *inner, grad=False, dtype="int64", draw=lambda: str(i.rng.randrange(c)) if i.rng.random() < 0.9 else "-100")
        weight = f", weight={i('w', c, grad=False, draw=lambda: str(i.rng.randint(1, 8) / 4))}" if i.rng.random() < 0.4 else ""
        if i.rng.random() < 0.3:
            return f"F.nll_loss(F.log_softmax({x}, 1), {target}{weight}, reduction={reduction!r})"
        return f"F.cross_entropy({x}, {target}{weight}, reduction={reduction!r}{i.some(label_smoothing=(0.1, 0.5), ignore_index=(0,))})"
    x = i("x", n, c)
    signs, unit = (lambda: i.pick("1", "-1")), (lambda: str(i.rng.randint(0, 8) / 8))
    y = i("y", n, c, grad=i.rng.random() < 0.5, draw=unit)
    options = [
        *(f"F.{name}({x}, {y}, reduction={reduction!r})" for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "poisson_nll_loss", "soft_margin_loss")),
        f"F.smooth_l1_loss({x}, {y}, beta={i.pick(0.5, 0.0, 2.0)})", f"F.huber_loss({x}, {y}, delta={i.pick(0.5, 2.0)})", f"F.kl_div({x}, {y}, reduction={i.pick('batchmean', 'sum', 'none')!r})", f"F.binary_cross_entropy({x}.sigmoid(), {y}, reduction={reduction!r})",
        f"F.gaussian_nll_loss({x}, {y}, {x}.square() + 0.5{i.some(full=(True,))})", f"F.poisson_nll_loss({x}, {y}, log_input={i.pick(True, False)}, full=True)", f"F.cross_entropy({x}, {y}.softmax(1))",
    ]  # fmt: skip
    if i.rng.random() < 0.3:
        a, b = i("a", n, c), i("p", n, c)
        s = i("s", n, grad=False, draw=signs)
        options = [f"F.cosine_embedding_loss({a}, {b}, {s}, margin={i.pick(0.0, 0.25)})", f"F.margin_ranking_loss({a}[:, 0], {b}[:, 0], {s}, margin=0.5)", f"F.triplet_margin_loss({a}, {b}, {x}{i.some(p=(1, 2), swap=(True,), margin=(0.5,))})", f"F.hinge_embedding_loss({a}[:, 0], {s})", f"F.cosine_similarity({a}, {b}, dim={i.pick(0, 1)})", f"F.pairwise_distance({a}, {b}{i.some(p=(1, 2, 3))})", f"tt.cdist({a}, {b}, p={i.pick(1.0, 2.0, 3.0)})"]  # fmt: skip
    return i.pick(*options)


def embedding(i: Inputs) -> str:
    rows, width = i.pick(3, 4), i.pick(1, 2, 3)
    w = i("w", rows, width)
    x = i("x", *i.pick((2,), (2, 3), (0,), (1, 2)), grad=False, dtype="int64", draw=lambda: str(i.rng.randrange(rows)))
    if i.rng.random() < 0.5:
        return f"F.embedding({x}, {w}{i.some(padding_idx=(0, -1), scale_grad_by_freq=(True,))})"
    return (
        f"F.embedding_bag({x}.reshape(-1), {w}, tt.tensor([0, 1, 1]), mode={i.pick('sum', 'mean', 'max')!r}{i.some(padding_idx=(0,))})[0:]"
        if i.rng.random() < 0.6
        else f"F.one_hot({x}, {rows}).to({w}.dtype) @ {w}"
    )


def recurrent(i: Inputs) -> str:
    kind = i.pick("RNN", "LSTM", "GRU")
    width, hidden, layers = i.pick(1, 2, 3), i.pick(1, 2, 3), i.pick(1, 1, 2)
    x = i("x", *([i.pick(1, 2, 3), i.pick(1, 2)] if i.rng.random() < 0.9 else [2]), width)
    made = f"nn.{kind}({width}, {hidden}, {layers}{i.some(bidirectional=(True,), batch_first=(True,), bias=(False,))}{i.some(nonlinearity=('relu',)) if kind == 'RNN' else ''}{i.some(proj_size=(1,)) if kind == 'LSTM' and hidden > 1 else ''}, dtype=tt.{i.dtype})"
    i.lines.append(f"net = {made}; {FILL.format('net')}")
    return f"net({x})[0]"


def pointwise(i: Inputs) -> str:
    x = i("x", *[i.pick(1, 2, 3) for _ in range(i.pick(1, 2, 3))])
    name = i.pick(
        "relu",
        "relu6",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "softsign",
        "tanhshrink",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
        "logsigmoid",
        "leaky_relu",
        "softshrink",
        "hardshrink",
        "glu",
        "softmin",
    )
    if name == "glu":
        return f"F.glu({i('x', 2, 4)}{i.some(dim=(1, -1))})"
    if name == "softmin":
        return f"F.softmin({x}, -1)"
    options = {
        "elu": {"alpha": (0.5, 2.0)},
        "celu": {"alpha": (0.5,)},
        "gelu": {"approximate": ("tanh", "none")},
        "softplus": {"beta": (2.0, 0.5), "threshold": (1.0,)},
        "leaky_relu": {"negative_slope": (0.2, 0.0)},
        "softshrink": {"lambd": (0.25,)},
        "hardshrink": {"lambd": (0.25,)},
        "hardtanh": {"min_val": (-0.5,), "max_val": (0.75,)},
    }
    return f"F.{name}({x}{i.some(**options.get(name, {}))})"


FAMILIES = (
    conv,
    conv,
    pool,
    padding,
    interpolate,
    sample_grid,
    folding,
    norm,
    norm,
    attention,
    loss,
    loss,
    embedding,
    recurrent,
    pointwise,
)


def draw(rng: random.Random) -> Program:
    """Inputs, one call, and the gradients of a weighted sum of what it gives."""
    i = Inputs(rng)
    expression = rng.choice(FAMILIES)(i)
    lines = [*i.lines, f"y = {expression}", "z = y[0] if isinstance(y, tuple) else y"]
    lines.append(
        f"(z * (tt.arange(z.numel()) % 5 - 1.5).reshape(z.shape).to(z.dtype)).sum().backward({'create_graph=True' if rng.random() < 0.2 else ''})"
    )
    return Program(tuple(lines))


def judges(torch: Any) -> list[Judge]:
    return [beside_torch(torch)] if torch is not None else [errors, twice, in_float64, by_rules, differences]


KIND = Kind("configurations", draw, judges, weight=8)
