"""Page of a study of policy documents: every answer with its reasons, and the changes between plans."""
