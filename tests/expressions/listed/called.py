"""Python functions of single numbers, complex pairs as copies, and what else only the CPU has."""

from __future__ import annotations

ON_CPU = True
EXPRESSIONS = [
    "x.is_cpu", "x.is_shared()",
    *[f"{given}.{call}" for given, call in (
        ("x.detach()", "apply_(lambda a: a * a)"), ("i", "apply_(lambda a: a + 1.5)"), ("k", "apply_(lambda a: not a)"), ("x", "apply_(lambda a: a)"), ("x.detach()", "apply_(lambda a: 'a')"),
        ("x.detach()", "apply_(3)"), ("x.detach().t()", "apply_(abs)"), ("e", "apply_(abs)"), ("o", "apply_(abs)"), ("z.detach()", "apply_(lambda a: a * 2)"), ("u", "apply_(lambda a: a // 2)"),
        ("x.detach()", "map_(y.detach(), lambda a, c: a - c)"), ("x.detach()", "map_(v.detach(), max)"), ("x.detach()", "map_(f[:1], max)"), ("x.detach()", "map_(s, max)"),
        ("x.detach()", "map_(other=v.detach(), callable=max)"), ("x.detach()", "map2_(y.detach(), v.detach(), lambda a, c, d: a + c * d)"), ("x.detach()", "map2_(y, v, max)"),
    )],
    "T.view_as_real_copy(z)", "T.view_as_real_copy(x)", "T.view_as_complex_copy(T.view_as_real(z.detach()) * 2)", "T.view_as_complex_copy(b[:, :, :2])", "T.view_as_complex_copy(i)",
    "T.nuclear_norm(z)", "T.frobenius_norm(z, 1)", "T.abs_(z * 1)", "T.exp_(z * 1)", "T.conj_physical_(z * 1)",
    "T.from_dlpack(T.to_dlpack(f))",
    "T.from_file('/nowhere/at/all', size=2)", "T.from_file('/dev/null', size=2)", "T.from_file('/dev/null', size=0)", "T.from_file('/dev/zero', size=-1)",
    "T.is_autocast_enabled()", "T.is_autocast_enabled('cpu')", "T.is_autocast_enabled('gpu')", "T.is_autocast_cpu_enabled()", "T.is_autocast_cache_enabled()",
    "T.get_autocast_dtype('cpu')", "T.get_autocast_dtype('cuda')", "T.get_autocast_cpu_dtype()", "T.get_autocast_gpu_dtype()", "T.set_autocast_enabled(False)",
    "T.set_autocast_enabled('cpu', False)", "T.set_autocast_cpu_enabled(False)", "T.set_autocast_cache_enabled(True)", "T.clear_autocast_cache()",
    "T.set_autocast_dtype('cpu', T.bfloat16)", "T.set_autocast_cpu_dtype(T.bfloat16)", "T.set_autocast_gpu_dtype(T.float16)",
    "T.is_warn_always_enabled()", "T.set_warn_always(False)", "T.set_warn_always(1)", "T.is_vulkan_available()", "T.is_anomaly_enabled()", "T.legacy_contiguous_format",
    "T.default_generator.initial_seed()", "T.default_generator.manual_seed(3).initial_seed()", "T.default_generator.device",
    *[f"T.sym_{call}" for call in (
        "int(2.7)", "int(-2.7)", "int(3)", "int(o)", "float(3)", "float(o)", "max(2, 3.0)", "max(4, 3.0)", "min(2, 3.0)", "max(True, 2)", "min(5, 4)", "not(True)", "not(0)", "not(o)",
        "sqrt(4)", "sqrt(-1.0)", "sum([1, 2, 3])", "sum((1, 2.5))", "ite(True, 1, 2)", "ite(False, 1, 2)",
    )],
]  # fmt: skip
