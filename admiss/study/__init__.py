"""Studies: grids of instances and methods, run in processes, stored, tabulated and reported."""
