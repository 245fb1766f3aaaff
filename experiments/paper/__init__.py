"""The paper's numbers and claims, and results beside them."""
