"""The figures that say how good the large kernels are and that need no GPU: launches, bytes, instructions, how full the last wave is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import tritensor as tt
from bench.gpu.training import GPT2_SMALL, Work, step, works
from bench.gpu.warm import Recorded
from tritensor.cuda.compiler.prediction import ISSUE, RATES, Forecast, forecast_all
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU

F = tt.nn.functional
Run = Callable[[], object]
LANES = 32  # of a warp
ROWS = (768, 1000, 4095, 50257)  # lengths of rows: a multiple of all accesses, of eight elements, of none, and GPT-2's words


class Figure(NamedTuple):
    """One figure: what it is of, its value, and what it is to reach: at most (`least` False) or at least `asked`; None asks nothing."""

    name: str
    value: float
    asked: float | None = None
    least: bool = False

    def reached(self) -> bool | None:
        if self.asked is None:
            return None
        return self.value >= self.asked if self.least else self.value <= self.asked

    def worse_than(self, was: float, slack: float = 0.05) -> bool:
        """Whether it is over 5 % worse than it was; a count may not be worse at all."""
        if isinstance(was, int) and isinstance(self.value, int):
            return self.value < was if self.least else self.value > was
        return self.value < was * (1 - slack) if self.least else self.value > was * (1 + slack)


class Device:
    """A GPU that is not there, for as long as the block lasts: what runs within is written down."""

    def __init__(self, arch: int) -> None:
        self.gpu = VirtualGPU(arch)

    def __enter__(self) -> Device:
        self._before = active.use(self.gpu)  # type: ignore[arg-type]
        return self

    def __exit__(self, *error: object) -> None:
        active.use(self._before)

    def launches(self, run: Run) -> list[Call]:
        """What `run()` launches when it is called for the second time: the first one makes states and tables."""
        run()
        self.gpu.calls = []
        run()
        found, self.gpu.calls = self.gpu.calls, None
        return found


def tensor(*shape: int, grad: bool = False, dtype: Any = tt.bfloat16) -> tt.Tensor:
    """A tensor of the device that is not there."""
    return tt.empty(shape, dtype=dtype, device="cuda", requires_grad=grad)


def whole(*shape: int) -> tt.Tensor:
    """Whole numbers, as classes or words: all zeros, for nothing is read."""
    return tt.zeros(shape, dtype=tt.int64, device="cuda")


def backward(output: tt.Tensor, *inputs: tt.Tensor) -> Run:
    """The gradients of `inputs`, and no others, from one of the output's shape and layout."""
    given = tt.empty_like(output)
    return lambda: tt.autograd.grad(output, inputs, given, retain_graph=True)


def steps() -> Iterator[tuple[str, Work]]:
    for work in works():
        if work.optimizer == "SGD":
            yield "LeNet step", work
        elif work.name.startswith("GPT-2"):
            yield "GPT-2 small step", work


# What is counted
def counted() -> Iterator[Figure]:
    """Launches and programs: nothing is compiled."""
    with Device(90) as device:
        yield from _launches(device)
        for name, work in steps():
            calls = device.launches(step(Recorded(), work))
            yield Figure(f"launches: {name}", len(calls), 32 if work.optimizer == "SGD" else 450)
        x = tensor(1 << 24, dtype=tt.float32)
        for name in ("cumsum", "cumprod", "logcumsumexp", "cummax"):
            run: Run = getattr(x, name)
            programs = max(math.prod(c.grid) for c in device.launches(lambda run=run: run(0)))  # type: ignore[misc,call-arg]
            yield Figure(f"programs: {name} of 16 M elements", programs, 132, least=True)


