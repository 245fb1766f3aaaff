"""The paper's own data: the authors' instances draw for draw, and their encoding of real tables."""
