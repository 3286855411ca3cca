"""What lies below torch.nn under other paths than here."""
