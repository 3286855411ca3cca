"""Derivatives at kinks: functions at their zeros, limits and ties, first and second order."""
