"""From a launch to machine code: argument types, compilation, the cubin cache, packs, and what the machine code uses."""
