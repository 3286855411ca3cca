"""Run by a Python that has tritensor and tests/packaging/outside installed: ops of a package that nobody has imported are found, and are whole."""

from __future__ import annotations

import sys
import tempfile

import tritensor as tt
from tritensor.ops.table.op_selection import select_ops

assert not [m for m in sys.modules if m.startswith(("outside_ops", "tritensor.kernels.parts"))], (
    "importing tritensor has loaded what registers ops"
)
assert [op.name for op in select_ops(["outside_*", "row_rms_norm"])] == ["outside_isru", "row_rms_norm"]
owner = tt.table.registry["row_rms_norm"].owner
assert owner.package == "outside-ops", owner

for where in ("cpu", "cuda"):  # emulated: TRITON_INTERPRET is set
    x = tt.linspace(-2, 2, 8, device=where, requires_grad=True)
    want = x / (1 + x * x).sqrt()
    tt.testing.assert_close(tt.ops.outside_isru(x), want)
    tt.testing.assert_close(x.outside_isru(), want)
    tt.testing.assert_close(x.detach().clone().outside_isru_(), want.detach())
    tt.testing.assert_close(tt.outside_isru(x.detach(), out=tt.empty(8, device=where)), want.detach())
    tt.outside_isru(x).sum().backward()
    tt.testing.assert_close(x.grad, (1 + x.detach() ** 2) ** -1.5)
    rows = tt.randn(3, 16, device=where)
    tt.testing.assert_close(rows.row_rms_norm(tt.ones(16, device=where)), tt.nn.functional.rms_norm(rows, (16,), eps=1e-6))
refusal = ""
try:
    tt.op("outside_isru", abs, shape=abs, samples=abs, view=True, differentiable=False, inputs=("x",))
except tt.RegistrationError as error:
    refusal = str(error)
assert "gates.py:" in refusal, refusal
assert "package 'outside-ops', by its entry point" in refusal, refusal
# Its model, by name and by a folder with weights; one entry point that leads nowhere takes nothing else away.
assert {"gated_net", "broken_net", "resnet18"} <= set(tt.hub.list())
assert "outside_ops.gated_net" not in sys.modules
net = tt.models.gated_net(3)
with tempfile.TemporaryDirectory() as folder:
    tt.io.save_file(net.state_dict(), f"{folder}/model.safetensors")
    with open(f"{folder}/config.json", "w") as config:
        config.write('{"width": 3}')
    x = tt.rand(4, 3)
    tt.testing.assert_close(tt.hub.load(folder, "gated_net")(x), net(x))
try:
    tt.models.broken_net()
except ImportError as error:
    refusal = str(error)
assert "the plug-in 'outside-ops' (tritensor.models: broken_net = outside_ops.no_such_file:Net) raises" in refusal, refusal
print("an outside package's ops are whole in", tt.__file__)
