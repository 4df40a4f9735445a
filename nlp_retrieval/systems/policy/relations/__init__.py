"""Typed relations between passages: order, support, explanation, contradiction and cause, and changes between versions."""
