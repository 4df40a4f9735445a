"""Language models: their settings, and calls that are retried, limited, counted, and answered from disk the second time."""
