"""Knowledge of passages, as entities and triples: its sources and its store."""
