"""Attention whose scores and masks are functions of positions: torch.nn.attention.flex_attention."""
