"""The paper: its printed numbers and claims, and results beside them."""
