"""Functions of torch.utils.tensorboard.summary that programs call themselves: summaries, in bytes, for `writer.file_writer.add_summary`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.io.protobuf import message, single
from tritensor.utils.tensorboard import distributions, pictures, plugins
from tritensor.utils.tensorboard.values import as_number


def hparams(
    hparam_dict: Mapping[str, Any] | None = None, metric_dict: Mapping[str, Any] | None = None, hparam_domain_discrete: Any = None
) -> tuple[bytes, bytes, bytes]:
    """(the experiment, the session's values, its end): what `SummaryWriter.add_hparams` writes to a folder of its own."""
    return plugins.encode_hparams(hparam_dict, metric_dict, hparam_domain_discrete)


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False) -> bytes:
    """A number; `collections` is accepted."""
    value = as_number("summary.scalar", name, tensor)
    return (
        plugins.encode_scalar_tensor(name, value, double_precision)
        if new_style
        else plugins.encode_value(name, single(plugins.SIMPLE_VALUE, value))
    )


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> bytes:
    """The distribution of values."""
    return plugins.encode_value(name, message(plugins.HISTOGRAM, distributions.make_histogram(name, values, bins, max_bins)))


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> bytes:
    """An image, or several in a grid."""
    if rescale != 1:
        raise ArgumentError(f"summary.image: tag {tag!r}: rescale={rescale!r}; resize the image before, or use add_image_with_boxes")
    pixels = pictures.to_pixels("summary.image", tag, tensor, dataformats)
    return plugins.encode_value(tag, message(plugins.IMAGE, pictures.encode_image(pixels, pictures.encode_png(pixels))))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> bytes:
    """Samples from -1 to 1."""
    return plugins.encode_value(tag, message(plugins.AUDIO, plugins.encode_audio(tag, tensor, sample_rate)))


def text(tag: str, text: str) -> bytes:
    """Text in Markdown."""
    return plugins.encode_text(tag, text)


def custom_scalars(layout: Any) -> bytes:
    """A layout of charts."""
    return plugins.encode_layout(layout)
