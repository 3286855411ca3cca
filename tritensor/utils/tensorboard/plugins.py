"""Records that tensorboard's plugins read: text, tensors, sounds, meshes, layouts of charts."""

from __future__ import annotations

import io
import json
import warnings
import wave
from collections.abc import Mapping
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.io.protobuf import double, doubles, integer, integers, message, single, singles
from tritensor.io.protobuf import text as text_field
from tritensor.utils.tensorboard.values import DT_FLOAT, DT_STRING, as_array, describe, encode_shape

# Fields of a Summary.Value
SIMPLE_VALUE, IMAGE, HISTOGRAM, AUDIO, TENSOR = 2, 4, 5, 6, 8
_MESH = {"vertices": 1, "faces": 2, "colors": 3}  # MeshPluginData.ContentType


def encode_metadata(name: str, content: bytes = b"") -> bytes:
    """The metadata field of a value: the plugin that shows it, and that one's data."""
    return message(9, message(1, text_field(1, name) + (message(2, content) if content else b"")))


def encode_value(tag: str, *fields: bytes) -> bytes:
    """A Summary of one value."""
    return message(1, text_field(1, tag), *fields)


def encode_scalar_tensor(tag: str, x: float, is_double: bool) -> bytes:
    """A scalar as a tensor of no dimensions, float32 or float64."""
    tensor = integer(1, 2) + doubles(6, [x]) if is_double else integer(1, DT_FLOAT) + singles(5, [x])
    return encode_value(tag, message(TENSOR, tensor), encode_metadata("scalars"))


def encode_text(tag: str, markdown: Any) -> bytes:
    """Markdown, at `<tag>/text_summary`. Raises TypeError for what is no string."""
    if not isinstance(markdown, str):
        raise TypeError(f"SummaryWriter.add_text: tag {tag!r} was given {describe(markdown)}; give a string, such as str(x)")
    tensor = integer(1, DT_STRING) + message(2, encode_shape((1,))) + message(8, markdown.encode())
    return encode_value(f"{tag}/text_summary", encode_metadata("text"), message(TENSOR, tensor))


def encode_audio(tag: str, given: Any, rate: int) -> bytes:
    """A Summary.Audio: mono, 16 bits. Samples outside of -1..1 are clipped, with a warning."""
    who = "SummaryWriter.add_audio"
    samples = as_array(who, tag, given).squeeze()
    if samples.ndim != 1 or not samples.size:
        raise ShapeError(f"{who}: tag {tag!r} was given {describe(given)}; give (samples,), one channel")
    if not isinstance(rate, int | np.integer) or rate < 1:
        raise ArgumentError(f"{who}: tag {tag!r}: sample_rate is {rate!r}; give samples a second, an integer")
    if not (np.abs(samples) <= 1).all():
        warnings.warn(f"{who}: samples of tag {tag!r} reach to {np.abs(samples).max():g} and are clipped to 1 (NaN is 0)", stacklevel=4)
        samples = np.nan_to_num(samples.astype(np.float64), nan=0.0).clip(-1, 1)  # int16 would wrap to the other sign
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(int(rate))
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return single(1, float(rate)) + integer(2, 1) + integer(3, len(samples)) + message(4, file.getvalue()) + text_field(5, "audio/wav")


def encode_mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> bytes:
    """A Summary of up to three values: vertices, faces and colours, each (batch, number, 3)."""
    who = "SummaryWriter.add_mesh"
    given = {"vertices": vertices, "faces": faces, "colors": colors}
    parts = {name: as_array(who, tag, x) for name, x in given.items() if x is not None}
    for name, x in parts.items():
        if x.ndim != 3 or x.shape[2] != 3:
            raise ShapeError(f"{who}: tag {tag!r}: {name} is {describe(given[name])}; give (batch, number, 3)")
    if "vertices" not in parts:
        raise TypeError(f"{who}: tag {tag!r}: vertices is None; give (batch, number, 3)")
    components = sum(1 << _MESH[name] for name in parts)
    words = json.dumps(config, sort_keys=True) if config is not None else "{}"
    out = []
    for name, x in parts.items():
        kind = _MESH[name]
        about = text_field(2, tag) + integer(3, kind) + text_field(5, words) + integers(6, x.shape) + integer(7, components)
        tensor = integer(1, DT_FLOAT) + message(2, encode_shape(x.shape)) + singles(5, x.reshape(-1))
        word = {"vertices": "VERTEX", "faces": "FACE", "colors": "COLOR"}[name]
        out.append(encode_value(f"{tag}_{word}", encode_metadata("mesh", about), message(TENSOR, tensor)))
    return b"".join(out)


