"""What each optimizer does to a parameter, in a few lines."""
