"""Device cuda without a GPU: Triton's interpreter made exact, on host memory, watched by a sanitizer."""
