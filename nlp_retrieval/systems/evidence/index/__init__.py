"""The index of sources: their texts, URLs, versions and grades, and their passages."""
