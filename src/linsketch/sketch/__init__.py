"""Linear sketches: frozen descriptions, with vectors as values."""
