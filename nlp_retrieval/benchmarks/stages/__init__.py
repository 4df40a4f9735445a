"""Stages that configurations share: computed once, kept, and timed."""
