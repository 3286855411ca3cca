"""torch.mps: Apple's GPUs, of which there are none here."""


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0
