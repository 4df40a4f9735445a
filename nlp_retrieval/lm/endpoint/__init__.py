"""Endpoints of models that are no language models: requests that are limited, retried and counted, keys and URLs."""
