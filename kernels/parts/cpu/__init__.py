"""What the CPU references of ops are made of: elementwise numpy in blocks, special functions, exact sums."""
