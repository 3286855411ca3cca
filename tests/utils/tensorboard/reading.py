"""Event files read back by tensorboard's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader


def accumulated(folder: Path) -> Any:
    """What tensorboard knows of a run, nothing left out."""
    kinds = ("scalars", "histograms", "images", "audio", "tensors", "compressedHistograms")
    found = EventAccumulator(str(folder), size_guidance=dict.fromkeys(kinds, 0))
    found.Reload()
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def values(folder: Path) -> dict[tuple[str, int], Any]:
    """{(tag, step): the summary's value} of all files of a folder, as they were written (tensorboard makes tensors of all)."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    events = [Event.FromString(raw) for file in files(folder) for raw in RawEventFileLoader(str(file)).Load()]
    return {(v.tag, e.step): v for e in events for v in e.summary.value}


def read(file: Path) -> list[Any]:
    """The events of a file."""
    return list(EventFileLoader(str(file)).Load())
