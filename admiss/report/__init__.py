"""The page system of comparisons and studies: templates, one style sheet, one script, and figures as SVG."""
