"""What kernels are made of, and no op: shared kernels, scalar mathematics, tiles, launch rules, rows, indices, random words, samples."""
