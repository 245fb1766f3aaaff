"""The command ``admiss``."""
