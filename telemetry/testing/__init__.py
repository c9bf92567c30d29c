"""Helpers for tests of whatever emits or exports telemetry: an OTLP receiver, and the events of a golden turn."""