def _launches(device: Device) -> Iterator[Figure]:
    """Launches of single gradients, and of an optimizer's step."""

    def count(run: Run) -> int:
        return len(device.launches(run))

    x, weight, bias = tensor(16384, 768, grad=True), tensor(768, grad=True), tensor(768, grad=True)
    yield Figure("launches: layer norm backward", count(backward(F.layer_norm(x, (768,), weight, bias), x, weight, bias)), 2)

    def of_sum() -> tt.Tensor:
        return F.add_layer_norm(x, tensor(16384, 768, grad=True), (768,), weight, bias)[0]

    yield Figure("launches: add + layer norm, forward", count(of_sum), 1)
    yield Figure("launches: add + layer norm, backward", count(backward(of_sum(), x, weight, bias)), 2)
    matrix = tensor(3072, 768, grad=True)
    slope = tensor(3072, grad=True)
    with_bias = count(backward(F.linear(x, matrix, slope), x, matrix, slope))
    yield Figure("launches: bias gradient of linear", with_bias - count(backward(F.linear(x, matrix), x, matrix)), 0)

    def hidden() -> tt.Tensor:
        return F.linear_activation(x, matrix, slope, activation="gelu")

    yield Figure("launches: linear + gelu, forward", count(hidden), 1)
    yield Figure("launches: linear + gelu, backward", count(backward(hidden(), x, matrix, slope)), 4)
    images, kernel = tensor(32, 64, 56, 56), tensor(64, 64, 3, 3, grad=True)
    last = tensor(32, 56, 56, 64).permute(0, 3, 1, 2)
    yield Figure("launches: conv2d weight gradient, channels last", count(backward(F.conv2d(last, kernel, padding=1), kernel)), 2)
    yield Figure(
        "launches: conv2d weight gradient, two copies of C-ordered images", count(backward(F.conv2d(images, kernel, padding=1), kernel)), 4
    )
    norm, moved = (tensor(64, grad=True, dtype=tt.float32), tensor(64, grad=True, dtype=tt.float32)), tensor(32, 64, 56, 56, grad=True)

    def activated() -> tt.Tensor:
        return F.batch_norm_activation(images.requires_grad_(), None, None, *norm, moved, training=True)

    yield Figure("launches: batch norm + residual + relu, forward", count(activated), 3)
    yield Figure("launches: batch norm + residual + relu, backward", count(backward(activated(), images, *norm, moved)), 4)
    words, table = whole(16, 1024), tensor(50257, 768, grad=True)
    yield Figure("launches: embedding backward", count(backward(F.embedding(words, table), table)), 7)
    group = [tensor(768, 768, grad=True) for _ in range(100)]
    for p in group:
        p.grad = tt.empty_like(p)
    yield Figure("launches: AdamW, a group of 100", count(tt.optim.AdamW(group, lr=1e-3).step), 3)
    yield Figure("launches: clip_grad_norm_, a group of 100", count(lambda: tt.nn.utils.clip_grad_norm_(group, 1.0)), 9)


# What is compiled
class Asked(NamedTuple):
    """A run whose launches are compiled, and what is read of them."""

    name: str
    arch: int
    calls: list[Call]
    read: Callable[[list[Call], list[Forecast]], float]
    asked: float | None
    least: bool = False


def compiled(processes: int | None = None) -> Iterator[Figure]:
    """Instructions, bytes, tensor cores, waves and widths of accesses, by machine code."""
    asked = [*_memory_bound(), *_moved(), *_tensor_cores(), *_waves(), *_widths(), *_whole_step()]
    found: dict[tuple[int, Call], Forecast] = {}
    for arch in sorted({a.arch for a in asked}):
        calls = list({call: None for one in asked if one.arch == arch for call in one.calls})
        found |= {(arch, calls[n]): forecast for n, forecast in forecast_all(calls, arch, processes)}
    for one in asked:
        forecasts = [found[one.arch, call] for call in one.calls]
        wrong = [f.failure for f in forecasts if f.failure]
        if wrong:
            raise RuntimeError(f"{one.name}: {wrong[0]}")
        yield Figure(one.name, round(one.read(one.calls, forecasts), 3), one.asked, one.least)


