"""Word vectors: read from files of word2vec or GloVe, or trained on a corpus, and averaged to the vectors of texts."""
