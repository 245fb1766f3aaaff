"""Results beside the paper's: averages over its grid, tables, claims."""