def _lanes(nbytes: float) -> Callable[[list[Call], list[Forecast]], float]:
    """Lane instructions for each byte that must move, `nbytes` in all."""

    def read(calls: list[Call], forecasts: list[Forecast]) -> float:
        warps = sum(f.prediction.issue * ISSUE * RATES[f.report.arch].multiprocessors for f in forecasts)  # type: ignore[union-attr]
        return warps * LANES / nbytes

    return read


def _microseconds(calls: list[Call], forecasts: list[Forecast]) -> float:
    """All launches one after the other."""
    return sum(f.microseconds for f in forecasts)


def _memory_bound() -> Iterator[Asked]:
    """16-bit kernels that do little with much memory."""
    with Device(90) as device:
        x, y, n = tensor(8192, 4096), tensor(8192, 4096), 8192 * 4096 * 2
        weight, bias, labels = tensor(4096), tensor(4096), whole(8192)
        some: list[tuple[str, Run, int, float]] = [
            ("add", lambda: x + y, 3 * n, 1.2),
            ("softmax", lambda: x.softmax(-1), 2 * n, 4),
            ("cross-entropy", lambda: F.cross_entropy(x, labels), n, 4),
            ("layer norm", lambda: F.layer_norm(x, (4096,), weight, bias), 2 * n, 4),
            ("gelu", lambda: F.gelu(x), 2 * n, 6),
        ]
        for name, run, nbytes, asked in some:
            yield Asked(f"lane instructions a byte: {name}", 90, device.launches(run), _lanes(nbytes), asked)
        moved = tensor(32, 64, 56, 56), tensor(32, 64, 112, 112, grad=True)
        norm = tensor(64, dtype=tt.float32), tensor(64, dtype=tt.float32)
        more: list[tuple[str, Run]] = [
            ("argmax of rows, 67 MB", lambda: x.argmax(1)),
            ("var of rows, 67 MB", lambda: x.var(1)),
            ("batch norm + relu, 26 MB", lambda: F.batch_norm_activation(moved[0], None, None, *norm, training=True)),
            ("max_pool2d 3 x 3, 51 MB", lambda: F.max_pool2d(moved[1].detach(), 3, 2, 1)),
            ("max_pool2d 3 x 3, backward", backward(F.max_pool2d(moved[1], 3, 2, 1), moved[1])),
        ]
        for name, run in more:
            yield Asked(f"us: {name}", 90, device.launches(run), _microseconds, None)


def _memory(calls: list[Call], forecasts: list[Forecast]) -> float:
    """Bytes between memory and the GPU."""
    return sum(f.prediction.memory for f in forecasts if f.prediction is not None)


