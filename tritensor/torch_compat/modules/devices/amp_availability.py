"""torch.cuda.amp.common: whether lower precision on a GPU is out of the question."""

from tritensor import cuda


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU."""
    return not cuda.is_available()
