"""Notes on disk, the catalog over them, and the deterministic search."""
