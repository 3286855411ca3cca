"""Triton kernels as they are, on our tensors: `kernel[grid](x, y, n, BLOCK=1024)`, autotune, Triton's driver and its testing.

Nothing here is imported before Triton is: `import_hook.install()` waits for that.
"""
