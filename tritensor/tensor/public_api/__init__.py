"""Publication of a function: its names, its keywords, `out=`, and what the door says of arguments that do not fit."""
