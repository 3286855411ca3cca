"""What each op of tritensor is in ONNX, a file for each family."""
