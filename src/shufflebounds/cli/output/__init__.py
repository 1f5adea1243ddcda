"""Output of the command: results, files, numbers, progress."""
