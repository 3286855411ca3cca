"""Instructions and libraries of a GPU in numpy: arithmetic, reductions, libdevice, inline PTX."""
