"""Compilation of launches: argument types, the cubin cache, packs, and what the machine code uses."""
