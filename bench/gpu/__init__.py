"""Every op on the GPU, beside torch and against the roofline of the same run: `python -m bench gpu`."""
