"""torch.onnx: models as ONNX graphs, for other runtimes (extra `tritensor[onnx]`).

    program = tritensor.onnx.export(model, (x,), "model.onnx", input_names=["x"], dynamic_axes={"x": {0: "batch"}})

See docs/onnx.md.
"""

from tritensor.ground.errors import TracerWarning as TracerWarning
from tritensor.onnx import translations as translations  # each enters its ops in the registry
from tritensor.onnx.errors import DynamicAxisError as DynamicAxisError
from tritensor.onnx.errors import OnnxExporterError as OnnxExporterError
from tritensor.onnx.errors import UnsupportedOperatorError as UnsupportedOperatorError
from tritensor.onnx.exporting import OperatorExportTypes as OperatorExportTypes
from tritensor.onnx.exporting import TrainingMode as TrainingMode
from tritensor.onnx.exporting import export as export
from tritensor.onnx.exporting import is_in_onnx_export as is_in_onnx_export
from tritensor.onnx.exporting import select_model_mode_for_export as select_model_mode_for_export
from tritensor.onnx.program import ONNXProgram as ONNXProgram
from tritensor.onnx.registry import register as register
