"""Losses and lookups: nn.functional's with all their arguments, and those of the namespace, whose reductions are numbers; the kernels under them are asked elsewhere."""

from __future__ import annotations

_PLAIN = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss", "poisson_nll_loss")

EXPRESSIONS = [
    *[f"F.{name}(x, y{how})" for name in _PLAIN for how in ("", ", reduction='sum'", ", reduction='none'", ", reduction='most'", ", size_average=False")],
    *[f"F.{call}" for call in (
        "smooth_l1_loss(x, y, beta=0.5)", "smooth_l1_loss(x, y, beta=0)", "smooth_l1_loss(x, y, beta=-1.0)", "huber_loss(x, y, delta=0.3)", "huber_loss(x, y, delta=0)", "huber_loss(x, y, weight=y.detach())",
        "huber_loss(x, y, weight=v)", "l1_loss(z, z * 2)", "l1_loss(i, j, reduction='none')", "binary_cross_entropy(y / 9, x.sigmoid())", "binary_cross_entropy(y / 9, x.sigmoid(), weight=v.detach(), reduction='sum')",
        "binary_cross_entropy(y / 9, v)", "binary_cross_entropy(k.double(), k.double(), reduction='none')", "binary_cross_entropy_with_logits(x, v)",
        "soft_margin_loss(x, y.sign().detach())", "soft_margin_loss(x, y.detach(), reduction='sum')", "soft_margin_loss(x, y.detach(), reduction='none')", "soft_margin_loss(x, v.detach())", "kl_div(x, y)", "kl_div(x, y, reduction='batchmean')", "kl_div(x, y, reduction='sum', log_target=True)", "kl_div(x, k.double(), reduction='none')", "kl_div(x, v.abs(), reduction='sum')", "kl_div(x, y, reduction='most')",
        "poisson_nll_loss(x, y * 2, full=True)", "poisson_nll_loss(y, y * 2, log_input=False)", "poisson_nll_loss(y, j.double(), log_input=False, full=True, eps=0.1, reduction='sum')", "poisson_nll_loss(i, j)",
        "gaussian_nll_loss(x, y, y)", "gaussian_nll_loss(x, y, y[:, :1], full=True)", "gaussian_nll_loss(x, y, 2.0, reduction='sum')", "gaussian_nll_loss(x, y, x)", "gaussian_nll_loss(x, y, v)", "gaussian_nll_loss(x, y, y[:, 0], eps=1.0)",
        "hinge_embedding_loss(x, T.tensor([1.0, -1.0, 1.0], dtype=T.float64, device=on), margin=2.0)",
        "margin_ranking_loss(x, y, x.sign())", "margin_ranking_loss(x, y, x.sign(), margin=0.7, reduction='sum')", "margin_ranking_loss(x, y, v)", "cosine_embedding_loss(x, y, n[:2] * 2 - 1)",
        "cosine_embedding_loss(x, y, n[:2] * 2 - 1, margin=0.3, reduction='none')", "cosine_embedding_loss(v, v * 2 + 1, o.sign().detach())", "cosine_embedding_loss(x, y, x)", "cosine_embedding_loss(x, y, v)",
        "triplet_margin_loss(x, y, x + 1)", "triplet_margin_loss(x, y, x * 2, margin=3.0, p=1, swap=True, reduction='none')", "triplet_margin_loss(x, y, x, margin=-1.0)", "triplet_margin_loss(x, y, v)",
        "triplet_margin_with_distance_loss(x, y, x + 1)", "triplet_margin_with_distance_loss(x, y, x + 1, distance_function=F.cosine_similarity, swap=True, reduction='sum')",
        "multi_margin_loss(x, n[:2])", "multi_margin_loss(x, n[:2], p=2, margin=0.5, weight=y[0].detach(), reduction='none')", "multi_margin_loss(v, n[1])", "multi_margin_loss(x, n)", "multi_margin_loss(x, n[:2] + 5)", "multi_margin_loss(x, n[:2], p=3)",
        "multilabel_margin_loss(x, T.tensor([[1, -1, 0], [2, 0, -1]], device=on))", "multilabel_margin_loss(x, T.tensor([[1, -1, 0], [2, 0, -1]], device=on), reduction='none')", "multilabel_margin_loss(v, n)", "multilabel_margin_loss(x, n)",
        "multilabel_soft_margin_loss(x, k.double(), weight=v.detach())", "nll_loss(x, n[:2], reduction='none')", "nll_loss(b.transpose(1, 2), n.expand(2, 3))", "nll_loss(p, T.ones(1, 5, 5, dtype=T.int64, device=on), weight=v[:2].detach())",
        "nll_loss(v, n[1])", "nll_loss(x, n[:2] + 7)", "nll_loss(x, n)", "nll_loss(x, v[:2])", "nll_loss(x, n[:2], weight=v[:2])", "nll_loss(x, n[:2] * 0, ignore_index=0)", "nll_loss(x, n[:2], weight=v.float())",
        "cross_entropy(x, n[:2] + 7)", "cross_entropy(x, y, ignore_index=1)", "linear_cross_entropy(x, m, n[:2])", "linear_cross_entropy(x, m, n[:2], linear_bias=v, reduction='sum', label_smoothing=0.1)", "linear_cross_entropy(x, v, n[:2])",
        "ctc_loss(b.log_softmax(2), T.tensor([[1, 2], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1))", "ctc_loss(b.log_softmax(2), T.tensor([1, 2, 2, 1], device=on), (2, 2, 1), (2, 1, 1), reduction='sum')",
        "ctc_loss(b.log_softmax(2), T.tensor([[1, 1], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1), reduction='none')", "ctc_loss(b.log_softmax(2), T.tensor([[1, 1], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1), zero_infinity=True)",
        "ctc_loss(x.log_softmax(1), T.tensor([2], device=on), T.tensor(2), T.tensor(1), blank=1)", "ctc_loss(b, T.tensor([[1], [2]], device=on), (2, 2, 2), (1, 1, 1))", "ctc_loss(b, T.tensor([[1], [2], [1]], device=on), (3, 2, 2), (1, 1, 1))",
        "embedding(n, m.detach().clone(), max_norm=1.0)", "embedding(n[n * 0], m, scale_grad_by_freq=True)", "embedding(v, m)",
        "embedding_bag(n.reshape(1, 3), m)", "embedding_bag(n.reshape(1, 3), m, mode='max', padding_idx=1)", "embedding_bag(n, m, n[:2])", "embedding_bag(n, m, n[:2] * 2, mode='sum', per_sample_weights=v)",
        "embedding_bag(n, m, n[:2], mode='max')", "embedding_bag(n, m, T.tensor([0, 1, 3], device=on), include_last_offset=True)", "embedding_bag(n, m)", "embedding_bag(n.reshape(1, 3), m, n)", "embedding_bag(n, m, n[1:])",
        "embedding_bag(n, m, n[:2], mode='most')", "embedding_bag(n, m, n[:2], per_sample_weights=v)", "embedding_bag(n, m, n[:2], scale_grad_by_freq=True)", "embedding_bag(v, m, n[:2])",
    )],
    *[f"T.{call}" for call in (
        "kl_div(x, y)", "kl_div(x, y, 1)", "kl_div(x, y, 2, log_target=True)", "kl_div(x, y, 'mean')", "hinge_embedding_loss(x, x.sign().detach(), 2.0, 1)", "margin_ranking_loss(x, y, x.sign().detach(), 0.5, 2)",
        "cosine_embedding_loss(x, y, n[:2] * 2 - 1, 0.1, 1)", "triplet_margin_loss(x, y, x + 1)", "triplet_margin_loss(x, y, x + 1, 1.0, 2.0, 1e-6, True, 1)", "poisson_nll_loss(x, y, True, False, 1e-8, 1)", "poisson_nll_loss(x, y)",
        "ctc_loss(b.log_softmax(2), T.tensor([[1, 2], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1), 0, 1)", "ctc_loss(b.log_softmax(2), T.tensor([[1, 2], [2, 0], [1, 0]], device=on), (2, 2, 2), (2, 1, 1))",
        "embedding_bag(m, n, n[:2], mode=1)[0]", "embedding_bag(m, n, n[:2], mode=1)[1]", "embedding_bag(m, n, n[:2], False, 2)[3]", "embedding_bag(m, n, n[:2], False, 2)[2]", "embedding_bag(m, n, n[:2])[0]", "embedding_bag(m, n, n[:2], mode=3)",
    )],
]  # fmt: skip
ON_CPU = True
