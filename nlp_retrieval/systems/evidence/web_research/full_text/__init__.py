"""Reading whole texts with a language model, without an index: extract, match, quote."""
