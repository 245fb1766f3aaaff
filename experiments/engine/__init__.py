"""The machine that runs studies: cells in processes, a store, tables."""
