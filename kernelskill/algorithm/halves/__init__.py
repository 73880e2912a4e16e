"""Two small integers in one word: what may be computed so, and how."""
