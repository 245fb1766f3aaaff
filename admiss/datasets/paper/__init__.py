"""The generated instances of the paper, draw for draw, and the random numbers of Julia that they need."""
