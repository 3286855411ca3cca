"""Other projects' released test suites, asked of our tensors: `make interop`."""
