"""Parts shared by all web pages: markup, and a style sheet for light and dark screens, narrow ones, and paper."""
