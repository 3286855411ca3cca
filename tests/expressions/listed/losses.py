"""Losses and lookups, one call for each kernel and each complaint of one; all their arguments are in loss_arguments.py."""

from __future__ import annotations

EXPRESSIONS = [
    "F.mse_loss(x, y)",
    "F.smooth_l1_loss(x, y, beta=0.5)",
    "F.huber_loss(x, y, delta=0.3)",
    "F.soft_margin_loss(x, y.sign().detach())",
    "F.kl_div(x, y, reduction='batchmean')",
    "F.kl_div(x, y, reduction='sum', log_target=True)",
    "F.poisson_nll_loss(y, y * 2, log_input=False)",
    "F.triplet_margin_loss(x, y, x + 1)",
    "F.multi_margin_loss(x, n[:2] + 5)",
    "F.nll_loss(b.transpose(1, 2), n.expand(2, 3))",
    "F.nll_loss(x, n[:2] + 7)",
    "F.cross_entropy(x, n[:2] + 7)",
    "F.ctc_loss(b.log_softmax(2), T.tensor([1, 2, 2, 1], device=on), (2, 2, 1), (2, 1, 1), reduction='sum')",
    "F.ctc_loss(b.log_softmax(2), T.tensor([[1, 1], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1), zero_infinity=True)",
    "F.embedding(n, m.detach().clone(), max_norm=1.0)",
    "F.embedding_bag(n, m, n[:2])",
    "F.embedding_bag(n, m, n[:2], mode='max')",
]  # fmt: skip
