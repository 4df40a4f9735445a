"""Stages shared by configurations: computed once, stored, and timed."""
