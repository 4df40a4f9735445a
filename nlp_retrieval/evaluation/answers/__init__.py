"""Answers to questions, judged: exact match, F1, supporting facts, and the files that other tools read."""
