"""The study on real features beside the paper: tables, measures, claims."""
