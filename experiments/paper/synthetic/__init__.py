"""The study on generated data beside the paper: tables, measures, claims."""
