"""A record of what the package does: public names, options, and results of several hundred fits.

``python -m tests.record`` writes ``record.json`` again; ``test_record.py`` compares. A case is a function without
parameters that returns numbers and words of one fit. Results that change on purpose are recorded again, with the reason
in the message of the commit and, if users see it, in the changelog.
"""
