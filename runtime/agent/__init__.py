"""The turn, its send boundary and the session that owns it."""
