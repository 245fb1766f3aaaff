"""The report of a study: one HTML page that opens from disk, and its figures as files."""
