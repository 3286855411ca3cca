"""The array API standard: quick tests of the namespace; the standard's own suite and the libraries that dispatch to it (`make array-api`)."""
