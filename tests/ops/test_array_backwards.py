"""Array backwards: on the CPU backward runs an op's own, and those ops that have none, whose rules run there op by op, are known."""

from __future__ import annotations

from tritensor.ops.table import registry

_RECORDED = "its nodes hold complex numbers, and their rules run always"

LEFT_OUT = {
    "cofactors": "only a second derivative of det comes here",
    "complex": _RECORDED,
    "conj": _RECORDED,
    "eig": _RECORDED,
    "eigvals": _RECORDED,
    "fft_c2c": _RECORDED,
    "fft_c2r": _RECORDED,
    "fft_of_real": _RECORDED,
    "fft_r2c": _RECORDED,
    "flash_attention": "for GPUs; on the CPU programs come to attention",
    "lu_factor": "a long formula, which few programs need",
}


def test_those_without_are_known() -> None:
    without = {op.name for op in registry.everything().values() if op.differentiable and op.cpu_backward is None}
    assert without == LEFT_OUT.keys(), "give a new op cpu_backward, a few lines of numpy, or say here why it goes without"


def test_one_input_takes_no_detour() -> None:
    """The engine calls the function of an input at once where the corner holds one for each."""
    joint = [
        op.name
        for op in registry.everything().values()
        for corner in (op.rule, op.backward, op.cpu_backward)
        if corner is not None and corner.joint and len(op.inputs) == 1 and not op.variadic
    ]
    assert not joint