def _moved() -> Iterator[Asked]:
    """Bytes that come from memory and go there, over those of what must be read, as often as it must, and written."""
    with Device(90) as device:
        x, weight, bias, labels = tensor(8192, 4096, grad=True), tensor(4096, grad=True), tensor(4096, grad=True), whole(8192)
        square, few, images = tensor(4096, 4096, grad=True), tensor(64, 64, 3, 3, grad=True), tensor(32, 56, 56, 64).permute(0, 3, 1, 2)
        scale, shift = (tensor(64, grad=True, dtype=tt.float32) for _ in range(2))
        q, k, v = (tensor(16, 12, 1024, 64, grad=True) for _ in range(3))
        table, words = tensor(50257, 768, grad=True), whole(16, 1024)
        images.requires_grad_()

        def normed() -> tt.Tensor:
            return F.batch_norm(images, None, None, scale, shift, training=True)

        def attention() -> tt.Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        norm = F.layer_norm(x, (4096,), weight, bias)
        rows = tensor(16, 1024, 768)
        runs: list[tuple[str, Run, list[tt.Tensor]]] = [
            ("gelu", lambda: F.gelu(x), [x, x]),
            ("gelu, gradient", backward(F.gelu(x), x), [x, x, x]),
            ("softmax", lambda: x.softmax(-1), [x, x]),
            ("softmax, gradient", backward(x.softmax(-1), x), [x, x, x]),
            ("layer norm", lambda: F.layer_norm(x, (4096,), weight, bias), [x, x]),
            ("layer norm, gradients", backward(norm, x, weight, bias), [x, x, x]),
            ("cross-entropy", lambda: F.cross_entropy(x, labels), [x]),
            ("cross-entropy, gradient", backward(F.cross_entropy(x, labels), x), [x, x]),
            ("linear", lambda: F.linear(x, square), [x, square, x]),
            ("linear, input's gradient", backward(F.linear(x, square), x), [x, square, x]),
            ("linear, weight's gradient", backward(F.linear(x, square), square), [x, x, square]),
            ("attention", attention, [q, k, v, q]),
            ("attention, gradients", backward(attention(), q, k, v), [q, k, v, q, q, q, k, v]),
            ("conv2d", lambda: F.conv2d(images, few, padding=1), [images, few, images]),
            ("conv2d, input's gradient", backward(F.conv2d(images, few, padding=1), images), [images, few, images]),
            ("conv2d, weight's gradient", backward(F.conv2d(images, few, padding=1), few), [images, images, few]),
            ("batch norm, two reads", normed, [images, images, images]),
            ("batch norm, gradients, two reads", backward(normed(), images, scale, shift), [images] * 5),
            ("embedding", lambda: F.embedding(words, table), [words, rows, rows]),
        ]
        for name, run, needed in runs:
            nbytes = sum(t.nbytes for t in needed)
            yield Asked(f"bytes / needed: {name}", 90, device.launches(run), lambda c, f, n=nbytes: _memory(c, f) / n, 1.1)  # type: ignore[misc]


def _ratio(calls: list[Call], forecasts: list[Forecast]) -> float:
    """Clocks to issue instructions / clocks of the tensor cores, of the launch that takes longest."""
    main = max((f for f in forecasts if f.prediction is not None), key=lambda f: f.microseconds).prediction
    assert main is not None
    return main.issue / main.tensor if main.tensor else math.inf


def _loop_ratio(calls: list[Call], forecasts: list[Forecast]) -> float:
    """The same of one pass of the main loop, the longest that multiplies, of the launch that takes longest: what stands before and behind it is left out."""
    call, main = max(zip(calls, forecasts, strict=True), key=lambda both: both[1].microseconds)
    assert main.prediction is not None
    assert main.report is not None
    loop = max((loop.instructions for loop in main.report.loops if loop.tensor), default=0)
    if not loop or not main.prediction.tensor:
        return math.inf
    rounds = -(-math.prod(call.grid) // RATES[main.report.arch].multiprocessors)
    return loop * -(-rounds * main.report.warps // ISSUE) * main.prediction.passes / main.prediction.tensor


def _main(read: Callable[[Forecast], float]) -> Callable[[list[Call], list[Forecast]], float]:
    return lambda calls, forecasts: read(max(forecasts, key=lambda f: f.microseconds))


def _tensor_cores() -> Iterator[Asked]:
    with Device(90) as device:
        a, b = tensor(4096, 4096), tensor(4096, 4096)
        product = device.launches(lambda: a @ b)
        yield Asked("issue / tensor clocks: matmul 4096", 90, product, _ratio, 0.2)
        yield Asked("instructions of the loop: matmul 4096", 90, product, _main(lambda f: f.report.loop), 100)  # type: ignore[union-attr]
        yield Asked("registers: matmul 4096", 90, product, _main(lambda f: f.report.registers), 168)  # type: ignore[union-attr]
        yield Asked("stages: matmul 4096", 90, product, lambda calls, _: max(c.spec.num_stages for c in calls), 4, least=True)
        images, kernel = tensor(32, 64, 56, 56, grad=True), tensor(64, 64, 3, 3, grad=True)
        for channels, side in ((64, 56), (256, 14)):
            images, kernel = tensor(32, channels, side, side, grad=True), tensor(channels, channels, 3, 3, grad=True)
            forward = device.launches(lambda x=images, w=kernel: F.conv2d(x.detach(), w.detach(), padding=1))  # type: ignore[misc]
            weight = device.launches(backward(F.conv2d(images, kernel, padding=1), kernel))
            for read, what in ((_ratio, "issue / tensor clocks"), (_loop_ratio, "the same of the main loop")):
                yield Asked(f"{what}: conv2d of {channels} channels", 90, forward, read, 0.4)
                yield Asked(f"{what}: conv2d weight gradient of {channels} channels", 90, weight, read, 0.6)
        x, w = tensor(32, 56, 56, 256).permute(0, 3, 1, 2), tensor(256, 1, 3, 3)
        depthwise = device.launches(lambda: F.conv2d(x, w, padding=1, groups=256))
        yield Asked("us: depthwise conv2d, channels last, 103 MB", 90, depthwise, _microseconds, None)


def _tail(calls: list[Call], forecasts: list[Forecast]) -> float:
    """The share of the last wave's places that is filled, over all waves, by time."""
    total = sum(f.microseconds for f in forecasts)
    return sum(f.microseconds * f.prediction.tail for f in forecasts if f.prediction is not None) / total


def _waves() -> Iterator[Asked]:
    """The matrix products of a step of GPT-2 small: each layer's, its input's gradient, its weight's gradient."""
    rows, width = GPT2_SMALL.batch * GPT2_SMALL.length, GPT2_SMALL.width
    layers = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width), (GPT2_SMALL.words, width))
    for arch in (80, 90, 100):
        with Device(arch) as device:
            calls = []
            for out, inner in layers:
                x, weight = tensor(rows, inner, grad=True), tensor(out, inner, grad=True)
                y = F.linear(x, weight)
                calls += device.launches(lambda x=x, weight=weight: F.linear(x, weight))  # type: ignore[misc]
                calls += device.launches(backward(y, x, weight))
        yield Asked(f"wave efficiency: GPT-2 small on {RATES[arch].multiprocessors} multiprocessors", arch, calls, _tail, 0.85, least=True)


