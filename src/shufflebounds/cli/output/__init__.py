"""FILL IN: what belongs here, what it may import, where to start reading."""
