"""Generated data (Appendix B.1 of the paper)."""
