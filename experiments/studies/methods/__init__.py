"""Methods that several studies share: they fit a model on the rows of an instance and score it."""
