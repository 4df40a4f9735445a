"""Questions answered from what a searcher finds: short answers that cite passages and sentences."""
