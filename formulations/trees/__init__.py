"""The best tree of missingness patterns: flow model, dynamic program, textbook model, and a bound without enumeration."""
