"""The studies: what each runs, and the tables that it reports."""
