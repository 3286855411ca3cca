"""Assignments by index."""

from __future__ import annotations

EXPRESSIONS = [
    *[f"written({target}, {index}, {value})" for target, index, value in (
        ("x", "k", "5.0"), ("x", "k", "y[k]"), ("k", "k.logical_not()", "True"), ("i", "i > 2", "-1"), ("x", "0", "v"), ("x", "(0, 1)", "o"), ("x", "slice(None)", "v"),
        ("x", "(slice(None), n)", "y"), ("x", "(slice(None), n)", "2"), ("x", "([0, 1], [2, 0])", "v[:2]"), ("x", "(1, [0, 2])", "v[:2]"), ("x", "...", "1"), ("x", "(..., 0)", "v[:2]"),
        ("x", "None", "y"), ("x", "2", "1"), ("x", "(0, 0, 0)", "1"), ("x", "k[:1]", "1"), ("x", "0", "y"), ("x", "n[:1]", "v"), ("x", "n", "v"), ("b", "(slice(None), 0, [0, 2])", "x[:, :2]"),
        ("b", "([0, 1], slice(None), [0, 2])", "x"), ("i", "0", "1.9"), ("x", "0", "True"), ("x", "u > 200", "0"), ("x", "(k, 0)", "1"), ("x", "(slice(None, None, 2),)", "v"),
        ("x", "T.tensor(1)", "v"), ("m", "n", "m"), ("m", "[0, 0]", "x[:2]"), ("k", "0", "k[1]"), ("u", "0", "7"), ("f", "0", "o"),
    )],
]  # fmt: skip
