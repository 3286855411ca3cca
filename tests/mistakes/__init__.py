"""Mistakes of users, as they type them, and the words that they read then: every message is kept, and its form is held by rule."""
