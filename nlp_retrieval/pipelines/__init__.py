"""Multi-hop programs: DSPy modules made of the project's retrievers, processors and rerankers."""
