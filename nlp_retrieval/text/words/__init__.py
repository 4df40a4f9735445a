"""The words of texts in any language: which characters make one, how they are normalised, stemmed and left out."""
