"""Studies: instances, methods, and the cells in which they meet, computed in processes and kept in a store."""