def encode_layout(given: Any) -> bytes:
    """The layout of the custom scalars tab: {category: {chart: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}."""
    who = "SummaryWriter.add_custom_scalars"
    if not isinstance(given, Mapping):
        raise TypeError(f"{who}: layout is {describe(given)}; give {{category: {{chart: ['Multiline', tags]}}}}")
    categories = b""
    for category, charts in given.items():
        body = text_field(1, category)
        for title, entry in charts.items():
            if len(entry) != 2 or entry[0] not in ("Multiline", "Margin") or isinstance(entry[1], str):
                raise ArgumentError(f"{who}: chart {title!r} is {entry!r}; give ['Multiline', tags] or ['Margin', [value, lower, upper]]")
            kind, tags = entry
            if kind == "Margin":
                if len(tags) != 3:
                    raise ArgumentError(
                        f"{who}: chart {title!r}: a margin has three tags, value, lower and upper, and {len(tags)} are given"
                    )
                series = b"".join([text_field(i, t) for i, t in enumerate(tags, 1)])
                body += message(2, text_field(1, title), message(3, message(1, series)))
            else:
                # b"": one tag alone would be taken for the whole message
                body += message(2, text_field(1, title), message(2, *[text_field(1, t) for t in tags], b""))
        categories += message(2, body)
    tensor = integer(1, DT_STRING) + message(2, b"") + message(8, categories)
    return encode_value("custom_scalars__config__", message(TENSOR, tensor), encode_metadata("custom_scalars"))


def encode_hparams(hparam_dict: Any, metric_dict: Any, domains: Any) -> tuple[bytes, bytes, bytes]:
    """Three summaries: the experiment's settings and metrics, this session's values, its end. Raises TypeError for values of another kind."""
    who = "SummaryWriter.add_hparams"
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict), ("hparam_domain_discrete", domains or {})):
        if not isinstance(given, Mapping):
            raise TypeError(f"{who}: {name} is {describe(given)}; give a dictionary")
    infos, start = b"", b""
    for name, given in hparam_dict.items():
        if given is None:
            continue
        kind, held = _encode_setting(who, name, given)
        choices = (domains or {}).get(name)
        info = text_field(1, name) + integer(4, kind)
        if choices is not None:
            if not isinstance(choices, list) or not all(isinstance(c, type(given)) for c in choices):
                raise TypeError(f"{who}: hparam_domain_discrete[{name!r}] is {choices!r}; give a list of {type(given).__name__}")
            info += message(5, *[message(1, _encode_setting(who, name, c)[1]) for c in choices], b"")
        infos += message(4, info)
        start += message(1, text_field(1, name), message(2, held))
    strange = [k for k in (domains or {}) if k not in hparam_dict]  # a misspelt name
    if strange:
        raise TypeError(f"{who}: hparam_domain_discrete names {strange[0]!r}, which hparam_dict has not; it has {list(hparam_dict)}")
    metrics = b"".join([message(5, message(1, text_field(2, name))) for name in metric_dict])
    bodies = {
        "experiment": message(2, infos + metrics),
        "session_start_info": message(3, start),
        "session_end_info": message(4, integer(1, 1)),
    }
    first, second, third = [encode_value(f"_hparams_/{name}", encode_metadata("hparams", body)) for name, body in bodies.items()]
    return first, second, third


def _encode_setting(who: str, name: str, given: Any) -> tuple[int, bytes]:
    """(DataType, a protobuf Value) of a setting: a string 1, a bool 2, a number 3."""
    if isinstance(given, bool | np.bool_):
        return 2, integer(4, int(given))
    if isinstance(given, str):
        return 1, text_field(3, given)
    try:
        return 3, double(2, float(given))
    except (TypeError, ValueError):
        raise TypeError(f"{who}: hparam_dict[{name!r}] is {describe(given)}; give a number, a string, a bool or None") from None
