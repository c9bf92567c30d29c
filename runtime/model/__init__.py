"""Models behind one seam."""
