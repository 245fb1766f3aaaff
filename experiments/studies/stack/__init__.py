"""Beyond the paper: conditional laws and a stack of models."""
