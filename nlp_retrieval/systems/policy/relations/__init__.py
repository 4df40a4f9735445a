"""Typed relations between passages: what follows, supports, explains, contradicts or causes what, and what versions change."""
