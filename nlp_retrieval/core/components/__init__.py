"""Base of all components: parameters, names, code, building from plain values, and limits on manifests."""
