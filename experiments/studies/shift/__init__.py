"""A model is trained under one law of missingness and used under another."""
