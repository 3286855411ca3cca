"""ONNX export: ops one by one, models, dynamic axes, bad input."""
