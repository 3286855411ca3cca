"""Inputs that do not lie in C order: transposed, permuted, channels last, with gaps, expanded. What is asked of the answers is above all their strides."""

from __future__ import annotations

# b is 2 x 3 x 3, p 1 x 2 x 5 x 5, w 3 x 2 x 3 x 2
_TURNED = {
    "transposed": "b.transpose(0, 2)", "permuted": "b.permute(1, 2, 0)", "rotated": "w.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)[..., 0]",
    "gaps": "w[:, :, ::2, 1]", "turned gaps": "w.permute(3, 0, 1, 2)[:, :, :, ::2][..., 0]",
}  # fmt: skip
_FUNCTIONS = (
    # by index: the elements' own order, and that of the indices
    "{x}[n[:2] % 2]", "{x}[:, n[:2] % 2]", "{x}[:, :, n[:1] * 0]", "{x}[[0, 1]]", "{x}[:, [1, 0, 1]]", "{x}[(n[:2] % 2).reshape(2, 1), (n[:2] % 2)]", "{x}[n[:2] % 2, :, n[:2] * 0]",
    "{x}[:, (n.expand(2, 3) % 2).t()]", "{x}[{x} > 0]", "{x}[0][:, n[:1] * 0]", "{x}.index_select(1, n[:2] % 2)", "T.take_along_dim({x}, ({x} > 0).long(), 1)",
    # a part replaced in a copy that keeps the strides
    "T.select_scatter({x}, {x}[:, 0] * 2, 1, 0)", "T.slice_scatter({x}, {x}[:, :1] * 2, 1, 1, 2)", "T.diagonal_scatter({x}, T.diagonal({x}) * 2)",
    # functions made of several ops, and those whose result is in C order whatever is given
    "T.renorm({x}, 2, 0, 1.0)", "T.mvlgamma({x}.abs() + 3, 2)", "F.one_hot(({x} > 0).long(), 3)", "T.normal({x}.detach() * 0, {x}.detach().abs()).stride()", "{x}.detach().conj_physical()",
    "T.complex({x}.cpu(), {x}.cpu() * 2)", "T.lerp({x}, {x} * 2, 0.3)", "T.lerp({x}, {x} * 2, {x}.sigmoid())", "T.einsum('ijk,ljk->ilj', {x}, {x})", "T.einsum('ijk->kij', {x})", "T.bmm({x}, {x}.mT)",
    "{x}.clone()", "T.zeros_like({x})", "T.empty_like({x}).stride()", "{x}.contiguous()", "T.cat([{x}, {x}], 1)", "T.stack([{x}, {x}])", "T.where({x} > 0, {x}, {x}.contiguous())", "{x}.sort(1)", "{x}.topk(1, 1)",
    "{x}.sum(1, keepdim=True)", "{x}.amax(0)", "{x}.cumsum(1)", "{x}.softmax(1)", "T.view_copy({x}, ({x}.numel(),))", "T.histogram({x}.detach().cpu(), 3)", "T.histogramdd({x}.detach().cpu(), [2] * {x}.shape[-1])",
    "T.fft.fft({x}.cpu())", "T.fft.fft({x}.cpu(), dim=0)", "T.fft.rfft({x}.cpu(), dim=1)", "T.fft.fft2({x}.cpu(), dim=(0, 1))", "T.fft.irfft({x}.cpu(), dim=1)", "{x}.flip(1)", "T.linalg.vector_norm({x}, dim=1)",
)  # fmt: skip
_HEADS = "w.reshape(2, 3, 3, 2)"  # (batch, length, heads, features)
_ATTENTION = (
    *(f"F.scaled_dot_product_attention({q}, {q}, {q} * 2)" for q in (
        f"{_HEADS}.transpose(1, 2)", f"{_HEADS}.permute(2, 1, 0, 3)", f"{_HEADS}.contiguous(memory_format=T.channels_last)", f"{_HEADS}.transpose(1, 2)[:, :2]",
        f"{_HEADS}.transpose(1, 2)[:, :, :1]", f"{_HEADS}[0].transpose(0, 1)", f"{_HEADS}[:1].transpose(1, 2).expand(2, 3, 3, 2)", f"{_HEADS}.transpose(1, 2)[:, :, :, :1]",
    )),
    *(f"F.scaled_dot_product_attention({_HEADS}.transpose(1, 2), {_HEADS}, {_HEADS}{rest})" for rest in (
        "", ", is_causal=True", "[..., :1]", ", T.ones(3, 3, device=on) > 0", ", T.ones(3, 3, 3, device=on) > 0", ", T.ones(2, 1, 3, 3, device=on) > 0", ", m", ", scale=-1.0",
    )),
    f"F.scaled_dot_product_attention({_HEADS}.transpose(1, 2), {_HEADS}, {_HEADS}, dropout_p=0.5).stride()",
    f"F.scaled_dot_product_attention({_HEADS}.transpose(1, 2), {_HEADS}[:, :1], {_HEADS}[:, :1], enable_gqa=True)",
)  # fmt: skip
_ROWS = "b.transpose(1, 2)"  # (batch, channels, width) whose channels lie innermost
_IMAGES = "T.cat([p, p * 2, p * 3], 0).contiguous(memory_format=T.channels_last)"
_ONE = "p.contiguous(memory_format=T.channels_last)"
_VOLUMES = "T.stack([T.cat([p, p * 3], 0), T.cat([p * 2, p], 0)], 2).contiguous(memory_format=T.channels_last_3d)"
# functions that PyTorch makes of others, whose operands come in another order there, or begin with a copy in C order
_COMPOSED = (
    *(f"F.{f}({a}, {b}, reduction='none'{more})" for f, more in (("kl_div", ""), ("kl_div", ", log_target=True"), ("binary_cross_entropy_with_logits", ""), ("hinge_embedding_loss", ""))
        for a, b in (("x.t()", "y.t().contiguous().sigmoid()"), ("x.t().contiguous()", "y.t().sigmoid()"), ("b.transpose(0, 2)", "b.permute(2, 0, 1).contiguous().transpose(1, 2).sigmoid()"))),
    "F.binary_cross_entropy_with_logits(x.t(), y.t().contiguous().sigmoid(), reduction='none', weight=v.detach()[:2])", "F.hinge_embedding_loss(x.t(), y.t()[:, :1].sign(), reduction='none')",
    *(f"F.{f}({x})" for f in ("logsigmoid", "rrelu") for x in ("x.t()", "b.transpose(0, 2)", _IMAGES)), "F.rrelu(x.t().detach(), training=True).stride()",
    *(f"{f}" for f in ("2 ** x.t()", "0 ** x.t().abs()", "T.pow(2, b.transpose(0, 2))", "T.float_power(2, x.t())", "x.t() ** 2", "T.isreal(b.transpose(0, 2))", "T.take(x, i.t() % 6)")),
    *(f.format(x=x) for x in (_IMAGES, _ONE, _VOLUMES) for f in ("F.instance_norm({x})", "F.instance_norm({x}, weight=v[:2], bias=v[1:])", "F.rms_norm({x}, {x}.shape[-1:])", "F.channel_shuffle({x}, 2)",
        "F.instance_norm({x}, T.zeros(2, dtype=T.float64, device=on), T.ones(2, dtype=T.float64, device=on), use_input_stats=False)",
        "{x}.roll(1, 0)", "{x}.roll(1, 2)", "{x}.roll(0, 2)", "{x}.roll((1, 2), (2, 3))", "{x}.roll((1, 5), (2, 3))", "{x}.roll(1)")),
)  # fmt: skip
# amounts of padding that cut, change nothing or add, of what has a batch and of what may be a volume without one
_PADDED = (
    *(f"F.pad({x}, ({amounts}), mode='{mode}')" for x in (_IMAGES, "w.permute(0, 3, 1, 2)", "b.transpose(0, 2)", "b.transpose(1, 2)")
        for amounts in ("0, 0, 0, 0", "-1, 0, 0, 0", "1, 0, 0, 1") for mode in ("constant", "reflect", "replicate", "circular")),
    *(f"F.pad({_IMAGES}, ({amounts}), mode='{mode}')" for amounts in ("0, 0, 0, 0, 0, 0", "1, 1, 1, 1, 1, 1") for mode in ("constant", "reflect", "replicate", "circular")),
    "F.pad(x.t(), (0, 0))", "F.pad(x.t(), (-1, 0))", "F.pad(x.t(), (1, 0))",
)  # fmt: skip
# rows are images of one row: channels that lie innermost stay so where a copy in C order is none, and where the weights' do
_CHANNEL = "x.t().reshape(3, 2, 1).mT"  # one channel: in C order, and channels last, too
_OF_ROWS = (
    *(f"F.{f}({x}, {w})" for f, x, w in (("conv1d", "b", "m.reshape(3, 3, 1).mT.reshape(3, 3, 1)"), ("conv1d", "b", "b.transpose(1, 2)"), ("conv1d", "b", "b[:, :2].transpose(1, 2)"),
        ("conv1d", _ROWS, "b"), ("conv1d", _CHANNEL, "x[:, :1].expand(2, 2).reshape(2, 1, 2)"), ("conv1d", "x.reshape(1, 1, 6).mT", "y.reshape(1, 6, 1)"), ("conv_transpose1d", "b", "m.reshape(3, 1, 3).mT"),
        ("conv_transpose1d", _CHANNEL, "y.reshape(1, 2, 3)"), ("conv_transpose1d", "b", "m.reshape(3, 3, 1)"), ("conv_transpose1d", _ROWS, "m.reshape(3, 3, 1)"))),
    f"F.conv1d({_CHANNEL}, y.reshape(2, 1, 3), padding='same')", f"F.conv1d({_CHANNEL}, y.reshape(2, 1, 3), v[:2], padding=1)", f"F.conv1d({_CHANNEL}[0], y.reshape(2, 1, 3), padding=1)",
    *(f"F.max_pool1d({x}, {given})" for x in (_ROWS, f"{_ROWS}.detach()", f"{_ROWS}[:1]", f"{_ROWS}[:1].detach()", f"{_ROWS}[0]") for given in ("1", "2, 1", "2, 1, return_indices=True")),
    *(f"F.{f}({_ROWS}[:1], 2)" for f in ("avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d")), f"F.lp_pool1d({_ROWS}[:1], 2, 2)",
    *(f"F.{f}(x[:1].mT[None], {n})" for f in ("adaptive_avg_pool1d", "adaptive_max_pool1d") for n in (1, 2)), *(f"F.interpolate({x}, scale_factor=2, mode='area')" for x in ("x[:1].mT[None]", "m[:2, :2, None]", "m[:2, :2].contiguous()[:, :, None]")),
    *(f"F.interpolate(x[:1].reshape(1, 1, 1, 3).permute(0, 3, 1, 2), (1, 2), mode='{mode}')" for mode in ("area", "nearest", "bilinear")),
)  # fmt: skip

