"""Machine code that takes Python's objects as they are: arrays, numbers, and the Python function that answers what it does not take."""
