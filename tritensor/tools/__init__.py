"""Programs around the library: the command `tritensor`, the doctor, precompilation."""
