"""Readers of what telemetry wrote."""
