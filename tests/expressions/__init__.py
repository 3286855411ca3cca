"""Expressions, and what PyTorch answers to them: every public function is asked, with every option, without torch being installed."""
