"""Classes recommended from second moments, against classes chosen by cross-validation."""
