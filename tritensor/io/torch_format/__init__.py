"""PyTorch's own files, read and written without PyTorch: the zip archive of 1.6 and later, and the stream of pickles before it."""
