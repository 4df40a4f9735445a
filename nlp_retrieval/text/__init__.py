"""What texts hold: titles, mentions of them, names, and what of a text may be shown."""
