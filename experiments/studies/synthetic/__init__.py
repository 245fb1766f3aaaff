"""Generated data (Section 4.2 and Appendix C of the paper)."""
