"""What every device fulfils (interface), and which one serves this process (serving)."""
