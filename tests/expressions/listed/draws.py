"""Random numbers: what can be compared of them."""

from __future__ import annotations

EXPRESSIONS = [
    "T.rand(2, 3).shape", "T.randn(2, dtype=T.float64).dtype", "T.randint(5, (2,)).dtype", "T.randint(2, 3, (2,))", "T.rand_like(x).dtype", "T.randn_like(x).shape", "T.randint_like(i, 1).sum()", "T.randperm(3).sum()", "T.bernoulli(T.ones(3))", "T.bernoulli(T.zeros(3))",
    "T.normal(0.0, 0.0, (2,))", "T.normal(v.detach(), T.zeros(3, dtype=T.float64, device=on))", "T.multinomial(T.tensor([0.0, 1.0]), 3, replacement=True)", "T.multinomial(T.ones(2), 3)", "T.zeros(2).uniform_(3, 3)", "T.zeros(2).normal_(1, 0)", "T.zeros(2).bernoulli_(1.0)",
    "T.zeros(2).random_(4, 5)", "(T.zeros(2).exponential_() > 0).all()", "T.zeros(2).exponential_(-1)", "T.zeros(2).uniform_(2, 1)", "T.zeros(2).bernoulli_(2.0)", "T.normal(0.0, -1.0, (2,))", "T.randint(3, 3, (2,))", "T.randperm(-1)", "T.rand(-1)", "T.manual_seed(3).initial_seed()",
    "(T.manual_seed(3), T.initial_seed())[1]",
]  # fmt: skip
