"""What a domain asks and looks for, as data: questions, keywords, patterns and weights, in YAML; nothing of it in code."""
