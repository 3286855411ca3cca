"""Sound: features, filters, augmentation, files."""
