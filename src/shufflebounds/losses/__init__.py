"""Privacy losses on a grid: discretised from above and below, tilted, composed. Arrays in, arrays out."""
