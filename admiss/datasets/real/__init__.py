"""The real data sets of the paper (Section 4.1, Appendix B.2)."""
