"""Language models: settings, calls that are retried, bounded, counted and answered from disk the second time."""
