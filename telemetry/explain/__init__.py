"""Explains recorded turns: where the time went, why memory came or did not, and what would have changed it."""
