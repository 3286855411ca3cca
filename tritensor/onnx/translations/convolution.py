"""Convolutions and transposed convolutions in ONNX."""

from __future__ import annotations

from typing import Any

from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.arithmetic import float_kind


def single(g: Graph, *xs: Value | None) -> list[Value | None]:
    """Values in a type that ONNX convolves and pools: bfloat16 as float32."""
    return [None if x is None else g.cast(x, float_kind(x)) for x in xs]


def _convolution(name: str) -> None:
    @translates(name)
    def convolve(
        g: Graph, x: Value, weight: Value, bias: Value | None = None, *, stride: Any, padding: Any, dilation: Any, groups: int = 1
    ) -> Any:  # fmt: skip
        y = g.op(
            "Conv", *single(g, x, weight, bias), kernel_shape=list(weight.shape[2:]), strides=list(stride), pads=[*padding, *padding],
            dilations=list(dilation), group=groups,
        )  # fmt: skip
        return g.cast(y, x.dtype)

    @translates(f"{name}_relu")
    def with_relu(g: Graph, x: Value, weight: Value, bias: Value | None = None, **attrs: Any) -> Any:
        y = convolve(g, x, weight, bias, **attrs)
        return g.op("Relu", y, shape=y.shape)

    @translates(f"{name}_input")
    def transposed(
        g: Graph, x: Value, weight: Value, bias: Value | None = None, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1
    ) -> Any:  # fmt: skip
        """What is missing to `size` is added at the end of each axis."""
        kernel = weight.shape[2:]
        extra = [
            g.number_of(n - ((m - 1) * s - 2 * p + d * (k - 1) + 1), "the output's padding")
            for n, m, s, p, d, k in zip(size, x.shape[2:], stride, padding, dilation, kernel, strict=True)
        ]
        y = g.op(
            "ConvTranspose", *single(g, x, weight, bias), kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *padding],
            dilations=list(dilation), group=groups, output_padding=extra if any(extra) else None,
        )  # fmt: skip
        return g.cast(y, x.dtype)


for _axes in (1, 2, 3):
    _convolution(f"conv{_axes}d")
