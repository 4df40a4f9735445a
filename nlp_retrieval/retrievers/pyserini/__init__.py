"""BM25 and RM3 by Lucene, in a Java machine of this process."""
