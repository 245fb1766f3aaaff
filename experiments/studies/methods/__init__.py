"""Methods shared by several studies: each fits a model to the rows of an instance and scores it."""
