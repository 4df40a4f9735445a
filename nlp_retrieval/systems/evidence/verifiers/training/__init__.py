"""Fine-tuning a small pair model on judged claims: reading them, adding made-up contradictions, training, stopping early."""
