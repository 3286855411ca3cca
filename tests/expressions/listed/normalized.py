"""Normalization with its statistics, softmax's gradient, hashes, chunks in rows: PyTorch's operators under their own names."""

from __future__ import annotations

EXPRESSIONS = [
    *[f"T.native_layer_norm(x, {a})" for a in ("(3,), v, v * 2, 1e-5", "(2, 3), None, None, 0.5", "(3,), None, v, -0.5", "(2,), None, None, 1e-5", "(), None, None, 1e-5")],
    "T.native_layer_norm(f, (3,), None, None, 1e-5)",
    *[f"T.native_group_norm(b, {a})" for a in ("v, v, 2, 3, 3, 1, 1e-5", "None, None, 2, 3, 3, 3, 0.5", "v, None, 2, 3, 3, 1, 1e-5", "v, v, 2, 3, 3, 2, 1e-5", "v, v, 3, 3, 3, 1, 1e-5")],
    *[f"T.native_batch_norm(b, {a})" for a in ("v, v, None, None, True, 0.1, 1e-5", "None, None, v.detach(), v.detach() ** 2, False, 0.1, 1e-5", "v, None, None, None, True, 0.1, 0.5")],
    "[(m_, T.native_batch_norm(b, v, v, m_, s_, True, 0.25, 1e-5), s_) for m_, s_ in [(v.detach() * 0, v.detach() ** 2)]]",
    "T._native_batch_norm_legit(b, v, v, True, 0.1, 1e-5)", "T._native_batch_norm_legit(b, v, v, v.detach(), v.detach() ** 2, False, 0.1, 1e-5)",
    "T._softmax_backward_data(x, y, 1, T.float64)", "T._softmax_backward_data(x, y, -2, T.float64)", "T._softmax_backward_data(v, v, 0, T.float64)",
    "T._safe_softmax(x, 1)", "T._safe_softmax(s[:3], 0)", "T._safe_softmax(x * 0 - float('inf'), 1)", "T._safe_softmax(i, 0)", "T._safe_softmax(x, 1, T.float32)",
    *[f"T.hash_tensor({a})" for a in ("x.detach()", "f.detach()", "i", "k", "u", "i, 0", "i, 1, keepdim=True", "i, (0, 1), keepdim=True", "o.detach()", "e.detach()", "i, mode=1", "i, 2")], "i.hash_tensor(1)",
    "T._chunk_cat([x, y], 0, 2)", "T._chunk_cat([x, y[:, :1]], 1, 2)", "T._chunk_cat((v, v[:1]), 0, 2)", "T._chunk_cat([x, v], 0, 2)", "T._chunk_cat([], 0, 2)", "T._chunk_cat([x], 0, 0)", "T._chunk_cat([b, b], -2, 2)",
    *[f"T.masked.median({a})" for a in ("x, mask=k", "x, 0, mask=k", "x, 1, keepdim=True", "i, 1", "i, 1, mask=k * False", "x, mask=k * False", "x, 3")],
    "x.clone().as_strided_((2,), (2,), 1)", "T.as_strided_(x.clone(), (3,), (1,))", "x.clone()[1:].as_strided_((2,), (1,), 0)", "x.clone().as_strided_((7,), (1,))",
    "T.nextafter(v, v + 1)", "T.nextafter(v, v)", "T.sigmoid(z.detach()).abs()", "T.aminmax(f, dim=0, out=(f[0].detach() * 1, v.detach() * 1))",
]  # fmt: skip
