"""Generated data: the design of the paper (Appendix B.1), its signals, and patterns that interact."""
