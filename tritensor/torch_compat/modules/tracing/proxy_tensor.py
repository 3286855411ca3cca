"""torch.fx.experimental.proxy_tensor: whether a tracer records what tensors do. None does here."""


def get_proxy_mode() -> None:
    """None: no tracer is at work."""
