"""What users get wrong, as they type it, and the words that they read then: every message is kept, and its form is held by rule."""
