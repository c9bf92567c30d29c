"""Experiments: scenarios and the comparison."""
