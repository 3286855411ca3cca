"""SummaryWriter: logs for tensorboard, under torch.utils.tensorboard's names and arguments."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.io.protobuf import float32, message, text, varint
from tritensor.utils.tensorboard import distributions, pictures, plugins
from tritensor.utils.tensorboard.event_file import FileWriter as FileWriter
from tritensor.utils.tensorboard.values import as_array, as_number, describe, encode_tensor

_MAX_TAGS = 10_000  # whose bytes are kept: programs log the same few tags again and again


class SummaryWriter:
    """Writes an event file to a folder, for `tensorboard --logdir`.

    >>> with tt.utils.tensorboard.SummaryWriter("runs/first") as writer:
    ...     for step in range(100):
    ...         writer.add_scalar("loss/train", 1 / (1 + step), step)

    A record is handed over in microseconds; a thread writes it, after `max_queue` records or `flush_secs` seconds at the latest. What was flushed
    outlives a SIGKILL. A process that was forked goes on in a file of its own. The next call raises the error of a disk that is full.

    Every `add_...` takes a `tag`, under which tensorboard shows it, `global_step`, an integer, and `walltime`, seconds since 1970 in place of now.
    Tensors may be of any device and type; they are read at once, which on a GPU waits for them.

    Args:
        log_dir: the folder; without it runs/<date>_<host><comment>.
        comment: see there.
        purge_step: what earlier files of the folder have from this step on is hidden: for a run that goes on from a checkpoint.
        max_queue: so many records wake the thread.
        flush_secs: the longest that a record waits.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10, flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = purge_step, max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._tags: dict[str, bytes] = {}
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The folder's writer; another one after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_start(int(self.purge_step))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _encode_tag(self, who: str, tag: Any) -> bytes:
        """A tag as a field of a value. Raises TypeError for what is no string."""
        if not isinstance(tag, str):
            raise TypeError(f"SummaryWriter.{who}: tag is {describe(tag)}; give a string, such as 'loss/train'")
        if len(self._tags) >= _MAX_TAGS:  # a program that makes a tag for each step
            self._tags.clear()
        try:
            field = self._tags[tag] = text(1, tag)
        except UnicodeEncodeError as error:
            raise ArgumentError(f"SummaryWriter.{who}: tag {tag!r} is no text: {error}; give it without the halves of characters") from None
        return field

    def _add(self, summary: bytes, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_field(message(5, summary), step, walltime)

    def _add_value(self, who: str, tag: Any, field: bytes, step: Any, walltime: float | None) -> None:
        self._add(message(1, self._tags.get(tag) or self._encode_tag(who, tag), field), step, walltime)

    def _add_pixels(self, who: str, tag: Any, pixels: Any, step: Any, walltime: float | None) -> None:
        field = pictures.encode_image(pixels, pictures.encode_png(pixels))
        self._add_value(who, tag, message(plugins.IMAGE, field), step, walltime)

    # -- numbers
    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number, as float32; `new_style` writes it as a tensor, with `double_precision` as float64."""
        value = scalar_value if type(scalar_value) is float else as_number("SummaryWriter.add_scalar", tag, scalar_value)
        tag_field = self._tags.get(tag) if type(tag) is str else None
        if tag_field is None:
            tag_field = self._encode_tag("add_scalar", tag)
        if new_style:
            self._add(plugins.encode_scalar_tensor(tag, value, double_precision), global_step, walltime)
            return
        field = tag_field + b"\x15" + float32(value)  # simple_value
        # message() written out: this is what runs at every step of a training loop
        body = b"\x0a" + varint(len(field)) + field
        self._get_file_writer().add_field(b"\x2a" + varint(len(body)) + body, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Several numbers in one chart: each in a run of its own, in a folder <main_tag>_<name> below this one's."""
        if not isinstance(tag_scalar_dict, Mapping):
            raise TypeError(f"SummaryWriter.add_scalars: tag {main_tag!r} was given {describe(tag_scalar_dict)}; give {{name: number}}")
        tag_field = self._encode_tag("add_scalars", main_tag)
        found = {k: as_number("SummaryWriter.add_scalars", f"{main_tag}: {k}", v) for k, v in tag_scalar_dict.items()}
        walltime = time.time() if walltime is None else walltime  # one time for all runs of the chart
        self._get_file_writer()
        assert self.all_writers is not None
        for name, value in found.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{name}"
            writer = self.all_writers.get(folder)
            if writer is None:
                writer = self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            writer.add_summary(message(1, tag_field, b"\x15" + float32(value)), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """A whole tensor, in its type."""
        self._encode_tag("add_tensor", tag)
        field = encode_tensor("SummaryWriter.add_tensor", tag, tensor)
        self._add(plugins.encode_value(tag, message(plugins.TENSOR, field), plugins.encode_metadata("tensor")), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """The distribution of values. `bins` is "tensorflow" (limits that grow by a tenth), or what numpy.histogram takes.

        NaN and infinite values are left out with a warning; where there are no others, ValueError is raised.
        """
        field = distributions.make_histogram(tag, values, bins, max_bins)
        self._add_value("add_histogram", tag, message(plugins.HISTOGRAM, field), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any, bucket_counts: Any,
        global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that was counted elsewhere: upper limits of buckets, and the count of each."""
        who = "SummaryWriter.add_histogram_raw"
        limits, counts = as_array(who, tag, bucket_limits), as_array(who, tag, bucket_counts)
        if limits.shape != counts.shape or limits.ndim != 1:
            raise ShapeError(
                f"{who}: tag {tag!r}: bucket_limits is {limits.shape} and bucket_counts {counts.shape}; give a limit for each count"
            )
        low, high, count, total, squares = [as_number(who, tag, x) for x in (min, max, num, sum, sum_squares)]
        field = distributions.encode_histogram(low, high, count, total, squares, limits, counts)
        self._add_value("add_histogram_raw", tag, message(plugins.HISTOGRAM, field), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision and recall of probabilities at thresholds from 0 to 1 (at most 127); `labels` are 0 or 1, `weights` of each sample."""
        self._encode_tag("add_pr_curve", tag)
        self._add_curve(tag, *distributions.count_pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any, false_negative_counts: Any,
        precision: Any, recall: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """The same, counted elsewhere: six lists of one length. `weights` is accepted, as PyTorch accepts it."""
        who = "SummaryWriter.add_pr_curve_raw"
        given = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall)
        rows = [as_array(who, tag, x).reshape(-1) for x in given]
        if len({len(r) for r in rows}) != 1:
            raise ShapeError(f"{who}: tag {tag!r}: lists of {[len(r) for r in rows]} thresholds; give six of one length")
        self._add_curve(tag, as_array(who, tag, rows), distributions.check_thresholds(who, tag, num_thresholds), global_step, walltime)

    def _add_curve(self, tag: str, data: Any, thresholds: int, step: Any, walltime: float | None) -> None:
        tensor, about = distributions.encode_pr_curve(data, thresholds)
        self._add(plugins.encode_value(tag, plugins.encode_metadata("pr_curves", about), message(plugins.TENSOR, tensor)), step, walltime)

    # -- pictures and sounds
    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW"
    ) -> None:
        """An image, floats from 0 to 1 or uint8, its dimensions in the order of `dataformats`: CHW, HWC, HW, ..."""
        pixels = pictures.to_pixels("SummaryWriter.add_image", tag, img_tensor, dataformats)
        self._add_pixels("add_image", tag, pixels, global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "NCHW"
    ) -> None:
        """Several images in a grid of eight columns."""
        pixels = pictures.to_pixels("SummaryWriter.add_images", tag, img_tensor, dataformats)
        self._add_pixels("add_images", tag, pixels, global_step, walltime)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None, walltime: float | None = None, rescale: float = 1,
        dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """An image with red frames (boxes, 4) of xmin, ymin, xmax, ymax in pixels; `labels` and `rescale` need Pillow."""
        pixels = pictures.to_pixels("SummaryWriter.add_image_with_boxes", tag, img_tensor, dataformats)
        field = pictures.encode_image(*pictures.draw_boxes(tag, pixels, box_tensor, labels, rescale))
        self._add_value("add_image_with_boxes", tag, message(plugins.IMAGE, field), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None) -> None:
        """A figure of matplotlib, or a list of figures of one size in a grid; `close` closes them."""
        self._add_pixels("add_figure", tag, pictures.render_figure(tag, figure, close), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None) -> None:
        """(batch, frames, channels, height, width) as an animated GIF; needs Pillow."""
        self._add_value("add_video", tag, message(plugins.IMAGE, pictures.encode_video(tag, vid_tensor, fps)), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100, walltime: float | None = None
    ) -> None:
        """Samples from -1 to 1, (samples,) or (1, samples), at `sample_rate` a second."""
        self._add_value("add_audio", tag, message(plugins.AUDIO, plugins.encode_audio(tag, snd_tensor, sample_rate)), global_step, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A mesh or a cloud of points: vertices (batch, N, 3), colors (batch, N, 3) from 0 to 255, faces (batch, F, 3) of indices."""
        self._encode_tag("add_mesh", tag)
        self._add(plugins.encode_mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # -- words, graphs, settings
    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """Text in Markdown."""
        self._encode_tag("add_text", tag)
        self._add(plugins.encode_text(tag, text_string), global_step, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """The graph of a module: it is called once on the input, in eval mode; `verbose` prints the nodes.

        `use_strict_trace` is accepted: nested outputs need no permission here.
        """
        from tritensor.utils.tensorboard.graphs import trace_graph

        self._get_file_writer().add_graph(trace_graph(model, input_to_model, verbose))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """The graph of an ONNX file; needs the package onnx."""
        from tritensor.utils.tensorboard.graphs import read_onnx_graph

        self._get_file_writer().add_graph(read_onnx_graph(prototxt))

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None, global_step: int | None = None,
    ) -> None:  # fmt: skip
        """The settings of a run and its results, for the table of tab HPARAMS; in a folder `run_name` below this one, the time where none is given."""
        summaries = plugins.encode_hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        found = {k: as_number("SummaryWriter.add_hparams", k, v) for k, v in metric_dict.items()}
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for summary in summaries:
                writer._add(summary, global_step, None)
            for name, value in found.items():
                writer.add_scalar(name, value, global_step)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Points (N, D) for the projector, with a label (of several columns, where `metadata_header` names them) and a picture (N, C, H, W) for each."""
        from tritensor.utils.tensorboard.projector import Embeddings

        self._encode_tag("add_embedding", tag)
        if "_embeddings" not in vars(self):  # a writer without embeddings writes no projector file
            self._embeddings = Embeddings(self.log_dir)
        self._embeddings.add(mat, metadata, label_img, 0 if global_step is None else int(global_step), tag, metadata_header)

    def add_custom_scalars(self, layout: Mapping[str, Any]) -> None:
        """Charts of several scalars: {category: {chart: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}. Once a writer."""
        self._add(plugins.encode_layout(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """One chart of a scalar between two others: value, lower, upper."""
        if len(tags) != 3:
            raise ArgumentError(f"SummaryWriter.add_custom_scalars_marginchart: {len(tags)} tags; give three: value, lower, upper")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # -- the files
    def flush(self) -> None:
        """Write everything that waits. Raises OSError where the disk does not take it."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write everything that waits, and close the files; an `add_...` after it begins another file."""
        writers, self.file_writer, self.all_writers = self.all_writers or {}, None, None
        for writer in writers.values():
            writer.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
