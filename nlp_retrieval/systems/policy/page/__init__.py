"""A study of policy documents, shown: a page with every answer, why it was chosen, and what changed between plans."""
