"""Tests: of every op through the table, of the engine, of the house itself."""
