"""Tests of tritensor.distributions."""
