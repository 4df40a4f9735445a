"""Stages of a sweep, spread over processes of this machine or a Ray cluster."""
