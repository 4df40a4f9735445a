"""Fine-tuning a small pair model on judged claims: reading them, adding generated contradictions, training, early stopping."""