EXPRESSIONS = [
    *_COMPOSED, *_PADDED, *_OF_ROWS,
    *_ATTENTION,
    *(f.format(x=x) for x in _TURNED.values() for f in _FUNCTIONS),
    *(f"F.glu({x}, {d})" for x, d in (("i.double().t()[:2]", 0), ("w.permute(1, 3, 2, 0)", 0), ("w.permute(1, 3, 2, 0)", 1), ("w[::2, :, ::2].permute(2, 3, 1, 0)", 1))),
    *(f.format(x=_ROWS) for f in ("F.avg_pool1d({x}, 2)", "F.adaptive_avg_pool1d({x}, 2)", "F.adaptive_max_pool1d({x}, 2, return_indices=True)", "F.interpolate({x}, 2, mode='area')", "F.lp_pool1d({x}, 2, 2)")),
    *(f.format(x=_IMAGES) for f in ("F.max_unpool2d(*F.max_pool2d({x}, 2, return_indices=True), 2)", "F.avg_pool2d({x}, 2)", "F.adaptive_max_pool2d({x}, 2)", "{x}[[0, 2]]", "{x}[:, [0, 1]]", "{x}[..., [0, 2, 4]]",
        "{x}[(n > 0)]", "T.native_batch_norm({x}, None, None, None, None, True, 0.1, 1e-5)", "{x} + 1", "{x}[:1].norm(dim=0)", "{x}[:1].norm(p=3, dim=0, keepdim=True)", "T.cat([{x}, {x}], 1)", "F.batch_norm({x}, None, None, training=True)")),
    *(f"T.addmm({c}, m, m.t() * 2)" for c in ("m.t()", "m.t()[:1]", "m.t()[:, :1]")), "T.addmm(m.t(), m, m, beta=0.5, alpha=2)",
    *(f"T.{f}({c}, b.mT, b)" for f, c in (("addbmm", "m.t()"), ("baddbmm", "b.permute(0, 2, 1)"), ("baddbmm", "m.t()"))), "T.addr(m.t(), v, v * 2)", "T.addmv(v, m.t(), v)", "T.baddbmm(b.permute(0, 2, 1), b, b, beta=0)",
    "T.repeat_interleave(b.transpose(0, 2), T.tensor([1, 2, 1], device=on), 1)", "T.repeat_interleave(b.transpose(0, 2), 2, 1)", "F.avg_pool3d(T.stack([p, p * 2], 2).contiguous(memory_format=T.channels_last_3d), 2)", "T.native_batch_norm(b.transpose(0, 2), None, None, None, None, True, 0.1, 1e-5)",
    "T._softmax_backward_data(m.t(), m.t().softmax(1), 1, T.float64)", "T.as_strided_scatter(m.detach()[::2], m.detach()[0, :2], (2,), (6,))", "T.as_strided_scatter(m.detach().t(), m.detach()[0, :2], (2,), (1,))",
]  # fmt: skip
MEANT = {
    f"T.einsum('ijk,ljk->ilj', {x}, {x})": "a product of einsum lies in C order, whatever the order of its joins" for x in _TURNED.values()
}