def _wide(calls: list[Call], forecasts: list[Forecast]) -> float:
    """The share of the bytes that programs move which goes by 16 bytes or more."""
    (f,) = forecasts
    assert f.prediction is not None
    return f.prediction.wide


def _widths() -> Iterator[Asked]:
    with Device(90) as device:
        for length in ROWS:
            x, weight, bias, labels = tensor(4096, length), tensor(length), tensor(length), whole(4096)
            some: list[tuple[str, Run]] = [
                ("softmax", lambda x=x: x.softmax(-1)),  # type: ignore[misc]
                ("layer norm", lambda x=x, w=weight, b=bias, n=length: F.layer_norm(x, (n,), w, b)),  # type: ignore[misc]
                ("cross-entropy", lambda x=x, labels=labels: F.cross_entropy(x, labels)),  # type: ignore[misc]
            ]
            for name, run in some:
                main = max(device.launches(run), key=lambda c: sum(c.sizes()))
                yield Asked(f"bytes by 16 or more: {name}, rows of {length}", 90, [main], _wide, 0.95, least=True)
        images = tensor(32, 56, 56, 64).permute(0, 3, 1, 2)
        kernel = tensor(64, 64, 3, 3)
        calls = device.launches(lambda: F.conv2d(images, kernel, padding=1))
        yield Asked("bytes by 16 or more: conv2d, channels last", 90, [max(calls, key=lambda c: sum(c.sizes()))], _wide, 0.95, least=True)


def _whole_step() -> Iterable[Asked]:
    (work,) = (w for name, w in steps() if name.startswith("GPT-2"))
    with Device(90) as device:
        calls = device.launches(step(Recorded(), work))
    return [
        Asked("GB: GPT-2 small step", 90, calls, lambda calls, forecasts: _memory(calls, forecasts) / 1e9, 60),
        Asked("predicted ms: GPT-2 small step", 90, calls, lambda calls, forecasts: _microseconds(calls, forecasts) / 1e3, None),
    ]
