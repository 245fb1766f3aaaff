"""The studies, one package per study: grid, instances, methods, tables."""
