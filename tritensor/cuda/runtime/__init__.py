"""Runtimes: the interface that every device fulfils, and which one serves this process."""
