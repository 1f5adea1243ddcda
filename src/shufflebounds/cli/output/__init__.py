"""What the command prints and writes: answers, files, numbers, progress."""
