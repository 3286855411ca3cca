"""Creation and conversion."""

from __future__ import annotations

EXPRESSIONS = [
    "T.tensor([1, 2])", "T.tensor([1.0, 2])", "T.tensor([[1, 2], [3, 4]], dtype=T.float64)", "T.tensor(True)", "T.tensor([])", "T.tensor([[1], [2, 3]])", "T.tensor(3.5, dtype=T.int32)", "T.as_tensor(x)", "T.as_tensor([1, 2])", "T.asarray([1.5])",
    "T.zeros(2, 3)", "T.zeros(2, dtype=T.float32, out=T.empty(2))", "T.zeros(2, dtype=T.int64, out=T.empty(2))", "T.ones(2, out=T.empty(2, dtype=T.int16))", "T.full((2,), 3, out=T.zeros(2))", "T.arange(3, out=T.zeros(3))", "T.zeros((2,), dtype=T.int8)", "T.ones(2, dtype=T.bool)", "T.full((2,), 7)", "T.full((2,), 1.5)", "T.full((2,), True)", "T.full((2,), 3, dtype=T.float16)", "T.zeros_like(x)", "T.ones_like(i)", "T.full_like(x, 2)",
    "T.full_like(i, 2, dtype=T.float32)", "T.empty(2, 3).shape", "T.empty_like(x.t()).stride()", "T.eye(3)", "T.eye(2, 3, dtype=T.int64)", "T.arange(5)", "T.arange(1, 6, 2)", "T.arange(0, 1, 0.25)", "T.arange(3, 0, -1)", "T.arange(0, 5, dtype=T.float32)",
    "T.arange(3, 0)", "T.linspace(0, 1, 5)", "T.linspace(3, -3, 4, dtype=T.float64)", "T.linspace(0, 1, 1)", "T.logspace(0, 2, 3)", "T.logspace(0, 3, 4, base=2)", "T.scalar_tensor(2.5)", "x.new_zeros(2)", "x.new_ones((2, 1))", "i.new_full((2,), 4)", "x.new_tensor([1])",
    "x.new_empty(3).shape", "x.to(T.float32)", "x.to(T.int64)", "x.float()", "x.double()", "x.half()", "x.int()", "x.long()", "x.bool()", "x.bfloat16()", "i.short()", "i.char()", "u.byte()", "x.type_as(f)", "x.to(f)", "x.cpu() * 1", "T.astype(x, T.int32) ~ x.to(T.int32)",
    "x.tolist()", "o.item()", "x.item()", "x.is_floating_point()", "i.is_floating_point()", "x.is_complex()", "x.dtype", "x.device.type == on", "x.requires_grad", "x.detach().requires_grad", "x.clone().requires_grad", "f.grad", "x.is_leaf", "(x + 1).is_leaf",
    "x.clone().fill_(3)", "x.clone().zero_()", "x.clone().copy_(v)", "x.detach().clone().copy_(i)", "x.clone().copy_(m)", "len(x)", "len(o)", "bool(o)", "float(o)", "int(o)", "bool(x)", "[r.sum().item() for r in x]", "2.0 in T.ones(2) * 2", "T.from_numpy(x.detach().cpu().numpy())",
    "x.detach().cpu().numpy().shape", "T.is_tensor(x)", "T.is_tensor(1)", "T.is_floating_point(x)", "T.numel(x)", "T.get_default_dtype()", "T.randperm(4).sort().values.tolist() if hasattr(T, 'sort') else [0, 1, 2, 3] ~ [0, 1, 2, 3]",
]  # fmt: skip
