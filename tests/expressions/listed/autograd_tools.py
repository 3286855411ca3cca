"""autograd's tools: derivatives by functional, graphs and their edges, anomaly mode, checkpoints."""

from __future__ import annotations

_FUNCTIONAL = "T.autograd.functional."

EXPRESSIONS = [
    *[f"{_FUNCTIONAL}jacobian({a})" for a in (
        "T.exp, v", "lambda a: (a * 2, a.sum()), v", "lambda a, c: (a * c).sum(1), (x, y)", "T.sin, v, create_graph=True", "T.sin, v, vectorize=True", "T.sin, v, strict=True",
        "lambda a: T.ones(2), v", "lambda a: T.ones(2), v, strict=True", "T.sin, v, strategy='forward-mode'", "T.sin, 3", "lambda a: 3, v",
    )],
    *[f"{_FUNCTIONAL}hessian({a})" for a in (
        "lambda a: (a ** 3).sum(), v", "lambda a, c: (a ** 2 * c).sum(), (v, f.double()[0])", "T.exp, v", "lambda a: a.sum(), v, strict=True", "lambda a: (a ** 3).sum(), v, create_graph=True",
    )],
    *[f"{_FUNCTIONAL}{name}({a})" for name, calls in {
        "vjp": ("T.exp, v, v", "lambda a: a.exp().sum(), v", "T.exp, v", "T.exp, v, x"), "jvp": ("T.exp, v, v", "lambda a: (a * 2, a.exp()), v, v", "T.exp, v", "T.exp, v, v, create_graph=True"),
        "hvp": ("lambda a: (a ** 3).sum(), v, v", "T.exp, v, v"), "vhp": ("lambda a: (a ** 3).sum(), v, v", "lambda a: (a ** 3).sum(), v, v, create_graph=True"),
    }.items() for a in calls],
    "T.autograd.grad(x ** 2, x, T.stack([x.detach(), y.detach()]), is_grads_batched=True)[0]", "T.autograd.grad((x * y).sum(), [x, v], allow_unused=True, materialize_grads=True)",
    "T.autograd.grad(T.autograd.graph.get_gradient_edge(x * 2), x, y.detach())[0]", "T.autograd.graph.get_gradient_edge(x.detach())", "T.autograd.graph.get_gradient_edge(x).output_nr",
    "(x * y).grad_fn._saved_self", "(x * y).grad_fn._saved_other", "x.exp().grad_fn._saved_result", "(x * 2).grad_fn.metadata", "isinstance((x * 2).grad_fn, T.autograd.graph.Node)",
    "T.is_anomaly_enabled()", "T.is_anomaly_check_nan_enabled()", "isinstance(x, T.autograd.Variable)", "T.autograd.gradcheck(T.exp, x, fast_mode=True)",
    "T.autograd.gradgradcheck(lambda a: a ** 3, x)", "T.autograd.gradcheck(T.exp, x.detach())",
    "T.utils.checkpoint.checkpoint(T.exp, x, use_reentrant=False)", "T.utils.checkpoint.checkpoint(T.exp, x, use_reentrant=True)",
]  # fmt: skip
