"""Real features (Section 4.3 and Appendix D of the paper)."""
