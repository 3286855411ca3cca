"""The memory of GPUs: storages, the caching allocator, pinned host memory, statistics and reports."""
