"""What a GPU's instructions and libraries compute, in numpy: arithmetic, reductions, libdevice, inline PTX."""
