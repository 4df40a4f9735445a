"""Links, titles and terms in flat files."""
