"""The layers: modules that hold a function's settings and, where it has any, its parameters."""
