"""Two operands of two types: which type comes out."""

from __future__ import annotations

# Two operands of two types: which type comes out
_FIRST = ("x.float()", "i", "u", "k", "x.detach().half()")
_SECOND = (*_FIRST, "y", "i.int()", "f[0]", "o", "T.tensor(2, device=on)", "2", "1.5", "True")
_NOT_ZERO = ("y.float()", "j", "j.int()", "(u + 1).clamp(1)", "f[0]", "o", "2", "1.5")
EXPRESSIONS = [
    *[form.format(a, b) for form in ("{} + {}", "{} * {}", "{} / {}", "{} ** {}", "{} == {}", "T.where(k, {}, {})") for a in _FIRST for b in _SECOND if a != b],
    *[form.format(a, b) for form in ("{} // {}", "{} % {}", "T.fmod({}, {})") for a in _FIRST for b in _NOT_ZERO],
    *[form.format(a, b) for form in ("T.maximum({}, {})", "T.atan2({}, {})", "T.clamp({}, {})") for a in _FIRST[:3] for b in _SECOND[:10] if a != b],
    *[form.format(a, b) for form in ("T.cat([{}, {}])", "T.stack([{}, {}])") for a in _FIRST for b in _SECOND[:6] if a != b],
    *[f"{a}.clone().add_({b})" for a in _FIRST for b in _SECOND if a != b], "T.where(k, o, f[0])", "T.where(k, 1.5, 2)", "T.where(k, True, 2)", "T.where(k, f[0], i)",
    "T.isclose(x, x.float())", "T.isclose(i, i.float() + 1e-7)",
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT: dict[str, str] = {
    **dict.fromkeys(("T.isclose(x, x.float())", "T.isclose(i, i.float() + 1e-7)"), "types promote as everywhere else"),
    **dict.fromkeys(
        ("T.atan2(x.float(), u)", "T.atan2(u, x.float())", "T.atan2(u, y)", "T.atan2(x.float(), x.detach().half())"),
        "PyTorch's gradient squares in an operand's own type, where uint8 wraps around and float16 rounds",
    ),
}
