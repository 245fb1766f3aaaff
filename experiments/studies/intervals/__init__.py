"""Coverage of prediction sets by missing feature and under shifts of the law of patterns."""
