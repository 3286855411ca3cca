"""torch.mps and torch.xpu: Apple's and Intel's GPUs, which are not driven."""


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0
