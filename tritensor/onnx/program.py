"""An exported model: the protobuf message, saving it, and running it by the reference evaluator."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten
from tritensor.io.atomic import atomic_write
from tritensor.io.protobuf import varint
from tritensor.onnx import element_types as types
from tritensor.onnx.arguments import Inputs
from tritensor.onnx.evaluator import evaluator
from tritensor.onnx.graph import Value
from tritensor.ops.array import to_host
from tritensor.tensor.core import Tensor, new_tensor

MAX_BYTES = 2**31 - 2**20  # bytes that a protobuf message may have, less room for the graph itself
MIN_EXTERNAL_BYTES = 1024  # bytes from which on a weight goes to the file beside


class ONNXProgram:
    """What `export` returns: an ONNX model in memory.

    Attributes:
        model_proto: the model as an onnx.ModelProto.
        input_names, output_names: of its inputs and outputs, in order.
    """

    def __init__(
        self, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], initializers: Mapping[str, np.ndarray], opsets: Mapping[str, int],
        given: Inputs, sizes: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.nodes, self.inputs, self.outputs = list(nodes), list(inputs), list(outputs)
        self.initializers = dict(initializers)
        self.opsets, self._given, self._sizes = dict(opsets), given, sizes
        self.kept_as_inputs = False
        self.with_initializers = True
        self._evaluator: Any = None

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs, in order."""
        return [x.name for x in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, in order."""
        return [y.name for y in self.outputs]

    def __repr__(self) -> str:
        return f"ONNXProgram({len(self.nodes)} nodes, {len(self.initializers)} initializers, inputs {self.input_names}, outputs {self.output_names})"

    @property
    def model_proto(self) -> Any:
        """The model as an `onnx.ModelProto`, made anew at each asking."""
        return self._message(self.with_initializers, self.kept_as_inputs)

    def bytes_of_weights(self) -> int:
        """Bytes of all weights and folded constants."""
        return sum(v.nbytes for v in self.initializers.values())

    # -- the message
    def _message(self, with_initializers: bool, as_inputs: bool) -> Any:
        model = self._message_without_weights(as_inputs or not with_initializers)
        if with_initializers:
            model.graph.initializer.extend(types.tensor_message(name, values) for name, values in self.initializers.items())
        return model

    def _message_without_weights(self, as_inputs: bool) -> Any:
        from onnx import GraphProto, ModelProto, helper

        graph = GraphProto(name="main_graph")
        graph.node.extend(self.nodes)
        graph.input.extend(self._value_info(x) for x in self.inputs)
        graph.output.extend(self._value_info(y) for y in self.outputs)
        if as_inputs:
            graph.input.extend(self._weight_info(name) for name in self.initializers)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = ModelProto(graph=graph, producer_name="tritensor", ir_version=_ir_version(opsets))
        model.opset_import.extend(opsets)
        return model

    def _weight_info(self, name: str) -> Any:
        from onnx import helper

        values = self.initializers[name]
        return helper.make_tensor_value_info(name, types.type_number(values.dtype), list(values.shape))

    def _value_info(self, x: Value) -> Any:
        from onnx import helper

        shape = [
            n if isinstance(n, int) else self._sizes.get(n) or x.axis_names.get(axis) or f"{x.name}_dim_{axis}"
            for axis, n in enumerate(x.shape)
        ]
        return helper.make_tensor_value_info(x.name, types.type_number(x.dtype), shape)

    def check(self) -> None:
        """Ask onnx's checker, with its inference of all shapes. Weights stand as inputs, so that they are not copied."""
        import onnx

        skeleton = self._message_without_weights(False)
        for name, values in self.initializers.items():
            # the checker needs values of small ones alone: shapes, axes, pads
            if values.nbytes > MIN_EXTERNAL_BYTES:
                skeleton.graph.input.append(self._weight_info(name))
            else:
                skeleton.graph.initializer.append(types.tensor_message(name, values))
        onnx.checker.check_model(skeleton, full_check=True)

    # -- saving
    def save(
        self, destination: Any, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False, external_data: bool | None = None
    ) -> None:  # fmt: skip
        """Write the model to a path, or to what has `write`; an old file is replaced when the new one is whole.

        Args:
            include_initializers: False leaves the weights out; they are inputs then.
            keep_initializers_as_inputs: let weights be inputs as well, with themselves as defaults.
            external_data: weights in a file beside, `destination + ".data"`; None where they are more than the 2 GB that one file may have.

        Raises OSError for what cannot be written, ArgumentError for weights of more than 2 GB in one file or in a stream.
        """
        weights = self.bytes_of_weights() if include_initializers else 0
        beside = weights > MAX_BYTES if external_data is None else external_data and include_initializers
        if weights > MAX_BYTES and not beside:
            raise ArgumentError(
                f"onnx: the weights have {weights} bytes, and one file of ONNX holds fewer than 2 GB; leave external_data=False out, so that they stand "
                "in a file beside it"
            )
        if hasattr(destination, "write"):
            if isinstance(destination, io.TextIOBase):
                raise TypeError(f"onnx: {getattr(destination, 'name', type(destination).__name__)} is open for text; open it with 'wb'")
            # a stream has no folder for a second file
            if beside:
                raise ArgumentError(
                    "onnx: weights in a file beside it need a path, and a stream was given; give a path, or external_data=False"
                )
            self._write(destination, include_initializers, keep_initializers_as_inputs, {})
            return
        path = os.fspath(destination)
        with atomic_write(path) as file:
            if not beside:
                self._write(file, include_initializers, keep_initializers_as_inputs, {})
                return
            with atomic_write(f"{path}.data") as large:  # both are whole before either takes an older one's place
                apart = self._write_weights(large, os.path.basename(f"{path}.data"))
                self._write(file, include_initializers, keep_initializers_as_inputs, apart)

    def _write(self, file: Any, with_initializers: bool, as_inputs: bool, apart: Mapping[str, tuple[str, int, int]]) -> None:
        """The bytes of the ModelProto, weight after weight, so that these are not copied: what protobuf writes for graph.initializer
        (field 5 of field 7), each a TensorProto whose raw_data is field 9. `apart`: weights in another file, by name its name, offset and length."""
        frame = self._message_without_weights(as_inputs or not with_initializers)
        graph = frame.graph.SerializeToString()
        frame.ClearField("graph")
        weights = self.initializers if with_initializers else {}
        heads = {name: self._weight_header(name, apart.get(name)) for name in weights}
        raw = {name: b"" if name in apart else b"\x4a" + varint(values.nbytes) for name, values in weights.items()}
        sizes = {name: len(heads[name]) + len(raw[name]) + (0 if name in apart else values.nbytes) for name, values in weights.items()}
        total = len(graph) + sum(1 + len(varint(n)) + n for n in sizes.values())
        file.write(frame.SerializeToString() + b"\x3a" + varint(total) + graph)
        for name, values in weights.items():
            file.write(b"\x2a" + varint(sizes[name]) + heads[name] + raw[name])
            if name not in apart:
                file.write(types.raw_bytes(values).data)

    def _weight_header(self, name: str, apart: tuple[str, int, int] | None) -> bytes:
        """A TensorProto without its data, or with where that is."""
        from onnx import TensorProto

        values = self.initializers[name]
        t = TensorProto(name=name, data_type=types.type_number(values.dtype), dims=values.shape)
        if apart is not None:
            t.data_location = TensorProto.EXTERNAL
            for key, value in zip(("location", "offset", "length"), apart, strict=True):
                t.external_data.add(key=key, value=str(value))
        return bytes(t.SerializeToString())

    def _write_weights(self, file: Any, location: str) -> dict[str, tuple[str, int, int]]:
        """Write large weights one after the other, each on a page of its own; by name where they lie: (location, offset, length)."""
        found, at = {}, 0
        for name, values in self.initializers.items():
            if values.nbytes <= MIN_EXTERNAL_BYTES:
                continue
            # runtimes map weights into memory, which needs whole pages
            file.write(b"\0" * (-at % 4096))
            at += -at % 4096
            file.write(types.raw_bytes(values).data)
            found[name] = (location, at, values.nbytes)
            at += values.nbytes
        return found

    # -- running
    def evaluate(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs for numpy inputs, by onnx.reference.ReferenceEvaluator: exact and slow. Raises ArgumentError for inputs that the graph does not take."""
        self._check_inputs(values)
        if self._evaluator is None:
            self._evaluator = evaluator(self._message(True, False))
        with np.errstate(all="ignore"):
            found = self._evaluator.run(None, dict(zip(self.input_names, values, strict=True)))
        return [np.asarray(y) for y in found]

    def _check_inputs(self, values: Sequence[np.ndarray]) -> None:
        """Refuse what a runtime would: the evaluator takes other types and sizes wherever the operators happen to."""
        sizes: dict[Any, int] = {}
        for x, given in zip(self.inputs, values, strict=True):
            fits = given.ndim == len(x.shape) and all(
                sizes.setdefault(n, m) == m if not isinstance(n, int) else n == m for n, m in zip(x.shape, given.shape, strict=True)
            )
            if not fits or given.dtype != x.dtype:
                wanted = ", ".join(str(d.dim_value or d.dim_param) for d in self._value_info(x).type.tensor_type.shape.dim)
                raise ArgumentError(
                    f"onnx: input {x.name!r} is {given.dtype} {given.shape}; the graph takes {x.dtype} ({wanted}): cast it, or export with dynamic_axes "
                    "for the sizes that vary"
                )

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The outputs of the exported model, by the reference evaluator, for arguments as the model takes them."""
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        if len(tensors) != len(self.inputs):
            raise ArgumentError(f"onnx: {len(tensors)} tensors for the inputs {', '.join(self.input_names)}; give one for each")
        return tuple([new_tensor(y) for y in self.evaluate([to_host(x._array) for x in tensors])])

    call_reference = __call__

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Put other weights in the place of those with the same names. Warns of names that the graph has not: misspelled, or folded into other constants.

        Raises ArgumentError for one of another shape or type, before any is replaced.
        """
        found = {name: np.array(to_host(t._array)) for name, t in state_dict.items() if name in self.initializers}
        for name, values in found.items():
            old = self.initializers[name]
            if values.shape != old.shape or values.dtype != old.dtype:
                raise ArgumentError(f"onnx: {name} is {values.dtype} {values.shape}; the model has {old.dtype} {old.shape}")
        self.initializers.update(found)
        self._evaluator = None
        rest = [name for name in state_dict if name not in found and not name.endswith("num_batches_tracked")]  # which no output depends on
        if rest:
            warnings.warn(
                f"apply_weights: the graph has no {', '.join(rest[:3])}{f' and {len(rest) - 3} more' if len(rest) > 3 else ''}, which are left out; "
                "export with do_constant_folding=False if they were folded into other constants", stacklevel=2,
            )  # fmt: skip

    def release(self) -> None:
        """Let the evaluator go."""
        self._evaluator = None


def _ir_version(opsets: Sequence[Any]) -> int:
    """The oldest format of files that has these versions of operators, so that older runtimes read it."""
    from onnx import helper

    return int(helper.find_min_ir_version_for([o for o in opsets if o.domain in ("", "ai.onnx")], ignore_unknown=True))
