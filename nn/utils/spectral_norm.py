"""The older spectral norm, a hook that computes the weight before each forward, and the power iteration of both (see nn.utils.parametrizations)."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.nn import hooks
from tritensor.nn.hooks import refuse_second_pre_hook, take_pre_hook
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as (outputs, everything else)."""
    if dim:
        weight = weight.permute(dim, *[d for d in range(weight.ndim) if d != dim])
    return weight.reshape(weight.shape[0], -1)


def outputs_dim(module: Any) -> int:
    """The dimension of a layer's outputs in its weight: 1 of transposed convolutions."""
    # by name, not class: importing the layers here would be a circle
    return int(any(c.__name__.startswith("ConvTranspose") for c in type(module).__mro__))


def draw_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """A left and a right vector of length 1, drawn at random."""
    # normal numbers have no direction of their own; PyTorch draws in this order
    u, v = (matrix.new_empty(n).normal_(0, 1) for n in matrix.shape)
    return F.normalize(u, dim=0, eps=eps), F.normalize(v, dim=0, eps=eps)


@no_grad()
def iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """u to matrix v, and v to matrix^H u, of length 1, in place."""
    for _ in range(times):
        u.copy_(F.normalize(matrix @ v, dim=0, eps=eps))  # in place: they are buffers, which a state_dict and a move know as these objects
        v.copy_(F.normalize(matrix.mH @ u, dim=0, eps=eps))


PARTS = ("_orig", "_u", "_v")


class SpectralNorm:
    """The hook: weight = W / (u^T W v), u and v the singular vectors of the largest singular value, which power iterations estimate."""

    _version = 1  # of a state_dict: before it there were no right vectors in it

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight of `<name>_orig`, after more power iterations if wished."""
        weight, u, v = (getattr(module, self.name + part) for part in PARTS)
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:  # v first: what iterate calls u is this v, of the transposed matrix
            iterate(matrix.detach().mH, v, u, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # the next iteration overwrites them, and this one's gradient needs them
        return weight / (u * (matrix @ v)).sum()  # type: ignore[no-any-return]

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Put `<name>_orig`, `<name>_u` and `<name>_v` in place of a parameter, and the hook on the module."""
        refuse_second_pre_hook(module, SpectralNorm, name, "spectral_norm")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters.get(name)
        if weight is None:
            raise ArgumentError(
                f"`SpectralNorm` cannot be applied as parameter `{name}` is None, or {type(module).__name__} has none; name another"
            )
        with no_grad():
            u, v = draw_vectors(as_matrix(weight, dim), eps)
        delattr(module, name)  # the name becomes a plain attribute, which the hook sets before each forward
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())  # until the first forward, whose hook puts the quotient here
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        hooks.add(module, "state_post", made._note_version)  # by which loading tells files that lack the right vector
        hooks.add(module, "load_pre", (made._upgrade_state_dict, False))
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)  # the value that is in use: another iteration would change it
        for part in ("", *PARTS):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))
        assert module._hooks is not None
        for table, mine in ((module._hooks.state_post, self._note_version), (module._hooks.load_pre, (self._upgrade_state_dict, False))):
            for key in [k for k, hook in table.items() if hook == mine]:
                del table[key]

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _note_version(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self._version

    def _upgrade_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing: list[str], *rest: Any
    ) -> None:
        """A state_dict from before PyTorch 1.0 holds the weight, and no right vector: that with u^T W v the quotient of the two weights."""
        if local_metadata.get("spectral_norm", {}).get(self.name + ".version") is not None:
            return
        key = prefix + self.name
        if all(key + part in state_dict for part in PARTS) and key not in state_dict:
            return
        lacking = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if lacking:
            missing.extend(lacking if strict else [])
            return
        with no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, self.dim)
            v = (matrix.mT @ matrix).pinverse() @ (matrix.mT @ u)
            state_dict[key + "_v"] = v * (sigma / (u * (matrix @ v)).sum())


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Let a weight be W / (its largest singular value) (Miyato et al. 2018), of a parameter `<name>_orig` and buffers `<name>_u` and `<name>_v`.

    Args:
        dim: the dimension of the outputs, those of the matrix's rows; None: 0, but 1 of a transposed convolution.
    """
    SpectralNorm.apply(module, name, n_power_iterations, outputs_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, of the value that it has."""
    take_pre_hook(module, SpectralNorm, name, "spectral_norm").remove(module)
    return module
