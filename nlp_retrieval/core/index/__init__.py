"""The index directory: items, segments, generations, and the manifest that names them."""
