"""torch.distributed.rpc and torch.distributed.autograd: calls of functions on other ranks, which are not here; programs ask is_available() first."""

from __future__ import annotations

from tritensor.torch_compat.placeholders import make_placeholder

_WHY = "no rank calls another one's functions; they talk by collectives and send, recv"
_CLASSES = ("BackendType", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo")
_FUNCTIONS = ("get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown", "backward", "context", "get_gradients")
for _kind, _names in (("class", _CLASSES), ("function", _FUNCTIONS)):
    for _name in _names:
        globals()[_name] = make_placeholder("distributed.rpc", _name, _kind, _WHY)


def is_available() -> bool:
    """False."""
    return False
