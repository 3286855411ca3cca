"""Lines of source: which kernel stored an element, what the author of an op wrote, which of it no sample ran."""
