"""nn.functional: activations, losses, convolution, pooling, normalization."""

from __future__ import annotations

EXPRESSIONS = [
    "F.relu(x)", "F.sigmoid(x)", "F.tanh(x)", "F.silu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.elu(x)", "F.elu(x, 0.5)", "F.leaky_relu(x)", "F.leaky_relu(x, 0.3)", "F.softplus(x)", "F.softplus(x, 2, 1)", "F.softmax(x, 1)", "F.log_softmax(x, 0)",
    "F.mse_loss(x, y)", "F.mse_loss(x, y, reduction='sum')", "F.mse_loss(x, y, reduction='none')", "F.mse_loss(x, y, reduction='most')", "F.l1_loss(x, y)", "F.mse_loss(x, v)", "F.l1_loss(x, v)", "F.l1_loss(x, y, reduction='none')", "F.binary_cross_entropy_with_logits(x, y / 9)",
    "F.binary_cross_entropy_with_logits(x, y / 9, weight=v.detach(), pos_weight=v.detach().abs())", "F.binary_cross_entropy_with_logits(x, y / 9, reduction='sum')", "F.cross_entropy(x, n[:2])", "F.cross_entropy(x, n[:2], reduction='none')",
    "F.softmax(x.sum(), 0)", "F.log_softmax(x.sum(), -1)", "F.log_softmax(x.sum().half(), 0)", "F.softmax(x.sum(), 1)", "F.layer_norm(x, (3,), v[:2])", "F.layer_norm(x, (3,), v, m)",
    "F.cross_entropy(x[:, :1], x[:, :1] * 0 + 1)", "F.cross_entropy(x[:, :1], n[:2] * 0)", "F.cross_entropy(x[:, :1], y[:, :1], reduction='sum')",
    "F.cross_entropy(x, n[:2], reduction='sum')", "F.cross_entropy(x.float(), n[:2], reduction='sum')", "F.cross_entropy(x.float(), n[:2])",
    "F.cross_entropy(x, n[:2], reduction='sum', label_smoothing=0.2)", "F.cross_entropy(x, n[:2], weight=v.detach().abs())", "F.cross_entropy(x, n[:2], weight=v.detach().abs(), label_smoothing=0.1)", "F.cross_entropy(x, n[:2], ignore_index=0)",
    "F.cross_entropy(x, y / y.sum(1, keepdim=True))", "F.cross_entropy(x, y, label_smoothing=0.3, reduction='sum')", "F.cross_entropy(x, n)", "F.cross_entropy(b, n[:2].reshape(2, 1).expand(2, 3))", "F.cross_entropy(v, n[1])", "F.nll_loss(x, n[:2])",
    "F.nll_loss(x, n[:2], weight=v.detach().abs(), reduction='sum')", "F.nll_loss(x, n[:2], ignore_index=1)", "F.one_hot(n)", "F.one_hot(n, 5)", "F.one_hot(n, 2)", "F.normalize(x)", "F.normalize(x, p=1, dim=0)", "F.normalize(x * 0)", "F.layer_norm(x, (3,))",
    "F.layer_norm(x, (3,), v, v)", "F.layer_norm(x, (2, 3), eps=0.1)", "F.layer_norm(x, (2,))", "F.embedding(n, m)", "F.embedding(n, m, padding_idx=1)", "F.embedding(n + 5, m)", "F.pad(x, (1, 2))", "F.pad(x, (1, -1), value=3.0)", "F.pad(x, (0, 0, 1, 1))",
    "F.pad(p, (1, 1, 2, 2), mode='reflect')", "F.pad(p, (1, 0, 0, 2), mode='replicate')", "F.pad(p, (2, 1, 1, 0), mode='circular')", "F.pad(x, (1,))", "F.max_pool2d(p, 2)", "F.max_pool2d(p, 3, 1, 1)", "F.max_pool2d(p, (2, 3), stride=(1, 2), ceil_mode=True)",
    "F.max_pool2d(p, 2, dilation=2)", "F.max_pool2d(p, 2, return_indices=True)", "F.max_pool2d(p, 9)", "F.avg_pool2d(p, 2)", "F.avg_pool2d(p, 3, 2, 1)", "F.avg_pool2d(p, 3, 2, 1, count_include_pad=False)", "F.avg_pool2d(p, 2, ceil_mode=True)",
    "F.avg_pool2d(p, 2, divisor_override=3)", "F.conv2d(p, w)", "F.conv2d(p, w, v, padding=1)", "F.conv2d(p, w, stride=2, padding=(1, 0), dilation=(1, 2))", "F.conv2d(p, w[:, :1], groups=2)", "F.conv2d(p, w[:2, :1], v[:2], groups=2)", "F.conv2d(p[0], w)",
    "F.conv2d(p, w, padding='same')", "F.conv2d(p, w, padding='valid')", "F.conv2d(x, w)", "F.dropout(x, 0.5, False)", "F.dropout(x, 0.0)", "F.dropout(x, 1.0)", "F.dropout(x, 1.5)", "T.dropout(x, 0.3, False)",
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT: dict[str, str] = {
    **dict.fromkeys(("F.mse_loss(x, v)", "F.l1_loss(x, v)"), "a loss of two shapes averages over pairs that were never meant: refused"),
}
